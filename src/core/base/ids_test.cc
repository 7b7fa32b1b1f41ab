// Ids have identity and order and nothing else. Most of it is a matter of what must not compile.
#include "core/base/ids.h"

#include <gtest/gtest.h>

#include <concepts>
#include <set>

namespace weft {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a == b;
};
static_assert(!std::convertible_to<Qpn, Key> && !std::convertible_to<Key, RegionId> &&
              !std::convertible_to<int, Qpn>);
static_assert(!Comparable<Qpn, Key> && !Comparable<Qpn, int> && Comparable<Qpn, Qpn>);
static_assert(!Addable<Qpn, int> && !Addable<Qpn, Qpn>);
static_assert(sizeof(Qpn) == 4 && sizeof(Key) == 4, "ids cost what the integer costs");

TEST(Ids, CanKeyAnOrderedTable) {
  const std::set<Qpn> table = {Qpn{3}, Qpn{1}, Qpn{2}, Qpn{3}};
  EXPECT_EQ(table.size(), 3U);
  EXPECT_EQ(table.begin()->v, 1U);
  EXPECT_EQ(table.rbegin()->v, 3U);
}

// On the wire a queue pair number has 24 bits, so no packet can name "none".
TEST(Ids, NoQueuePairOnTheWireIsCalledNone) { EXPECT_GT(kNoQpn.v, 0xFF'FFFFU); }

}  // namespace
}  // namespace weft
