// Whatever the network does to the first eight packets, data and acknowledgements of both directions counted
// together, for every operation, mode and variant: every pattern of losses, every pattern of duplications,
// every packet late by one to eight others (one is the swap of neighbours). The messages arrive whole, once,
// and complete; nothing is left behind. What cannot be proven on paper can be tried, if it is small enough.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/transport/loss/scheme.h"
#include "core/transport/two_devices.h"

namespace weft {
namespace {

constexpr int kPackets = 8;  // with retry_cnt 7, eight losses can still be made up for

struct Case {
  const LossScheme* scheme;
  WrOpcode op;
  std::string name;
};

class ExhaustiveTest : public ::testing::TestWithParam<Case> {
 protected:
  // A world in which two of this case's requests are posted; `impair` says what the network does.
  template <class Impair>
  void play(Impair impair);
};

bool receives(WrOpcode op) {
  return op == WrOpcode::kSend || op == WrOpcode::kSendImm || op == WrOpcode::kWriteImm;
}
bool atomic(WrOpcode op) { return op == WrOpcode::kCompareSwap || op == WrOpcode::kFetchAdd; }

template <class Impair>
void ExhaustiveTest::play(Impair impair) {
  const Case& c = GetParam();
  const std::uint32_t length = atomic(c.op) ? 8 : 900;  // four packets
  DeviceConfig config;
  config.recovery = c.scheme;
  TwoDevices w(c.scheme->mode, config);
  impair(w);
  for (std::size_t i = 0; i < 2048; ++i) {
    w.a.bytes()[i] = static_cast<std::uint8_t>(i * 7 + 1);
    w.b.bytes()[8192 + i] = static_cast<std::uint8_t>(i * 5 + 3);
  }
  w.b.set_word(w.b.mr.region, 16384, 40);
  if (receives(c.op)) {
    for (std::uint64_t i = 0; i < 2; ++i)
      ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 1024 * i, 1024, i)));
  }
  const std::uint64_t remote = atomic(c.op) ? 16384 : c.op == WrOpcode::kRead ? 8192 : 0;
  for (std::uint64_t i = 0; i < 2; ++i) {
    SendWr r = w.request(c.op, 1024 * i, length, atomic(c.op) ? remote : remote + 1024 * i);
    r.compare_or_add = c.op == WrOpcode::kCompareSwap ? 40 : 2;
    r.swap = 77;
    w.post(r);
  }
  w.run();
  const std::vector<Completion> done = w.a.completions();
  ASSERT_EQ(done.size(), 2U);
  for (std::uint64_t i = 0; i < 2; ++i) {
    ASSERT_EQ(done[i].status, WcStatus::kSuccess);
    ASSERT_EQ(done[i].wr_id, i);
  }
  if (atomic(c.op)) {
    const bool add = c.op == WrOpcode::kFetchAdd;
    ASSERT_EQ(w.b.atomics_executed, 2);
    ASSERT_EQ(w.b.word(w.b.mr.region, 16384), add ? 44U : 77U);
    ASSERT_EQ(w.a.word(w.a.mr.region, 0), 40U);
    ASSERT_EQ(w.a.word(w.a.mr.region, 1024), add ? 42U : 77U);
  } else {
    for (std::size_t at : {0U, 1024U}) {
      const auto mine = w.a.bytes().begin() + static_cast<std::ptrdiff_t>(at);
      const auto theirs = w.b.bytes().begin() + static_cast<std::ptrdiff_t>(remote + at);
      ASSERT_TRUE(std::equal(mine, mine + length, theirs));
    }
  }
  ASSERT_EQ(w.b.completions().size(), receives(c.op) ? 2U : 0U);
  ASSERT_EQ(w.a.device.loss_blocks_in_use(), 0U);
  ASSERT_EQ(w.b.device.loss_blocks_in_use(), 0U);
  ASSERT_EQ(w.a.device.counters().get(Counter::cq_overflow), 0U);
}

TEST_P(ExhaustiveTest, EveryPatternOfLossesIsRepaired) {
  for (std::uint64_t pattern = 0; pattern < (1U << kPackets); ++pattern) {
    SCOPED_TRACE("losses " + std::to_string(pattern));
    play([&](TwoDevices& w) { w.lose_pattern = pattern; });
  }
}

TEST_P(ExhaustiveTest, EveryPatternOfDuplicatesIsHarmless) {
  for (std::uint64_t pattern = 1; pattern < (1U << kPackets); ++pattern) {
    SCOPED_TRACE("duplicates " + std::to_string(pattern));
    play([&](TwoDevices& w) { w.copy_pattern = pattern; });
  }
}

TEST_P(ExhaustiveTest, EveryLatePacketIsHarmless) {
  for (int packet = 1; packet <= kPackets; ++packet) {
    for (int by = 1; by <= kPackets; ++by) {
      for (std::uint64_t copies : {0U, 0xFFU}) {
        SCOPED_TRACE("packet " + std::to_string(packet) + " late by " + std::to_string(by));
        play([&](TwoDevices& w) {
          w.late_packet = packet;
          w.late_by = by;
          w.copy_pattern = copies;
        });
      }
    }
  }
}

std::vector<Case> cases() {
  constexpr std::pair<WrOpcode, const char*> kOperations[] = {
      {WrOpcode::kWrite, "write"},       {WrOpcode::kWriteImm, "write_imm"},
      {WrOpcode::kSend, "send"},         {WrOpcode::kSendImm, "send_imm"},
      {WrOpcode::kRead, "read"},         {WrOpcode::kCompareSwap, "compare_swap"},
      {WrOpcode::kFetchAdd, "fetch_add"}};
  std::vector<Case> all;
  for (const LossScheme* scheme : loss_schemes()) {
    std::string name = scheme->name;
    std::replace(name.begin(), name.end(), '-', '_');
    for (const auto& [op, text] : kOperations) all.push_back({scheme, op, name + "_" + text});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Operations, ExhaustiveTest, ::testing::ValuesIn(cases()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace weft
