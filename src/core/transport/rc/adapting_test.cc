// Time-outs that follow the path, as the soft NIC's do (Rto::kFloored): from 1 us to half a second, with
// jitter, and where the delay jumps. The path loses nothing, so whatever is sent twice is a time-out's
// mistake.
#include <gtest/gtest.h>

#include "core/transport/long_path.h"

namespace weft {
namespace {

constexpr int kMessages = 20;
constexpr std::uint32_t kPackets = 16;

class AdaptingTest : public ::testing::TestWithParam<wire::Mode> {
 protected:
  static DeviceConfig config() {
    DeviceConfig c = LongPath::live();
    c.max_ring = 1024;
    return c;
  }
  // Messages in rounds, all of them complete: what the time-outs sent needlessly.
  static std::uint64_t needless(LongPath& w, int rounds) {
    const std::uint64_t before = w.count(Counter::tx_retransmitted);
    for (int i = 0; i < rounds; ++i) {
      w.writes(kMessages, kPackets);
      EXPECT_EQ(w.complete(kMessages), std::size_t{kMessages});
    }
    return w.count(Counter::tx_retransmitted) - before;
  }
};

// Until an answer comes nothing is known, and only the oldest packet may be sent again, ever more rarely.
TEST_P(AdaptingTest, EveryDelayIsLearntFromTheFirstAnswer) {
  for (const Duration delay : {microseconds(1), microseconds(100), milliseconds(1), milliseconds(4),
                               milliseconds(5), milliseconds(20), milliseconds(100), milliseconds(500)}) {
    LongPath w(GetParam(), config());
    w.delay = delay;
    const std::uint64_t first = needless(w, 1);
    EXPECT_LE(first, delay <= milliseconds(4) ? 0U : 7U) << delay.us() << " us";
    EXPECT_EQ(needless(w, 10), 0U) << delay.us() << " us";
  }
}

// ACKs that come one by one tell nothing of which copy they answer: a guess that presumed more lost would
// send the whole window again, two packets for each.
TEST_P(AdaptingTest, AGuessSendsOnePacket) {
  DeviceConfig c = config();
  c.ack_coalesce = false;
  LongPath w(GetParam(), c);
  w.delay = milliseconds(20);
  w.spacing = microseconds(10);
  EXPECT_LE(needless(w, 1), 3U);
  EXPECT_EQ(needless(w, 3), 0U);
}

TEST_P(AdaptingTest, JitterIsLearntToo) {
  LongPath w(GetParam(), config());
  w.delay = milliseconds(10);
  w.jitter = milliseconds(2);
  needless(w, 3);
  const std::uint64_t timeouts = w.count(Counter::timeout_low) + w.count(Counter::timeout_high);
  needless(w, 20);
  EXPECT_EQ(w.count(Counter::timeout_low) + w.count(Counter::timeout_high), timeouts);
}

// The last time-out that was too short is found out by its answers: the window behind it is not sent again.
TEST_P(AdaptingTest, ADelayThatJumpsUpCostsAFewPackets) {
  LongPath w(GetParam(), config());
  w.delay = microseconds(20);
  w.spacing = microseconds(1);
  w.batch = microseconds(20);
  EXPECT_EQ(needless(w, 5), 0U);
  w.delay = milliseconds(40);
  EXPECT_LE(needless(w, 1), 10U);
  EXPECT_GE(w.count(Counter::timeout_spurious), 1U);
  EXPECT_EQ(needless(w, 20), 0U);
}

// The same with an ACK for each packet: the first of them may answer either copy of the oldest.
TEST_P(AdaptingTest, ANeedlessTimeOutDoesNotResendTheWindow) {
  DeviceConfig c = config();
  c.ack_coalesce = false;
  LongPath w(GetParam(), c);
  w.delay = microseconds(20);
  w.spacing = microseconds(1);
  EXPECT_EQ(needless(w, 5), 0U);
  w.delay = milliseconds(3);
  const std::uint64_t timeouts = w.count(Counter::timeout_low) + w.count(Counter::timeout_high);
  const std::uint64_t resent = needless(w, 1);
  const std::uint64_t struck = w.count(Counter::timeout_low) + w.count(Counter::timeout_high) - timeouts;
  EXPECT_GE(struck, 1U);
  EXPECT_LE(resent, 2 * struck);
}

// And if the whole end of a window is lost, one time-out finds all of it.
TEST_P(AdaptingTest, ALostTailCostsOneTimeOut) {
  LongPath w(GetParam(), config());
  w.delay = microseconds(100);
  w.spacing = microseconds(1);
  needless(w, 5);
  const Time since = w.now;
  int data = 0;
  w.loses = [&](const wire::Header& h) {
    return h.opcode != wire::kAcknowledge && ++data > 20 && w.now < since.after(microseconds(900));
  };
  w.writes(kMessages, kPackets);
  EXPECT_EQ(w.complete(kMessages), std::size_t{kMessages});
  EXPECT_EQ(w.count(Counter::timeout_low) + w.count(Counter::timeout_high), 1U);
  // The time-out, and then round trips: of the oldest, of the newest, of what is missing, of two windows
  // more.
  EXPECT_LE(w.now - since, milliseconds(1) + microseconds(7 * (200 + 128)));
}

// And if what names the missing packets is lost as well, the second time-out finds all of it: the receiver
// has the newest packet already, and says again what it misses.
TEST_P(AdaptingTest, ALostTailWhoseNackIsLostCostsTwoTimeOuts) {
  LongPath w(GetParam(), config());
  w.delay = microseconds(100);
  w.spacing = microseconds(1);
  needless(w, 5);
  const Time since = w.now;
  int data = 0;
  int nacks = 0;
  w.loses = [&](const wire::Header& h) {
    if (h.opcode == wire::kAcknowledge) return h.syndrome == wire::kSyndromeNakSequence && nacks++ == 0;
    return ++data > 20 && w.now < since.after(microseconds(900));
  };
  constexpr int kFew = 6;  // nothing new is left to send that would provoke a NACK
  w.writes(kFew, kPackets);
  EXPECT_EQ(w.complete(kFew), std::size_t{kFew});
  EXPECT_GT(nacks, 1);
  EXPECT_LE(w.count(Counter::timeout_low) + w.count(Counter::timeout_high), 2U);
}

TEST_P(AdaptingTest, ADelayThatJumpsDownIsFollowed) {
  LongPath w(GetParam(), config());
  w.delay = milliseconds(40);
  needless(w, 5);
  w.delay = microseconds(20);
  EXPECT_EQ(needless(w, 40), 0U);
  // A tail that is lost now goes again after the floor, not after what the path once took.
  int losses = 0;
  w.loses = [&](const wire::Header& h) { return h.opcode == wire::kWriteOnly && losses++ == 0; };
  const Time since = w.now;
  w.writes(1, 1);
  EXPECT_EQ(w.complete(1), 1U);
  EXPECT_LE(w.now - since, milliseconds(2));
}

// READ responses are timed by the responder, which may never send a request of its own.
TEST_P(AdaptingTest, AResponderLearnsAsWell) {
  LongPath w(GetParam(), config());
  w.delay = milliseconds(20);
  const auto read = [&] {
    w.post(w.request(WrOpcode::kRead, 0, 256 * kPackets, 0));
    EXPECT_EQ(w.complete(1), 1U);
    return w.b.device.counters().get(Counter::tx_retransmitted);
  };
  read();
  const std::uint64_t first = read();  // its end came after the answers to the first were acknowledged
  EXPECT_LE(first, 4U);
  std::uint64_t last = 0;
  for (int i = 0; i < 20; ++i) last = read();
  EXPECT_EQ(last, first);
  EXPECT_LE(w.count(Counter::timeout_read), 3U);
}

// A path with a credit: a guess that strikes must not shrink it, or little would be in flight for long.
TEST_P(AdaptingTest, AGuessDoesNotShrinkThePath) {
  DeviceConfig c = config();
  c.path_credit = Bytes{256 * 64};
  LongPath w(GetParam(), c);
  w.delay = milliseconds(20);
  needless(w, 1);
  const Time since = w.now;
  needless(w, 1);
  // 320 packets, 64 in a round trip of 40 ms.
  EXPECT_LE(w.now - since, milliseconds(7 * 40));
}

// A guess that has struck before the first charge was a try, and the charge comes when it is due: a program
// that never hears anything waits as long as it said.
TEST_P(AdaptingTest, AGuessThatWasTriedDelaysNoCharge) {
  LongPath w(GetParam(), config(), 17);  // 537 ms, longer than the first guess
  w.loses = [](const wire::Header&) { return true; };
  const Time since = w.now;
  w.writes(1, 1);
  std::vector<WcStatus> got;
  while (got.empty() && w.step()) got = w.a.statuses();
  ASSERT_EQ(got, std::vector{WcStatus::kRetryExceeded});
  EXPECT_EQ(w.now - since, nanoseconds(4096LL << 17) * 8);
}

// Whatever backs off, each retry that verbs counts has sent something.
TEST_P(AdaptingTest, TheLastRetryWasATryToo) {
  LongPath w(GetParam(), config(), 12);  // 16.8 ms
  w.delay = microseconds(20);
  needless(w, 1);
  w.loses = [](const wire::Header&) { return true; };
  w.sent_by_a.clear();
  const Time since = w.now;
  w.writes(1, 1);
  std::vector<WcStatus> got;
  while (got.empty() && w.step()) got = w.a.statuses();
  ASSERT_EQ(got, std::vector{WcStatus::kRetryExceeded});
  const Duration timeout = nanoseconds(4096LL << 12);
  EXPECT_EQ(w.now - since, timeout * 8);
  for (int i = 0; i < 7; ++i) {
    const auto tried = std::count_if(w.sent_by_a.begin(), w.sent_by_a.end(), [&](const auto& s) {
      return s.first >= since.after(timeout * i) && s.first < since.after(timeout * (i + 1));
    });
    EXPECT_GE(tried, 1) << i;
  }
}

// And a program whose retries together are shorter than the first guess has one try before it is told.
TEST_P(AdaptingTest, TheFirstGuessIsATryToo) {
  LongPath w(GetParam(), config(), 8);  // 1 ms, eight times
  w.delay = microseconds(20);
  int losses = 0;
  w.loses = [&](const wire::Header& h) { return h.opcode == wire::kWriteOnly && losses++ == 0; };
  w.writes(1, 1);
  EXPECT_EQ(w.complete(1), 1U);
  EXPECT_EQ(w.count(Counter::retries_charged), 1U);
}

INSTANTIATE_TEST_SUITE_P(Modes, AdaptingTest, ::testing::Values(wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
