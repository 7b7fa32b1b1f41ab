#include "sim/engine/node_events.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "core/base/prng.h"

namespace weft::sim {
namespace {

using Key = std::pair<std::int64_t, std::uint64_t>;
Key key(const WakeUp& e) { return {e.at_ps, e.order}; }

// From a few events to more than the list and the heap hold at a time, many of one time and some the same.
TEST(NodeEvents, LeaveAsFromAnOrderedSet) {
  for (const std::size_t most : {3U, 31U, 33U, 64U, 300U}) {
    Prng random(most);
    NodeEvents events;
    std::multiset<Key> model;
    std::int64_t now = 0;
    for (int i = 0; i < 30'000; ++i) {
      if (model.empty() || (model.size() < most && random.chance(550'000))) {
        const WakeUp e = WakeUp::of(Time{now + static_cast<std::int64_t>(random.below(40))}, Rank::kUsual,
                                    static_cast<std::uint32_t>(random.below(20)));
        events.push(e);
        model.insert(key(e));
      } else {
        ASSERT_EQ(key(events.top()), *model.begin());
        const WakeUp e = events.pop();
        ASSERT_EQ(key(e), *model.begin());
        model.erase(model.begin());
        now = e.at_ps;
      }
      events.check_invariants();
      ASSERT_EQ(events.size(), model.size());
      ASSERT_EQ(events.empty(), model.empty());
    }
  }
}

// Each is sooner than all before, so that every one goes to the end from which it leaves.
TEST(NodeEvents, ComeInTheReverseOrder) {
  NodeEvents events;
  for (std::int64_t at = 100; at-- != 0;) {
    events.push(WakeUp::of(Time{at}, Rank::kUsual, 0));
    events.check_invariants();
  }
  for (std::int64_t at = 0; at != 100; ++at) ASSERT_EQ(events.pop().at_ps, at);
  EXPECT_TRUE(events.empty());
}

}  // namespace
}  // namespace weft::sim
