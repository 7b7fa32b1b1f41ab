// The send window counts packets of all queue pairs, and lets out whom it has no room for, whole.
#include "sim/nic/send_window.h"

#include <gtest/gtest.h>

namespace weft::sim {
namespace {

TEST(SendWindow, IsNotThereWithoutEntries) {
  SendWindow none(0, 4);
  none.in_flight(1, 7);
  EXPECT_FALSE(none.has(1));
}

TEST(SendWindow, HoldsWhatIsInFlight) {
  SendWindow w(8, 4);
  w.in_flight(0, 5);
  w.in_flight(1, 3);
  EXPECT_EQ(w.used(), 8U);
  EXPECT_TRUE(w.has(0));
  EXPECT_TRUE(w.has(1));
  EXPECT_TRUE(w.has(2));  // nothing of it is in flight
  w.in_flight(0, 1);
  EXPECT_EQ(w.used(), 4U);
}

// Three packets of 2 do not fit beside 6: none of them stands in the window, and others may have the room.
// It comes back when nothing of it is in flight, not before.
TEST(SendWindow, AQueuePairWithoutRoomStaysOutsideUntilNothingOfItIsInFlight) {
  SendWindow w(8, 4);
  w.in_flight(0, 6);
  w.in_flight(2, 2);
  w.in_flight(2, 3);
  EXPECT_FALSE(w.has(2));
  EXPECT_EQ(w.used(), 6U);
  w.in_flight(0, 0);
  w.in_flight(2, 1);
  EXPECT_FALSE(w.has(2));
  EXPECT_EQ(w.used(), 0U);
  w.in_flight(2, 0);
  EXPECT_TRUE(w.has(2));
  w.in_flight(2, 8);
  EXPECT_TRUE(w.has(2));
  EXPECT_EQ(w.used(), 8U);
}

}  // namespace
}  // namespace weft::sim
