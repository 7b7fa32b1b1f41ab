// Links and switches against closed forms: a FIFO of equal frames is arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/fabric/frame.h"
#include "sim/fabric/port.h"
#include "sim/fabric/switch.h"

namespace weft::sim {
namespace {

// The far end of a link: notes which packet arrived when.
struct Catcher {
  explicit Catcher(Fabric& f) : fabric(f) {}
  void arrive(const Transit& t, std::uint32_t port) {
    const Packet& p = fabric.packets.at(t.packet);
    times.push_back(fabric.timeline.now().ps);
    names.push_back(p.flow);
    corrupt += p.corrupt ? 1 : 0;
    last_port = port;
    fabric.release(t.packet);
  }
  Fabric& fabric;
  std::vector<std::int64_t> times;
  std::vector<std::uint32_t> names;
  int corrupt = 0;
  std::uint32_t last_port = 0;
};

PacketRef make(Fabric& f, std::uint32_t frame, std::uint32_t name = 0, HostId to = {}) {
  const PacketRef ref = f.packets.acquire();
  Packet& p = f.packets.at(ref);
  p = Packet{};
  p.frame = frame;
  p.flow = name;
  p.destination = to;
  return ref;
}

// n frames of s bytes sent at once arrive at (k + 1) s / rate + delay.
TEST(Port, FramesArriveAfterSerialisationAndPropagation) {
  for (const std::uint64_t bps : {100'000'000'000ULL, 40'000'000'000ULL, 7'000'000'000ULL}) {
    Fabric f;
    Port port(f, {.rate = {bps}, .delay = microseconds(1), .queue = {}, .impair = {}, .inputs = 1}, Prng(1));
    Catcher c(f);
    port.connect<&Catcher::arrive>(c, 5);
    for (std::uint32_t k = 0; k < 40; ++k) ASSERT_TRUE(port.send(make(f, 1100, k)));
    const Duration one = Rate{bps}.time_for(Bytes{1100});
    EXPECT_EQ(port.queued().n, 39U * 1100U) << "the first has begun";
    EXPECT_EQ(port.free_at().ps, one.ps);
    f.timeline.run(kNever, 1000);
    ASSERT_EQ(c.times.size(), 40U);
    for (std::uint32_t k = 0; k < 40; ++k) {
      EXPECT_EQ(c.times[k], (k + 1) * one.ps + microseconds(1).ps);
      EXPECT_EQ(c.names[k], k);
    }
    EXPECT_EQ(c.last_port, 5U);
    EXPECT_EQ(f.timeline.events(), 40U + 39U)
        << "an arrival each, and an end of serialisation while others wait";
    EXPECT_EQ(port.counters().packets, 40U);
    EXPECT_EQ(port.counters().bytes, 40U * 1100U);
    EXPECT_EQ(port.queued().n, 0U);
    EXPECT_EQ(f.packets.in_use(), 0U);
  }
}

TEST(Port, AHundredGigabitByteTakesEightyPicoseconds) {
  Fabric f;
  Port port(f, {.rate = gigabits(100), .delay = {}, .queue = {}, .impair = {}, .inputs = 1}, Prng(1));
  Catcher c(f);
  port.connect<&Catcher::arrive>(c, 0);
  port.send(make(f, 1));
  f.timeline.run(kNever, 10);
  EXPECT_EQ(c.times, std::vector<std::int64_t>{80});
}

// On a long wire a queue's occupancy counts packets that have not begun to leave. It does not count packets
// on the wire.
TEST(Port, TheBoundCountsWhatHasNotBegunToLeave) {
  Fabric f;
  // 1000 bytes take 80 ns; the wire is 10 us long; three frames fit behind the one that is leaving.
  Port port(f, {.rate = gigabits(100), .delay = microseconds(10), .queue = {3000}, .impair = {}, .inputs = 1},
            Prng(1));
  Catcher c(f);
  port.connect<&Catcher::arrive>(c, 0);
  struct Feeder {
    void on_wake(Time) { accepted.push_back(port.send(make(fabric, 1000))); }
    Fabric& fabric;
    Port& port;
    std::vector<bool> accepted;
  } feeder{f, port, {}};
  const ActorId actor = f.timeline.add<&Feeder::on_wake>(feeder);
  for (int i = 0; i < 6; ++i) f.timeline.wake(actor, Time{0});
  f.timeline.wake(actor, Time{79'999});   // still three waiting
  f.timeline.wake(actor, Time{80'001});   // the second has begun
  f.timeline.wake(actor, Time{80'001});   // and was replaced
  f.timeline.wake(actor, Time{240'001});  // two more have
  f.timeline.wake(actor, Time{240'001});
  f.timeline.wake(actor, Time{240'001});
  f.timeline.run(kNever, 1000);
  EXPECT_EQ(feeder.accepted,
            (std::vector<bool>{true, true, true, true, false, false, false, true, false, true, true, false}));
  EXPECT_EQ(port.counters().dropped_full, 5U);
  EXPECT_EQ(port.counters().longest_queue, 3000U);
  EXPECT_EQ(c.times.size(), 7U);
  EXPECT_EQ(f.packets.in_use(), 0U);
}

TEST(Switch, AStarAddsOneSerialisationPerHop) {
  Fabric f;
  const PortConfig link{
      .rate = gigabits(100), .delay = microseconds(1), .queue = {}, .impair = {}, .inputs = 1};
  Port up(f, link, Prng(1));
  Port down(f, link, Prng(1));
  const Attachment where{.switch_of = std::vector<std::uint16_t>(8, 0),
                         .port_of = std::vector<std::uint16_t>(8, 0)};
  Switch s(f, {}, Routes(where, 0, Routing::kEcmp, Prng(1)), Prng(1));
  Catcher c(f);
  up.connect<&Switch::arrive>(s, 0);
  s.add_port(down);
  down.connect<&Catcher::arrive>(c, 0);
  for (int k = 0; k < 10; ++k) up.send(make(f, 1000, 0, HostId{7}));
  up.send(make(f, 1000, 0, HostId{8}));  // there is no such host
  f.timeline.run(kNever, 1000);
  ASSERT_EQ(c.times.size(), 10U);
  for (int k = 0; k < 10; ++k) EXPECT_EQ(c.times[static_cast<std::size_t>(k)], (k + 2) * 80'000 + 2'000'000);
  EXPECT_EQ(s.counters().dropped_no_route, 1U);
  EXPECT_EQ(f.packets.in_use(), 0U);
}

// Two inputs at full rate into one output with room for b frames behind the one that leaves. In every slot
// two frames come and one leaves, so after n slots the output has sent or holds n + b of the 2n, and has
// dropped the rest.
TEST(Switch, AnOverloadedOutputDropsTheExcessAndNoMore) {
  constexpr int kSlots = 50;
  constexpr int kRoom = 8;
  Fabric f;
  const PortConfig in{
      .rate = gigabits(100), .delay = microseconds(1), .queue = {}, .impair = {}, .inputs = 1};
  Port a(f, in, Prng(1));
  Port b(f, in, Prng(1));
  Port down(f, in, Prng(1));
  Port back_a(f, in, Prng(1));
  Port back_b(f, in, Prng(1));
  const Attachment where{.switch_of = {0}, .port_of = {0}};
  SwitchConfig config;
  config.queue = {kRoom * 1000};
  Switch s(f, config, Routes(where, 0, Routing::kEcmp, Prng(1)), Prng(1));
  Catcher c(f);
  for (Port* p : {&down, &back_a, &back_b}) s.add_port(*p);
  a.connect<&Switch::arrive>(s, 1);
  b.connect<&Switch::arrive>(s, 2);
  down.connect<&Catcher::arrive>(c, 0);
  for (std::uint32_t k = 0; k < kSlots; ++k) {
    a.send(make(f, 1000, 1));
    b.send(make(f, 1000, 2));
  }
  f.timeline.run(kNever, 10'000);
  const std::uint64_t kept = kSlots + kRoom - 1;
  EXPECT_EQ(c.times.size(), kept);
  EXPECT_EQ(s.counters().dropped_full, 2 * kSlots - kept);
  EXPECT_EQ(down.counters().longest_queue, std::uint64_t{kRoom} * 1000U);
  for (std::size_t k = 1; k < c.times.size(); ++k) EXPECT_EQ(c.times[k] - c.times[k - 1], 80'000);
  EXPECT_EQ(f.packets.in_use(), 0U);
}

// Every packet is delivered, lost, or delivered twice; the pool ends empty; the same seed does the same.
TEST(Port, AnImpairedLinkConservesPackets) {
  impair::ImpairConfig bad;
  bad.loss = 100'000;
  bad.duplicate = 50'000;
  bad.reorder = 100'000;
  bad.reorder_by = microseconds(3);
  bad.corrupt = 20'000;
  std::vector<std::uint32_t> first;
  for (int round = 0; round < 2; ++round) {
    Fabric f;
    Port port(f, {.rate = gigabits(100), .delay = microseconds(1), .queue = {}, .impair = bad, .inputs = 1},
              Prng(42));
    Catcher c(f);
    port.connect<&Catcher::arrive>(c, 0);
    for (std::uint32_t k = 0; k < 5000; ++k) {
      const PacketRef ref = make(f, 1000, k);
      f.packets.at(ref).payload = f.payloads.acquire();
      port.send(ref);
    }
    f.timeline.run(kNever, 100'000);
    const WireCounters& n = port.wire_counters();
    EXPECT_EQ(c.names.size(), 5000U - n.dropped_loss + n.duplicated);
    EXPECT_GT(n.dropped_loss, 400U);
    EXPECT_LT(n.dropped_loss, 600U);
    EXPECT_GT(n.duplicated, 150U);
    EXPECT_GT(n.delayed, 350U);
    EXPECT_EQ(static_cast<std::uint64_t>(c.corrupt), n.corrupted);
    EXPECT_GT(n.corrupted, 50U);
    EXPECT_FALSE(std::is_sorted(c.names.begin(), c.names.end()));
    EXPECT_TRUE(std::is_sorted(c.times.begin(), c.times.end()));
    EXPECT_EQ(f.packets.in_use(), 0U);
    EXPECT_EQ(f.payloads.in_use(), 0U);
    if (round == 0) first = c.names;
    EXPECT_EQ(c.names, first);
  }
}

// docs/protocol/packets.md#frame by hand: a full WRITE First of 1024 bytes and an ACK.
TEST(Frame, CountsWhatEthernetCarries) {
  wire::Header h;
  h.opcode = wire::kWriteFirst;
  EXPECT_EQ(frame_bytes(h, 1024, Framing::kFrame), 14U + 20 + 8 + 12 + 16 + 1024 + 4);
  EXPECT_EQ(frame_bytes(h, 1024, Framing::kWire), 14U + 20 + 8 + 12 + 16 + 1024 + 4 + 24);
  h.opcode = wire::kSendOnly;
  EXPECT_EQ(frame_bytes(h, 5, Framing::kFrame), 14U + 20 + 8 + 12 + 5 + 3 + 4);
  h.opcode = wire::kAcknowledge;
  h.syndrome = wire::kSyndromeAck;
  EXPECT_EQ(frame_bytes(h, 0, Framing::kFrame), 62U);
}

}  // namespace
}  // namespace weft::sim
