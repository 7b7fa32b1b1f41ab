// What a NIC model asks for by queue pair: one whose context is missing holds up no other.
#include "core/transport/by_queue_pair.h"

#include <gtest/gtest.h>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

// Two connections; what a posts is taken off the wire and given to b when the test says so.
struct Two : TwoDevices {
  explicit Two(wire::Mode m) : TwoDevices(m) {
    from = {qa, a.create()};
    to = {qb, b.create()};
    connect(from[1], to[1]);
  }
  void send(std::size_t pair) {
    ASSERT_TRUE(a.post(from[pair], request(WrOpcode::kWrite, 0, 64, 0)));
    for (Side::Frame& f : intercept(a)) deliver(b, f);
  }
  // Packets that one queue pair of b owed.
  std::size_t owed(std::size_t pair) {
    std::size_t n = 0;
    for (wire::Burst burst = poll_control(b.device, to[pair], now); !burst.empty();
         burst = poll_control(b.device, to[pair], now)) {
      EXPECT_EQ(burst.qpn, to[pair]);
      b.collect(burst, answers);
      n += burst.packets.size();
    }
    return n;
  }
  std::vector<Qpn> from;
  std::vector<Qpn> to;
  std::vector<Side::Frame> answers;
};

// The first connection's ACK stands before the second's, and is not asked for: the second's leaves all the
// same, and later the first's; then nothing is owed.
TEST(ByQueuePair, AnAckLeavesWhileAnothersWaitsBeforeIt) {
  for (const wire::Mode mode : {wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic}) {
    Two w(mode);
    w.send(0);
    w.send(1);
    EXPECT_EQ(w.b.device.peek_control(), w.to[0]);
    EXPECT_EQ(w.owed(1), 1U);
    EXPECT_EQ(w.owed(1), 0U);
    EXPECT_EQ(w.b.device.peek_control(), w.to[0]);
    EXPECT_EQ(w.owed(0), 1U);
    EXPECT_EQ(w.b.device.peek_control(), kNoQpn);
    for (Side::Frame& f : w.answers) w.deliver(w.a, f);
    EXPECT_EQ(w.a.completions().size(), 2U);
  }
}

// The place of an ACK that was taken from the middle is void, or the next one's: no ACK leaves twice, and
// whoever takes everything in order finds no more than that.
TEST(ByQueuePair, AnAckThatWasTakenLeavesOnce) {
  for (const bool by_queue_pair : {true, false}) {
    Two w(wire::Mode::kRoce);
    w.send(0);
    w.send(1);
    EXPECT_EQ(w.owed(1), 1U);
    w.send(1);
    std::size_t n = 0;
    if (by_queue_pair) {
      n = w.owed(1) + w.owed(0);
    } else {
      for (wire::Burst x = w.b.device.poll_control(w.now); !x.empty(); x = w.b.device.poll_control(w.now)) {
        w.b.collect(x, w.answers);
        n += x.packets.size();
      }
    }
    EXPECT_EQ(n, 2U);
    EXPECT_EQ(w.b.device.peek_control(), kNoQpn);
    for (Side::Frame& f : w.answers) w.deliver(w.a, f);
    EXPECT_EQ(w.a.completions().size(), 3U);
    w.b.device.check_invariants();
  }
}

// Both time-outs are due. The second queue pair's context is there first: it repeats its packet, and then the
// first does.
TEST(ByQueuePair, ATimeOutFiresWhileAnothersWaits) {
  for (const wire::Mode mode : {wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic}) {
    Two w(mode);
    for (const std::size_t pair : {std::size_t{0}, std::size_t{1}})
      ASSERT_TRUE(w.a.post(w.from[pair], w.request(WrOpcode::kWrite, 0, 64, 0)));
    EXPECT_EQ(w.intercept(w.a).size(), 2U);  // lost
    while (w.a.device.next_deadline() > w.now) w.now = w.a.device.next_deadline();
    w.now = w.now.after(milliseconds(5));
    const Qpn first = pick_timer(w.a.device, w.now);
    const Qpn second = pick_timer(w.a.device, w.now);
    EXPECT_EQ(pick_timer(w.a.device, w.now), kNoQpn);
    EXPECT_NE(first, second);
    fire_timer(w.a.device, second, w.now);
    const wire::Burst burst = w.a.device.poll_transmit(w.now, {});
    ASSERT_EQ(burst.packets.size(), 1U);
    EXPECT_EQ(burst.qpn, second);
    EXPECT_TRUE(burst.packets[0].retransmission);
    fire_timer(w.a.device, first, w.now);
    EXPECT_EQ(w.a.device.poll_transmit(w.now, {}).qpn, first);
    w.run();
    EXPECT_EQ(w.a.completions().size(), 2U);
  }
}

// Acknowledged, and gone on, while it waited to be fired: nothing is repeated, and the next silence is
// noticed.
TEST(ByQueuePair, ATimerThatIsNoLongerDueOnlyStandsAgain) {
  Two w(wire::Mode::kIrn);
  ASSERT_TRUE(w.a.post(w.from[0], w.request(WrOpcode::kWrite, 0, 64, 0)));
  std::vector<Side::Frame> sent = w.intercept(w.a);
  w.now = w.now.after(milliseconds(5));
  const Qpn due = pick_timer(w.a.device, w.now);
  EXPECT_EQ(due, w.from[0]);
  for (Side::Frame& f : sent) w.deliver(w.b, f);
  EXPECT_EQ(w.owed(0), 1U);
  for (Side::Frame& f : w.answers) w.deliver(w.a, f);
  w.send(0);  // whose ACK is lost
  fire_timer(w.a.device, due, w.now);
  EXPECT_TRUE(w.a.device.poll_transmit(w.now, {}).empty());
  EXPECT_NE(w.a.device.next_deadline(), kNever);
  fire_timer(w.a.device, kNoQpn, w.now);
  w.run();
  EXPECT_EQ(w.a.completions().size(), 2U);
}

}  // namespace
}  // namespace weft
