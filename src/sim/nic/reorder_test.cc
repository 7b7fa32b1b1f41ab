#include "sim/nic/reorder.h"

#include <gtest/gtest.h>

namespace weft::sim {
namespace {

RecoveryDesign with(Reorder reorder) {
  RecoveryDesign d;
  d.reorder = reorder;
  d.reorder_buffer = {8192};
  return d;
}

TEST(ReorderBuffers, OfEachQueuePairAreFullOneByOne) {
  ReorderBuffers b(with(Reorder::kPerQueuePair), 3);
  b.waiting(0, 8192);
  EXPECT_FALSE(b.has_room(0, 1));
  EXPECT_TRUE(b.has_room(1, 8192));
  EXPECT_FALSE(b.has_room(1, 8193));
  b.waiting(0, 4096);
  EXPECT_TRUE(b.has_room(0, 4096));
  EXPECT_EQ(b.used(), 4096U);
}

TEST(ReorderBuffers, AreFullForAllWhereAllShareOne) {
  ReorderBuffers b(with(Reorder::kShared), 3);
  b.waiting(0, 4096);
  b.waiting(2, 2048);
  EXPECT_TRUE(b.has_room(1, 2048));
  EXPECT_FALSE(b.has_room(1, 2049));
  b.waiting(0, 0);
  EXPECT_TRUE(b.has_room(1, 6144));
}

TEST(ReorderBuffers, ThatAreNotThereBoundNothing) {
  RecoveryDesign none;
  ReorderBuffers b(none, 3);
  b.waiting(0, 1U << 30U);
  EXPECT_TRUE(b.has_room(0, 4096));
  EXPECT_EQ(b.used(), 0U);
}

}  // namespace
}  // namespace weft::sim
