// A wire that is never empty: somebody sends faster than this end reads. Time-outs wait until what had
// arrived by then is read, because it may be what they wait for; they do not wait until nothing comes any
// more.
#include <gtest/gtest.h>

#include "live/engine/by_hand.h"

namespace weft::live {
namespace {

using by_hand::End;
using by_hand::MemoryWire;

class NeverEmpty : public ::testing::TestWithParam<wire::Mode> {
 protected:
  NeverEmpty() {
    a.wire->peer = b.wire;
    b.wire->peer = a.wire;
    qa = a.create();
    qb = b.create();
    a.connect(qa, b, qb, 4096, 0, kTimeout);
    b.connect(qb, a, qa, 4096, 0, kTimeout);
  }
  // Each turn reads a train of so many bytes. Once a time-out has passed, two socketfuls are enough until it
  // is looked at: the first may have begun before, and what lay in the socket by then has been read with the
  // second. A look that comes late starts it over, once.
  template <class Turn>
  void expect_repeated(std::uint64_t train, const Turn& turn) {
    const std::uint64_t enough = 2 * (a.wire->facts().receive_buffer / train + 1);
    for (int look = 0; look < 2; ++look) {
      const Time passed = a.nic->clock().now() + kLongest;
      for (std::uint64_t turns = 0; turns < enough && repeated() == 0;) {
        if (a.nic->clock().now() > passed) ++turns;
        ASSERT_NO_FATAL_FAILURE(turn());
      }
    }
    EXPECT_GT(repeated(), 0U);
  }
  std::uint64_t repeated() { return a.nic->device().counters().get(Counter::tx_retransmitted); }

  static constexpr std::uint8_t kTimeout = 10;                  // 4.2 ms,
  static constexpr Duration kLongest = microseconds(4195) * 4;  // of which a NIC may make four times as much
  End a{1, GetParam()};
  End b{2, GetParam()};
  Qp* qa = nullptr;
  Qp* qb = nullptr;
};

TEST_P(NeverEmpty, LetsTimeOutsOfAShardFire) {
  a.wire->lose = 1;
  a.post(qa, WrOpcode::kWrite, b, 64);
  a.wire->junk = MemoryWire::kForEver;
  Time now = a.nic->clock().now();
  for (int i = 0; i < 100; ++i) a.nic->shard().step(now = now + milliseconds(10), *a.wire);
  EXPECT_GT(repeated(), 0U);
}

TEST_P(NeverEmpty, LetsTimeOutsOfAProgramThatPollsFire) {
  a.wire->lose = 1;
  a.post(qa, WrOpcode::kWrite, b, 64);
  a.wire->junk = MemoryWire::kForEver;
  expect_repeated(60'000, [&] { EXPECT_EQ(a.poll(), 0U); });
}

// Every poll of this program finds a message.
TEST_P(NeverEmpty, LetsTimeOutsOfAProgramThatReceivesFire) {
  Qp* const inward = a.create();
  Qp* const outward = b.create();
  a.connect(inward, b, outward);
  b.connect(outward, a, inward);
  a.wire->lose = 1;
  a.post(qa, WrOpcode::kWrite, b, 64);
  expect_repeated(4096, [&] {
    a.receive(inward);
    b.post(outward, WrOpcode::kSend, a, 4096);
    b.poll();
    ASSERT_EQ(a.poll(1), 1U);
  });
}

// The answer lies in the socket, behind half of what fits there.
TEST_P(NeverEmpty, DoesNotMakeATimeOutPassByAnAnswerThatHasArrived) {
  a.post(qa, WrOpcode::kWrite, b, 64);
  b.poll();
  b.poll();
  ASSERT_EQ(b.wire->sent, 1);
  a.wire->junk = static_cast<int>(a.wire->facts().receive_buffer / 60'000 / 2);
  a.wire->junk_first = true;
  Time now = a.nic->shard().next_deadline();
  ASSERT_NE(now, kNever);
  for (int i = 0; i < 100; ++i) a.nic->shard().step(now = now + microseconds(5), *a.wire, 1);
  EXPECT_EQ(a.wire->junk, 0);
  EXPECT_EQ(repeated(), 0U);
  EXPECT_EQ(a.poll(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Modes, NeverEmpty,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

// Nobody answers the question what the peer speaks.
TEST(Asking, EndsThoughTheWireIsNeverEmpty) {
  End a(1, std::nullopt);
  a.wire->junk = MemoryWire::kForEver;
  const cm::Known known = a.nic->ask(wire::Address::v4(10, 0, 0, 2), {0x4711});
  EXPECT_NE(known.knowledge, cm::Knowledge::kAsking);
}

}  // namespace
}  // namespace weft::live
