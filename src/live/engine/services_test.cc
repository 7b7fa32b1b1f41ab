// What the network says to queue pair 1 of a live NIC: its own messages, those of nobody, and nonsense.
#include "live/engine/services.h"

#include <gtest/gtest.h>

#include "core/base/prng.h"
#include "live/engine/connections.h"
#include "live/engine/two_ends.h"

namespace weft::live {
namespace {

cm::ListenAttr at_port(std::uint16_t port, wire::PortSpace space = wire::PortSpace::kTcp) {
  cm::ListenAttr attr;
  attr.port = port;
  attr.space = space;
  attr.backlog = 4;
  return attr;
}

// Messages of every kind with bytes changed at random: the manager's tables stay whole.
TEST(Services, BearWhateverIsSaidToThem) {
  GeneralServices services;
  ASSERT_TRUE(services.manager().listen(at_port(7)).has_value());
  ASSERT_TRUE(services.manager().listen(at_port(8, wire::PortSpace::kUdp)).has_value());
  Prng random(1);
  Time now{};
  std::uint64_t sent = 0;
  constexpr int kMessages = 20'000;
  for (int i = 0; i < kMessages; ++i) {
    wire::CmMessage m;
    m.kind = static_cast<wire::CmKind>(0x10 + random.below(9));
    m.local_id = static_cast<std::uint32_t>(random.below(50));
    m.remote_id = static_cast<std::uint32_t>(random.next());
    m.transaction = random.below(3);
    m.service_id = random.below(2) == 0 ? wire::service_id(wire::PortSpace::kTcp, 7)
                                        : wire::service_id(wire::PortSpace::kUdp, 8);
    m.mtu = 3;
    m.qpn = {static_cast<std::uint32_t>(random.below(100))};
    wire::write_address_header({.source_port = 1, .source = host(2), .destination = host(1)}, m.private_data);
    wire::Mad mad;
    encode(m, mad);
    for (std::uint64_t changes = random.below(4); changes != 0; --changes)
      mad[random.below(mad.size())] = static_cast<std::uint8_t>(random.next());
    now = now + microseconds(static_cast<std::int64_t>(random.below(100'000)));
    services.take(
        now, {.source = host(static_cast<std::uint8_t>(2 + random.below(3))), .destination = host(1)}, mad);
    if (services.next_deadline() <= now) services.fire(now);
    for (cm::MadOut out; services.poll(out);) ++sent;
    for (cm::CmEvent e; services.poll_event(e);) {
      if (random.below(2) == 0) static_cast<void>(services.manager().abandon(e.conn, now));
    }
    if (i % 100 == 0) std::as_const(services).manager().check_invariants();
  }
  EXPECT_GT(sent, 0U);
  EXPECT_GT(services.strangers(), 0U);
  EXPECT_EQ(services.manager().listeners(), 2U);
}

// A listener without memory for one more identifier answers no sink.
struct Counting final : ConnectionSink {
  ConnectionSink* requested(const cm::CmEvent&) override {
    ++requests;
    return nullptr;
  }
  void happened(const cm::CmEvent&) override {}
  std::atomic<int> requests{0};
};

TEST(Services, OfAListenerThatTakesNobodyTurnEverybodyAway) {
  Counting sink;
  End a(40);
  End b(41);
  Connections of_a = a.context->connections();
  Connections of_b = b.context->connections();
  const auto listener = of_b.listen(at_port(9), sink);
  ASSERT_TRUE(listener.has_value());
  struct Asker final : ConnectionSink {
    ConnectionSink* requested(const cm::CmEvent&) override { return nullptr; }
    void happened(const cm::CmEvent& e) override {
      known = conn == e.conn;
      kind = static_cast<int>(e.kind);
    }
    std::optional<cm::ConnId> conn;
    bool known = false;  // when it was told
    std::atomic<int> kind{-1};
  } asker;
  cm::ConnectAttr attr;
  attr.local = a.context->attributes().own.first;
  attr.peer = b.context->attributes().own.first;
  attr.port = 9;
  attr.qpn = a.qp->qpn;
  ASSERT_TRUE(of_a.connect(attr, asker, asker.conn).has_value());
  const auto end = SteadyClock::now() + kPatience;
  while (asker.kind < 0 && SteadyClock::now() < end) usleep(1000);
  EXPECT_EQ(asker.kind, static_cast<int>(cm::CmEventKind::kRejected));
  EXPECT_TRUE(asker.known);
  EXPECT_EQ(sink.requests, 1);
  of_b.close(*listener);
}

}  // namespace
}  // namespace weft::live
