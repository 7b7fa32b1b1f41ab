// For tests: two connection managers and a virtual link that loses, repeats and delays chosen MADs. Time
// moves only when nothing is left to carry. Users at both ends follow a plan; what they are told is kept.
#pragma once
#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/cm/cm.h"

namespace weft::cm {

enum class Fate : std::uint8_t { kDeliver, kLose, kRepeat, kLate };

// What the users do.
enum class Plan : std::uint8_t {
  kActiveDisconnects,
  kPassiveDisconnects,
  kBothDisconnect,
  kPassiveRejects,
  kActiveRejects,
  kNobodyListens,
  kActiveAbandonsRequest,
  kActiveAbandonsResponse,
  kActiveAbandonsConnection,
  kPassiveAbandonsRequest,
  kPassiveAbandonsAccepted,
  kPassiveAbandonsConnection,
  kSlowPassive,  // accepts after ten seconds
  kSlowActive,   // establishes after ten seconds
  kResolve,
  kResolveRejected,
  kResolveNobody,
};
inline constexpr Plan kPlans[] = {Plan::kActiveDisconnects,
                                  Plan::kPassiveDisconnects,
                                  Plan::kBothDisconnect,
                                  Plan::kPassiveRejects,
                                  Plan::kActiveRejects,
                                  Plan::kNobodyListens,
                                  Plan::kActiveAbandonsRequest,
                                  Plan::kActiveAbandonsResponse,
                                  Plan::kActiveAbandonsConnection,
                                  Plan::kPassiveAbandonsRequest,
                                  Plan::kPassiveAbandonsAccepted,
                                  Plan::kPassiveAbandonsConnection,
                                  Plan::kSlowPassive,
                                  Plan::kSlowActive,
                                  Plan::kResolve,
                                  Plan::kResolveRejected,
                                  Plan::kResolveNobody};

inline bool is_sidr(Plan p) { return p >= Plan::kResolve; }

struct End {
  End(std::uint8_t n, const CmConfig& config) : cm(config), address(wire::Address::v4(10, 0, 0, n)) {}
  std::vector<CmEventKind> kinds(ConnId conn) const {
    std::vector<CmEventKind> k;
    for (const CmEvent& e : log) {
      if (e.conn == conn) k.push_back(e.kind);
    }
    return k;
  }
  std::size_t count(CmEventKind kind) const {
    return static_cast<std::size_t>(
        std::count_if(log.begin(), log.end(), [&](const CmEvent& e) { return e.kind == kind; }));
  }
  Cm cm;
  wire::Address address;
  std::vector<CmEvent> log;
};

class TwoManagers {
 public:
  static constexpr std::uint16_t kPort = 7471;
  static constexpr Duration kLatency = microseconds(10);
  static constexpr Duration kLateness = seconds(7);  // longer than any time-out of the first round

  static CmConfig small(std::uint8_t n) {
    CmConfig c;
    c.max_connections = 16;
    c.max_listeners = 4;
    c.slot = n;
    c.seed = n;
    c.ca_guid = 0x0200'0000'0000'0000ULL | n;
    return c;
  }

  explicit TwoManagers(const CmConfig& ca = small(1), const CmConfig& cb = small(2)) : a(1, ca), b(2, cb) {}

  ConnectAttr connect_attr() {
    ConnectAttr t;
    t.local = a.address;
    t.peer = b.address;
    t.port = kPort;
    t.local_port = 40000;
    t.qpn = {0x10011};
    t.responder_resources = 4;
    t.initiator_depth = 8;
    t.private_data = said;
    return t;
  }

  void start(Plan p) {
    plan = p;
    if (p == Plan::kNobodyListens || p == Plan::kResolveNobody) {
      // no listener
    } else {
      ListenAttr l;
      l.port = kPort;
      if (is_sidr(p)) l.space = wire::PortSpace::kUdp;
      CHECK(b.cm.listen(l).has_value());
    }
    if (is_sidr(p)) {
      ResolveAttr r;
      r.local = a.address;
      r.peer = b.address;
      r.port = kPort;
      r.private_data = said;
      conn = *a.cm.resolve(r, now);
    } else {
      conn = *a.cm.connect(connect_attr(), now);
    }
    if (p == Plan::kActiveAbandonsRequest) later(a, conn, &TwoManagers::abandon, microseconds(15));
  }

  // Until nothing is under way and nothing is due. The limit catches runs that never end.
  void run() {
    for (int turns = 0; turns < 10'000; ++turns) {
      while (turn()) {
      }
      const Time next = std::min({a.cm.next_deadline(), b.cm.next_deadline(), next_due()});
      if (next == kNever) return;
      now = std::max(now, next);
      deliver();
      act();
      a.cm.on_timer(now);
      b.cm.on_timer(now);
    }
    CHECK(false);
  }
  // Users abandon a connection that never completes, because the other side gave up and its REJ was lost.
  void hang_up() {
    for (End* e : {&a, &b}) {
      for (const CmEvent& event : e->log) static_cast<void>(e->cm.abandon(event.conn, now));
    }
    run();
  }
  // Hands on what is there now; false when nothing was.
  bool turn() {
    const bool carried = take(a) || take(b);
    const bool told = users();
    a.cm.check_invariants();
    b.cm.check_invariants();
    return carried || told;
  }

  // One event for each user; false when there was none.
  bool users() {
    const bool x = hear(a);
    return hear(b) || x;
  }

  // A MAD from nowhere, as a stranger would send it.
  void inject(End& to, const wire::CmMessage& m, const wire::Address& from) {
    wire::Mad mad;
    encode(m, mad);
    CHECK(to.cm.on_mad(now, {.source = from, .destination = to.address}, mad));
  }

  End a, b;
  Plan plan = Plan::kActiveDisconnects;
  ConnId conn{};
  Time now{};
  std::vector<Fate> fates;  // of the first MADs, in the order in which they are sent
  std::vector<wire::CmKind> sent;
  std::vector<std::uint8_t> said = {'h', 'e', 'l', 'l', 'o'};
  std::vector<std::uint8_t> answered = {'w', 'o', 'r', 'l', 'd'};

 private:
  struct Flight {
    Time due;
    End* to;
    MadOut mad;
  };
  struct Step {
    Time due;
    End* end;
    ConnId conn;
    void (TwoManagers::*what)(End&, ConnId);
  };

  bool take(End& from) {
    MadOut out;
    if (!from.cm.poll_mad(out)) return false;
    wire::CmMessage m;
    wire::MadError error{};
    CHECK(decode(out.mad, m, error));
    CHECK(out.facts.source == from.address);
    const Fate fate = sent.size() < fates.size() ? fates[sent.size()] : Fate::kDeliver;
    sent.push_back(m.kind);
    End* to = &from == &a ? &b : &a;
    if (fate == Fate::kLose) return true;
    flights.push_back({now + kLatency + (fate == Fate::kLate ? kLateness : Duration{}), to, out});
    if (fate == Fate::kRepeat) flights.push_back({now + kLatency * 5, to, out});
    return true;
  }
  Time next_due() const {
    Time t = kNever;
    for (const Flight& f : flights) t = std::min(t, f.due);
    for (const Step& s : steps) t = std::min(t, s.due);
    return t;
  }
  void deliver() {
    std::stable_sort(flights.begin(), flights.end(),
                     [](const Flight& x, const Flight& y) { return x.due < y.due; });
    while (!flights.empty() && flights.front().due <= now) {
      const Flight f = flights.front();
      flights.erase(flights.begin());
      CHECK(f.to->cm.on_mad(now, f.mad.facts, f.mad.mad));
    }
  }
  void act() {
    const std::vector<Step> all = std::exchange(steps, {});
    for (const Step& s : all) {
      if (s.due <= now) {
        (this->*s.what)(*s.end, s.conn);
      } else {
        steps.push_back(s);
      }
    }
  }
  void later(End& e, ConnId c, void (TwoManagers::*what)(End&, ConnId), Duration d) {
    steps.push_back({now + d, &e, c, what});
  }

  void abandon(End& e, ConnId c) { static_cast<void>(e.cm.abandon(c, now)); }
  void establish(End& e, ConnId c) { static_cast<void>(e.cm.establish(c, now)); }
  void accept(End& e, ConnId c) {
    AcceptAttr t;
    t.qpn = {0x20022};
    t.responder_resources = 16;
    t.initiator_depth = 2;
    t.private_data = answered;
    static_cast<void>(e.cm.accept(c, t, now));
  }

  bool hear(End& e) {
    CmEvent event;
    if (!e.cm.poll_event(event)) return false;
    e.log.push_back(event);
    const ConnId c = event.conn;
    switch (event.kind) {
      case CmEventKind::kConnectRequest:
        if (plan == Plan::kPassiveRejects) {
          CHECK(e.cm.reject(c, answered, now).has_value());
        } else if (plan == Plan::kPassiveAbandonsRequest) {
          abandon(e, c);
        } else if (plan == Plan::kSlowPassive) {
          later(e, c, &TwoManagers::accept, seconds(10));
        } else {
          accept(e, c);
          if (plan == Plan::kPassiveAbandonsAccepted) later(e, c, &TwoManagers::abandon, microseconds(5));
        }
        break;
      case CmEventKind::kConnectResponse:
        if (plan == Plan::kActiveRejects) {
          CHECK(e.cm.reject(c, said, now).has_value());
        } else if (plan == Plan::kActiveAbandonsResponse) {
          abandon(e, c);
        } else if (plan == Plan::kSlowActive) {
          later(e, c, &TwoManagers::establish, seconds(10));
        } else {
          establish(e, c);
        }
        break;
      case CmEventKind::kEstablished: {
        const bool active = &e == &a;
        if (plan == Plan::kActiveAbandonsConnection && active) abandon(e, c);
        if (plan == Plan::kPassiveAbandonsConnection && !active) abandon(e, c);
        const bool both = plan == Plan::kBothDisconnect;
        const bool passive_first = plan == Plan::kPassiveDisconnects;
        if (both || (active ? !passive_first && plan != Plan::kPassiveAbandonsConnection : passive_first))
          static_cast<void>(e.cm.disconnect(c, now));
        break;
      }
      case CmEventKind::kResolveRequest: {
        AnswerAttr t;
        t.status = plan == Plan::kResolveRejected ? wire::kSidrRejected : wire::kSidrSuccess;
        t.qpn = {0x20033};
        t.qkey = 0x01234567;
        t.private_data = answered;
        CHECK(e.cm.answer(c, t, now).has_value());
        break;
      }
      default:
        break;
    }
    return true;
  }

  std::vector<Flight> flights;
  std::vector<Step> steps;
};

}  // namespace weft::cm
