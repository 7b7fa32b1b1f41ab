#include "sim/nic/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::sim {
namespace {

using ::testing::HasSubstr;

Design small() {
  Design d;
  d.name = "small";
  d.buffers = {{1000}, {100}};
  d.scheduler.entry_bytes = 2;
  d.context.bytes = 100;
  return d;
}
std::uint64_t chip(const Design& d, std::uint64_t n) { return memory_of(d, n)->total(Place::kChip); }

TEST(Memory, OfContextsOnTheChipGrowsWithTheQueuePairs) {
  const Design d = small();
  EXPECT_EQ(chip(d, 10), 10U * (100 + 2) + 1100U);
  EXPECT_EQ(chip(d, 20) - chip(d, 10), 10U * 102U);
}

TEST(Memory, AChangedPartChangesTheFigureByWhatItTakes) {
  const std::uint64_t before = chip(small(), 10);
  Design d = small();
  d.context.stride = 128;
  EXPECT_EQ(chip(d, 10) - before, 10U * 28U);
  d = small();
  d.wqe.send_cache = 8;
  d.wqe.receive_cache = 4;
  EXPECT_EQ(chip(d, 10) - before, 10U * 12U * 64U);
  d = small();
  d.recovery.bitmaps = Keeps::kChip;
  d.recovery.slots = 500;
  EXPECT_EQ(chip(d, 10) - before, 10U * 5U * 500U / 8U);
  d.recovery.request_entry = 24;
  EXPECT_EQ(memory_of(d, 10)->bytes("outstanding requests"), 10U * 500U * 24U);
  d = small();
  d.translation.on_chip = true;
  EXPECT_EQ(chip(d, 10) - before, 8U << 20U);
  d = small();
  d.scheduler.memory = {300};
  EXPECT_EQ(chip(d, 10) - before, 300U - 20U);
}

// SRNIC §3.2.2: a reordering buffer for each queue pair grows with them, one that all share does not.
TEST(Memory, OfReorderingBuffersFollowsFromWhoseTheyAre) {
  Design d = small();
  const std::uint64_t none = chip(d, 10);
  d.recovery.reorder_buffer = {512 * 1024};
  d.recovery.reorder = Reorder::kPerQueuePair;
  EXPECT_EQ(chip(d, 10) - none, 10U * 512U * 1024U);
  EXPECT_EQ(memory_of(d, 10'000)->bytes("reordering buffers"), std::uint64_t{10'000} * 512 * 1024);
  d.recovery.reorder = Reorder::kShared;
  EXPECT_EQ(chip(d, 10) - none, 512U * 1024U);
  EXPECT_EQ(memory_of(d, 10'000)->bytes("reordering buffer"), 512U * 1024U);
  EXPECT_EQ(memory_of(d, 10'000)->bytes("reordering buffers"), 0U);
}

TEST(Memory, WhatMovesToTheHostLeavesTheChip) {
  Design d = small();
  d.recovery.bitmaps = Keeps::kHost;
  d.recovery.slots = 8;
  d.translation.cache = 10;
  d.context.policy = ContextPolicy::kFcfs;
  d.context.cache = 3;
  const auto a = *memory_of(d, 1000);
  EXPECT_EQ(a.bytes("bitmaps", Place::kHost), 5000U);
  EXPECT_EQ(a.bytes("MTT", Place::kHost), 8U << 20U);
  EXPECT_EQ(a.bytes("MTT cache"), 80U);
  EXPECT_EQ(a.bytes("contexts", Place::kHost), 100'000U);
  EXPECT_EQ(a.bytes("context cache"), 300U);
  d.context.home = Home::kBoard;
  EXPECT_EQ(memory_of(d, 1000)->total(Place::kBoard), 100'000U);
}

// csRNA §4.7: with the fields that the paper names one unit of capacity costs about 40 bytes; the tickets
// that keep the order cost more.
TEST(Memory, OfPendingRequestsIsLinearInTheCapacity) {
  Design d = small();
  d.context.policy = ContextPolicy::kNonBlocking;
  d.context.cache = 300;
  d.context.sq_table = 1000;
  const ContextDesign& c = d.context;
  EXPECT_NEAR(static_cast<double>(bits_per_capacity(c, true)) / 8, 40, 2);
  EXPECT_GT(bits_per_capacity(c, false), bits_per_capacity(c, true));
  const auto a = *memory_of(d, 100);
  EXPECT_EQ((a.bytes("index FIFOs") + a.bytes("pending FIFO") + a.bytes("pending record table")) * 8,
            bits_per_capacity(c, false) * 16);
  EXPECT_EQ(a.bytes("SQ address table"), 10'000U);
  EXPECT_EQ(chip(d, 100) - chip(d, 50), 50U * 2U) << "only the schedule queue grows";
}

TEST(Memory, BeyondWhatADesignCanHaveIsRefusedInOneSentence) {
  Design d = small();
  d.context.most = 127;
  EXPECT_TRUE(memory_of(d, 127));
  EXPECT_THAT(memory_of(d, 128).error().message, HasSubstr("1 to 127 queue pairs, not 128"));
  d.context.most = 0;
  d.context.policy = ContextPolicy::kNonBlocking;
  d.context.cache = 1;
  d.context.sq_table = 100;
  EXPECT_FALSE(memory_of(d, 101)) << "an address has no place";
}

// SRNIC's Equation (1), where nothing but contexts needs memory.
TEST(Memory, AMemoryHoldsAsManyQueuePairsAsFit) {
  Design d = small();
  d.buffers = {};
  d.scheduler.entry_bytes = 0;
  d.buffers = {{0}, {0}};
  d.context.bytes = 375;
  EXPECT_EQ(queue_pairs_within(d, {2U << 20U}), 5592U);
  EXPECT_EQ(queue_pairs_within(small(), {1000}), 0U);
  for (const std::uint64_t bytes : {2000U, 5000U, 123'456U}) {
    const std::uint64_t n = queue_pairs_within(small(), {bytes});
    EXPECT_LE(chip(small(), n), bytes);
    EXPECT_GT(chip(small(), n + 1), bytes);
  }
}

}  // namespace
}  // namespace weft::sim
