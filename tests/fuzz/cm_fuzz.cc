// Two connection managers, two capability directories, and a byte string that plays both users, the network
// and an attacker on it: MADs are carried, lost, repeated, altered and made up, and time passes.
//
// What must hold: nothing crashes, invariants hold after every step, and when both users have let go of
// everything and the network carries what is left, both tables are empty. A message that decodes encodes to
// something that decodes to the same.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/cm/cm.h"
#include "core/cm/discovery.h"
#include "core/wire/bytes.h"
#include "tests/fuzz/input.h"

namespace {

using namespace weft;
using namespace weft::cm;

constexpr std::size_t kBag = 8;

cm::CmConfig config_of(std::uint8_t n) {
  cm::CmConfig c;
  c.max_connections = 8;
  c.max_listeners = 3;
  c.slot = n;
  c.seed = n;
  c.ca_guid = n;
  c.max_retries = 2;
  return c;
}
cm::DiscoveryConfig discovery_of(std::uint8_t n) {
  cm::DiscoveryConfig c;
  c.max_peers = 3;
  c.slot = n;
  c.instance = c.seed = n;
  return c;
}

struct Host {
  explicit Host(std::uint8_t n)
      : cm(config_of(n)), discovery(discovery_of(n)), address(wire::Address::v4(10, 0, 0, n)) {}
  cm::Cm cm;
  cm::Discovery discovery;
  wire::Address address;
  std::vector<ConnId> known;  // ids that the user ever had
  std::vector<ListenerId> listeners;
};

struct World {
  Host hosts[2] = {Host(1), Host(2)};
  Time now{};
  std::vector<MadOut> bag;  // what an attacker has seen

  Host& of(const wire::Address& a) { return a == hosts[0].address ? hosts[0] : hosts[1]; }

  void deliver(const MadOut& m) {
    Host& to = of(m.facts.destination);
    const bool cm = to.cm.on_mad(now, m.facts, m.mad);
    const bool capability = to.discovery.on_mad(now, m.facts, m.mad);
    CHECK(!cm || !capability);
  }
  bool take(Host& from, MadOut& out) { return from.cm.poll_mad(out) || from.discovery.poll_mad(out); }
  void remember(const MadOut& m) {
    if (bag.size() == kBag) bag.erase(bag.begin());
    bag.push_back(m);
  }
  void timers() {
    for (Host& h : hosts) {
      h.cm.on_timer(now);
      h.discovery.on_timer(now);
    }
  }
  void check() const {
    for (const Host& h : hosts) h.cm.check_invariants();
  }
};

void alter(wire::Mad& mad, fuzz::Input& in) {
  for (unsigned n = in.below(4); n > 0; --n) mad[in.u8()] = in.u8();
}

ConnId some_conn(Host& h, fuzz::Input& in) {
  if (h.known.empty() || in.below(8) == 7) return {in.u32()};
  return h.known[in.u8() % h.known.size()];
}

void connect(World& w, Host& h, fuzz::Input& in) {
  ConnectAttr t;
  t.local = h.address;
  t.peer = w.hosts[in.below(2)].address;
  t.port = static_cast<std::uint16_t>(in.below(4));
  t.space = in.flag() ? wire::PortSpace::kTcp : wire::PortSpace::kIb;
  t.qpn = {in.u8()};
  t.type = in.below(4) == 0 ? QpType::kUc : QpType::kRc;
  t.responder_resources = in.u8();
  t.initiator_depth = in.u8();
  t.ack_timeout = static_cast<std::uint8_t>(in.below(34));
  if (const auto c = h.cm.connect(t, w.now); c.has_value()) h.known.push_back(*c);
}

void user(World& w, Host& h, ConnId c, fuzz::Input& in) {
  std::uint8_t words[250] = {in.u8()};
  const std::span<const std::uint8_t> data(words, in.u8() % sizeof words);
  switch (in.below(9)) {
    case 0: {
      AcceptAttr t;
      t.qpn = {in.u8()};
      t.private_data = data;
      static_cast<void>(h.cm.accept(c, t, w.now));
      break;
    }
    case 1:
      static_cast<void>(h.cm.reject(c, data, w.now));
      break;
    case 2:
      static_cast<void>(h.cm.establish(c, w.now));
      break;
    case 3:
      static_cast<void>(h.cm.notify(c, w.now));
      break;
    case 4:
      static_cast<void>(h.cm.disconnect(c, w.now));
      break;
    case 5:
      static_cast<void>(h.cm.abandon(c, w.now));
      break;
    case 6: {
      AnswerAttr t;
      t.status = in.u8();
      t.private_data = data;
      static_cast<void>(h.cm.answer(c, t, w.now));
      break;
    }
    case 7:
      static_cast<void>(h.cm.qp_setup(c, static_cast<QpState>(in.below(8))));
      break;
    default:
      break;  // the user lets it lie
  }
}

// Any message, about connections that exist or do not.
MadOut made_up(World& w, fuzz::Input& in) {
  MadOut out;
  Host& to = w.hosts[in.below(2)];
  Host& from = w.hosts[in.below(2)];
  out.facts = {.source = in.below(8) == 0 ? wire::Address::v4(6, 6, 6, 6) : from.address,
               .destination = to.address};
  for (std::size_t i = 0; i < 60; ++i) out.mad[i + (i < 40 ? 0 : 120)] = in.u8();
  const bool capability = in.below(8) == 0;
  out.mad[0] = 1;
  out.mad[1] = capability ? 0x30 : 0x07;
  out.mad[2] = capability ? 1 : 2;
  out.mad[3] = capability ? (in.flag() ? 0x81 : 0x01) : 0x03;
  wire::store_be16(out.mad.data() + 16,
                   capability ? 0xFF10 : static_cast<std::uint16_t>(0x10U + in.below(10)));
  if (capability) wire::store_be24(out.mad.data() + 37, wire::kEceVendor);
  if (!capability) {
    wire::store_be32(out.mad.data() + 24, some_conn(from, in).v);
    if (in.flag()) wire::store_be32(out.mad.data() + 28, some_conn(to, in).v);
  }
  return out;
}

void stable(const wire::Mad& mad) {
  wire::MadError error{};
  wire::Mad again;
  if (wire::CmMessage m, second; decode(mad, m, error)) {
    encode(m, again);
    CHECK(decode(again, second, error));
    CHECK(m == second);
  }
  if (wire::Capability c, second; decode(mad, c, error)) {
    encode(c, again);
    CHECK(decode(again, second, error));
    CHECK(c == second);
  }
}

void hear(Host& h, cm::CmEvent& e) {
  if (std::find(h.known.begin(), h.known.end(), e.conn) == h.known.end()) h.known.push_back(e.conn);
  CHECK_OP(e.private_length, <=, e.private_data.size());
}

void step(World& w, fuzz::Input& in) {
  Host& h = w.hosts[in.below(2)];
  switch (in.below(12)) {
    case 0: {
      ListenAttr l;
      l.port = static_cast<std::uint16_t>(in.below(4));
      l.space = in.flag() ? wire::PortSpace::kTcp : wire::PortSpace::kUdp;
      l.backlog = in.below(3);
      if (const auto id = h.cm.listen(l); id.has_value()) h.listeners.push_back(*id);
      break;
    }
    case 1:
      if (!h.listeners.empty())
        static_cast<void>(h.cm.close(h.listeners[in.u8() % h.listeners.size()], w.now));
      break;
    case 2:
      connect(w, h, in);
      break;
    case 3: {
      ResolveAttr t;
      t.local = h.address;
      t.peer = w.hosts[in.below(2)].address;
      t.port = static_cast<std::uint16_t>(in.below(4));
      if (const auto c = h.cm.resolve(t, w.now); c.has_value()) h.known.push_back(*c);
      break;
    }
    case 4:
    case 5: {  // the network: carries, sometimes alters or loses
      MadOut m;
      if (!w.take(h, m)) break;
      w.remember(m);
      const std::uint32_t fate = in.below(8);
      if (fate == 0) break;
      if (fate == 1) alter(m.mad, in);
      stable(m.mad);
      w.deliver(m);
      if (fate == 2) w.deliver(m);
      break;
    }
    case 6: {
      if (w.bag.empty()) break;
      MadOut m = w.bag[in.u8() % w.bag.size()];
      if (in.flag()) alter(m.mad, in);
      stable(m.mad);
      w.deliver(m);
      break;
    }
    case 7: {
      const MadOut m = made_up(w, in);
      stable(m.mad);
      w.deliver(m);
      break;
    }
    case 8:
      w.now = w.now.after(in.flag() ? milliseconds(1) * in.u16() : microseconds(1) * in.u8());
      w.timers();
      break;
    case 9: {
      cm::CmEvent e;
      if (!h.cm.poll_event(e)) break;
      hear(h, e);
      user(w, h, e.conn, in);
      break;
    }
    case 10:
      user(w, h, some_conn(h, in), in);
      break;
    case 11: {
      const Qpn target{in.u32() & kPsnMask};
      h.discovery.look_up(w.now, h.address, w.hosts[in.below(2)].address, target);
      PeerId p;
      h.discovery.poll_news(p);
      break;
    }
  }
  w.check();
}

// Both users let go; the network is honest from here on.
void finish(World& w) {
  for (int turn = 0; turn < 2000; ++turn) {
    bool moved = false;
    for (Host& h : w.hosts) {
      for (cm::CmEvent e; h.cm.poll_event(e); moved = true) hear(h, e);
      for (const ConnId c : h.known) moved |= h.cm.abandon(c, w.now).has_value();
      h.known.clear();
      for (MadOut m; w.take(h, m); moved = true) w.deliver(m);
      for (PeerId p; h.discovery.poll_news(p);) {
      }
    }
    w.check();
    if (moved) continue;
    Time next = kNever;
    for (const Host& h : w.hosts) next = std::min({next, h.cm.next_deadline(), h.discovery.next_deadline()});
    if (next == kNever) break;
    w.now = std::max(w.now, next);
    w.timers();
  }
  for (const Host& h : w.hosts) {
    CHECK_OP(h.cm.connections(), ==, 0U);
    CHECK(h.cm.next_deadline() == kNever);
    CHECK(h.discovery.next_deadline() == kNever);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in({data, size});
  World w;
  for (int steps = 0; steps < 400 && !in.empty(); ++steps) step(w, in);
  finish(w);
  return 0;
}
