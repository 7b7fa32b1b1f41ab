// Every pattern of losses among the first eight packets, data and acknowledgements of both directions counted
// together, for every operation and mode: the message arrives whole, once, and completes; nothing is left
// behind. What cannot be proven on paper can be tried, if it is small enough.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

constexpr int kPackets = 8;  // with retry_cnt 7, eight losses can still be made up for

struct Case {
  wire::Mode mode;
  WrOpcode op;
  const char* name;
};

class ExhaustiveTest : public ::testing::TestWithParam<Case> {};

bool receives(WrOpcode op) {
  return op == WrOpcode::kSend || op == WrOpcode::kSendImm || op == WrOpcode::kWriteImm;
}
bool atomic(WrOpcode op) { return op == WrOpcode::kCompareSwap || op == WrOpcode::kFetchAdd; }

TEST_P(ExhaustiveTest, EveryPatternOfLossesIsRepaired) {
  const Case& c = GetParam();
  const std::uint32_t length = atomic(c.op) ? 8 : 900;  // four packets
  for (std::uint64_t pattern = 0; pattern < (1U << kPackets); ++pattern) {
    SCOPED_TRACE("losses " + std::to_string(pattern));
    TwoDevices w(c.mode);
    w.lose_pattern = pattern;
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
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const wire::Mode m : {wire::Mode::kRoce, wire::Mode::kIrn}) {
    const bool roce = m == wire::Mode::kRoce;
    all.push_back({m, WrOpcode::kWrite, roce ? "roce_write" : "irn_write"});
    all.push_back({m, WrOpcode::kWriteImm, roce ? "roce_write_imm" : "irn_write_imm"});
    all.push_back({m, WrOpcode::kSend, roce ? "roce_send" : "irn_send"});
    all.push_back({m, WrOpcode::kSendImm, roce ? "roce_send_imm" : "irn_send_imm"});
    all.push_back({m, WrOpcode::kRead, roce ? "roce_read" : "irn_read"});
    all.push_back({m, WrOpcode::kCompareSwap, roce ? "roce_compare_swap" : "irn_compare_swap"});
    all.push_back({m, WrOpcode::kFetchAdd, roce ? "roce_fetch_add" : "irn_fetch_add"});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Operations, ExhaustiveTest, ::testing::ValuesIn(cases()),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace weft
