#include "tests/differential/live_nics.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "core/base/check.h"
#include "core/verbs/ladder.h"
#include "live/engine/connections.h"
#include "live/engine/context.h"
#include "live/engine/nic_state.h"
#include "tests/differential/turns.h"
#include "tests/differential/virtual_wire.h"

namespace weft::differential {
namespace {

constexpr QpCaps kCaps = {16, 16, 1, 1, 0};
constexpr std::uint32_t kMostTurns = 10'000;  // at one time; more is an engine that is in a loop

class NicDoor final : public Door, public live::ConnectionSink {
 public:
  NicDoor(std::shared_ptr<live::Nic> nic, std::size_t number, const wire::Address& peer, const Time& now)
      : nic_(std::move(nic)),
        context_(*live::Context::open(nic_)),
        connections_(context_->connections()),
        memory_(fresh_memory(number)),
        peer_(peer),
        now_(now) {
    pd_ = *context_->alloc_pd();
    cq_ = *context_->create_cq(1024, nullptr, nullptr);
    mr_ = *context_->register_mr(pd_, memory_.data(), kMemory, kMemoryAt,
                                 kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
    CHECK(fcntl(context_->async_fd(), F_SETFL, O_NONBLOCK) == 0);
  }

  Time now() const override { return now_; }
  wire::Address address() const override { return context_->attributes().own.first; }
  Keys keys() const override { return {mr_.lkey, mr_.rkey}; }

  Outcome<Qpn> create_qp() override {
    QpInit init;
    init.pd = pd_;
    init.send_cq = init.recv_cq = cq_->id;
    init.caps = kCaps;
    const auto made = context_->create_qp(init, nullptr);
    if (!made) return fail(made.error());
    QpAttr a;
    a.state = QpState::kInit;
    a.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    CHECK(context_->modify_qp(*made, a, ladder(QpType::kRc)[0].mask).has_value());
    qps_[(*made)->qpn] = *made;
    return (*made)->qpn;
  }
  Outcome<void> destroy_qp(Qpn qpn) override {
    const auto done = sent(context_->destroy_qp(qps_.at(qpn)));
    qps_.erase(qpn);
    return done;
  }
  Outcome<QpAttr> query_qp(Qpn qpn) const override { return context_->query_qp(qps_.at(qpn)); }
  Outcome<void> fail_qp(Qpn qpn, Time) override {
    QpAttr a;
    a.state = QpState::kErr;
    return sent(context_->modify_qp(qps_.at(qpn), a, kAttrState));
  }
  // The Nic's options say the mode; without, the call asks, and waits.
  std::optional<Outcome<void>> raise(Qpn qpn, const QpAttr& attr, std::optional<wire::Mode>, Time) override {
    asking_ = true;
    const auto risen = climb(QpType::kRc, attr, [&](const QpAttr& at, std::uint32_t mask) {
      return context_->modify_qp(qps_.at(qpn), at, mask, {.peer = peer_});
    });
    asking_ = false;
    return sent(risen);
  }
  std::size_t post_sends(Qpn qpn, std::span<const SendWr* const> list) override {
    std::size_t taken = 0;
    {
      live::Posting posting(*context_, qps_.at(qpn));
      while (taken != list.size() && posting.send(*list[taken])) ++taken;
    }
    drain();
    return taken;
  }
  Outcome<void> post_receive(Qpn qpn, const RecvWr& wr) override {
    live::Posting posting(*context_, qps_.at(qpn));
    return posting.receive(wr);
  }
  std::uint32_t poll(std::span<Completion> out) override { return nic_->collect(cq_->id, out); }
  bool device_event(DeviceEvent& out) override {
    live::AsyncEvent event;
    if (!context_->get_async_event(event)) return false;
    context_->ack_async_event(event);
    out = {.kind = event.kind, .cq = {}, .qpn = event.qp != nullptr ? event.qp->qpn : kNoQpn, .srq = kNoSrq};
    return true;
  }

  Outcome<cm::ListenerId> listen(const cm::ListenAttr& attr) override {
    return connections_.listen(attr, *this);
  }
  void close(cm::ListenerId listener, Time) override {
    connections_.close(listener);
    drain();
  }
  Outcome<cm::ConnId> connect(const cm::ConnectAttr& attr, Time) override {
    std::optional<cm::ConnId> conn;
    const auto done = sent(connections_.connect(attr, *this, conn));
    if (!done) return fail(done.error());
    return *conn;
  }
  Outcome<void> accept(cm::ConnId conn, const cm::AcceptAttr& attr, bool whole, Time) override {
    if (whole) return sent(connections_.accept(conn, *this, attr, qps_.at(attr.qpn)));
    for (const QpState state : {QpState::kInit, QpState::kRtr}) {
      if (const auto done = step(conn, attr.qpn, state); !done) return done;
    }
    return sent(connections_.accept(conn, *this, attr, nullptr));
  }
  Outcome<void> finish(cm::ConnId conn, Qpn qpn, Time) override {
    if (const auto is = query_qp(qpn); is && is->state == QpState::kRts) return {};
    return sent(step(conn, qpn, QpState::kRts));
  }
  Outcome<void> complete(cm::ConnId conn, Qpn qpn, Time) override {
    return sent(connections_.complete(conn, *this, *qps_.at(qpn)));
  }
  Outcome<void> reject(cm::ConnId conn, std::span<const std::uint8_t> said, Time) override {
    return sent(connections_.reject(conn, *this, said));
  }
  Outcome<void> notify(cm::ConnId conn, Time) override { return sent(connections_.notify(conn, *this)); }
  Outcome<void> disconnect(cm::ConnId conn, Time) override {
    return sent(connections_.disconnect(conn, *this));
  }
  void abandon(cm::ConnId conn, Time) override {
    connections_.forget(conn, *this);
    drain();
  }
  bool next_event(cm::CmEvent& out) override {
    if (heard_.empty()) return false;
    out = heard_.front();
    heard_.pop_front();
    return true;
  }

  std::string counted() const override {
    const auto& services = std::as_const(nic_->shard()).services();
    return counted_text(services.manager(), services.discovery());
  }
  const std::vector<std::uint8_t>& bytes() const override { return memory_; }

  // --- the engine's ---
  live::ConnectionSink* requested(const cm::CmEvent& event) override {
    heard_.push_back(event);
    return this;
  }
  void happened(const cm::CmEvent& event) override { heard_.push_back(event); }

  // --- the world's ---
  bool asking() const { return asking_; }
  void drain() {
    const live::Owned owned(nic_->ownership());
    nic_->dispatch_events_owned();
    while (nic_->shard().has_to_send()) nic_->settle_owned();
  }

 private:
  Outcome<void> step(cm::ConnId conn, Qpn qpn, QpState state) {
    const auto info = connections_.info(conn, *this);
    if (!info) return fail(info.error());
    const auto setup = connections_.qp_setup(conn, *this, state);
    if (!setup) return fail(setup.error());
    return context_->modify_qp(qps_.at(qpn), setup->attr, setup->mask,
                               {.peer = info->peer, .traffic_class = info->tos, .hop_limit = 0});
  }
  template <class T>
  Outcome<T> sent(Outcome<T> done) {
    drain();
    return done;
  }

  std::shared_ptr<live::Nic> nic_;
  std::unique_ptr<live::Context> context_;
  live::Connections connections_;
  std::vector<std::uint8_t> memory_;
  wire::Address peer_;
  const Time& now_;
  PdId pd_{};
  live::Cq* cq_ = nullptr;
  live::Mr mr_;
  std::map<Qpn, live::Qp*> qps_;
  std::deque<cm::CmEvent> heard_;
  bool asking_ = false;
};

live::Options options_of(const CallsPlan& plan, std::size_t h) {
  live::Options o;
  if (plan.kinds[h] != Kind::kAuto) o.mode = plan.modes[h];
  return o;
}

}  // namespace

struct LiveNics::Inside {
  struct End {
    std::size_t number = 0;
    VirtualWire* wire = nullptr;
    std::shared_ptr<live::Nic> nic;
    NicDoor* door = nullptr;
    Turns turns;  // the program's, where it may wait
    bool acts = false;
  };

  explicit Inside(CallsPlan& p) : plan(p), readable(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {
    CHECK(readable >= 0);
  }
  ~Inside() { ::close(readable); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  Time next(const End& e) const {
    const Time wake = e.turns.busy() ? kNever : party->next_wake(e.number);
    return std::min({e.wire->next_arrival(), e.nic->shard().next_deadline(), wake});
  }
  // Everything that happens here at this time, as in LiveHost. A call that waits moves the shard by itself.
  void run(End& e) {
    while (!e.turns.busy() && e.wire->next_arrival() <= now) {
      move(e, [&](live::Shard& s) { s.receive(now, *e.wire); });
      act(e);
    }
    if (!e.turns.busy() && party->next_wake(e.number) <= now) act(e);
    if (!e.turns.busy() && e.nic->shard().next_deadline() <= now) {
      move(e, [&](live::Shard& s) { s.step(now, *e.wire, 1); });
      act(e);
    }
    if (e.turns.busy() && std::min(e.wire->next_arrival(), e.nic->shard().next_deadline()) <= now) {
      e.turns.go_on();
      if (!e.turns.busy()) e.door->drain();
    }
  }
  template <class Move>
  void move(End& e, const Move& how) {
    {
      const live::Owned owned(e.nic->ownership());
      how(e.nic->shard());
    }
    e.door->drain();
  }
  void act(End& e) {
    if (party->may_wait(e.number, now)) {
      e.turns.begin([this, &e] { party->act(e.number, now); });
    } else {
      e.acts = true;
      party->act(e.number, now);
      e.acts = false;
    }
    if (!e.turns.busy()) e.door->drain();
  }
  // A call that waits has looked at its wire. Only those that ask may.
  void looked(End& e) {
    CHECK(!e.acts);
    if (e.turns.busy() && e.door->asking() && e.nic->shard().next_deadline() > now &&
        !e.nic->shard().has_to_send())
      e.turns.wait();
  }

  CallsPlan& plan;
  int readable;
  Time now{};
  Party* party = nullptr;
  std::array<End, 2> ends;
};

LiveNics::LiveNics(CallsPlan& plan) : inside_(std::make_unique<Inside>(plan)) {
  Inside& in = *inside_;
  std::array<bool, 2> foreign{};
  if (plan.world.services) foreign = plan.world.services->foreign;
  ServicesPlan services;
  services.foreign = foreign;
  for (std::size_t h = 0; h < 2; ++h) {
    Inside::End& e = in.ends[h];
    e.number = h;
    auto wire = std::make_unique<VirtualWire>(h, plan.world, in.now);
    e.wire = wire.get();
    wire->set_descriptor(in.readable);
    wire->when_empty = [&in, &e] { in.looked(e); };
    e.nic = std::make_shared<live::Nic>(options_of(plan, h), std::move(wire), plan.world.devices[h],
                                        live::Clock::by_hand(in.now));
    const auto& made = std::as_const(e.nic->shard()).services();
    services.managers[h] = made.manager().config();
    services.discoveries[h] = made.discovery().config();
  }
  in.ends[0].wire->peer = in.ends[1].wire;
  in.ends[1].wire->peer = in.ends[0].wire;
  plan.world.services = services;
}

LiveNics::~LiveNics() = default;

bool LiveNics::run(Party& party, const Sabotage& sabotage) {
  Inside& in = *inside_;
  in.party = &party;
  std::array<std::unique_ptr<Door>, 2> doors;
  for (std::size_t h = 0; h < 2; ++h) {
    Inside::End& e = in.ends[h];
    e.wire->tell(party, h == 0 ? sabotage : Sabotage{});
    auto door = std::make_unique<NicDoor>(e.nic, h, in.ends[1 - h].wire->facts().own.first, in.now);
    e.door = door.get();
    doors[h] = std::move(door);
  }
  party.enter(std::move(doors));
  for (Inside::End& e : in.ends) in.act(e);
  for (std::uint32_t turns = 0; turns <= kMostTurns; ++turns) {
    const Time at = std::min(in.next(in.ends[0]), in.next(in.ends[1]));
    if (at > in.plan.world.end) break;
    if (at != in.now) turns = 0;
    if (turns == kMostTurns) party.log(0, Lane::kDevice, at, "something is due and is never done");
    in.now = at;
    for (Inside::End& e : in.ends) in.run(e);
  }
  party.leave(in.plan.world.end);
  return !in.ends[0].wire->tied() && !in.ends[1].wire->tied();
}

}  // namespace weft::differential
