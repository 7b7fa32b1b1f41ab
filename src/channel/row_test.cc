#include "channel/row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/prng.h"

namespace weft::channel {
namespace {

// Beside a list that is sorted after every step. Now and then the delay changes, and entries come that are
// due before the last.
TEST(Row, HasItsEntriesInTheOrderInWhichTheyAreDue) {
  constexpr std::uint32_t kMost = 20;
  Prng random(1);
  Row row(kMost);
  struct Entry {
    Time at;
    std::uint64_t came;
    std::uint32_t index;
  };
  std::vector<Entry> wanted;
  Time now = Time{} + seconds(1);
  Duration delay = microseconds(50);
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    now = now + nanoseconds(static_cast<std::int64_t>(random.below(3000)));
    if (random.below(100) == 0) delay = microseconds(static_cast<std::int64_t>(1 + random.below(80)));
    if (random.below(1000) == 0) {
      const Duration back = microseconds(static_cast<std::int64_t>(random.below(100)));
      row.rebase(back);
      now = now - back;
      for (Entry& e : wanted) e.at = e.at - back;
    }
    const auto index = static_cast<std::uint32_t>(random.below(kMost));
    std::erase_if(wanted, [&](const Entry& e) { return e.index == index; });
    if (random.below(3) == 0) {
      row.remove(index);
    } else {
      row.put(index, now + delay);
      wanted.push_back({now + delay, step, index});
    }
    std::stable_sort(wanted.begin(), wanted.end(),
                     [](const Entry& a, const Entry& b) { return a.at < b.at; });
    std::uint32_t at = row.first();
    for (const Entry& e : wanted) {
      ASSERT_EQ(at, e.index);
      ASSERT_TRUE(row.contains(at));
      ASSERT_EQ(row.due(at, now), e.at <= now);
      at = row.after(at);
    }
    ASSERT_EQ(row.next(), wanted.empty() ? kNever : wanted.front().at);
    ASSERT_FALSE(row.due(at, now));  // the end
  }
}

// The first entry stays, and what comes and goes behind it leaves places that are nobody's: far more than
// there is room for.
TEST(Row, HasRoomForAllWhoeverCameAndWentBehindTheFirst) {
  constexpr std::uint32_t kMost = 5;
  Row row(kMost);
  Time now{};
  row.put(0, now);
  for (std::uint32_t step = 1; step < 10'000; ++step) {
    now = now + nanoseconds(1);
    const std::uint32_t index = 1 + step % (kMost - 1);
    row.put(index, now);
    ASSERT_EQ(row.first(), 0U);
    std::uint32_t found = 1;
    Time last{};
    for (std::uint32_t at = row.after(0); at != kMost; at = row.after(at)) {
      ASSERT_TRUE(row.contains(at));
      ASSERT_FALSE(row.due(at, last));
      while (!row.due(at, last)) last = last + nanoseconds(1);
      ++found;
    }
    ASSERT_EQ(last, now);
    ASSERT_EQ(found, std::min(kMost, step + 1));
  }
}

TEST(Row, TakesNothingThatIsNeverDue) {
  Row row(2);
  row.put(1, kNever);
  EXPECT_FALSE(row.contains(1));
  EXPECT_EQ(row.next(), kNever);
}

}  // namespace
}  // namespace weft::channel
