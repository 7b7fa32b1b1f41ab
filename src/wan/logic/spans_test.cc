// Runs of numbers against a set of them.
#include "wan/logic/spans.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/prng.h"

namespace weft::wan {
namespace {

TEST(Spans, AreTheSetOfNumbersThatWereAddedAndNotRemoved) {
  Prng r(5);
  for (int world = 0; world < 200; ++world) {
    Spans spans;
    std::set<std::uint64_t> numbers;
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t from =
          1 + r.below(20);  // twenty numbers never need more runs than there is room for
      const std::uint64_t end = from + r.below(8);
      if (r.below(2) == 0) {
        spans.add({from}, {end});
        for (std::uint64_t n = from; n < end; ++n) numbers.insert(n);
      } else {
        spans.remove({from}, {end});
        for (std::uint64_t n = from; n < end; ++n) numbers.erase(n);
      }
      for (std::uint64_t n = 0; n < 30; ++n) ASSERT_EQ(spans.contains({n}), numbers.count(n) != 0) << n;
      Seq last{};
      for (const Span& s : spans) {
        ASSERT_LT(last, s.from) << "apart, and in order";
        ASSERT_LT(s.from, s.end);
        last = s.end;
      }
    }
  }
}

TEST(Spans, WithoutRoomForAnotherTheHighestGoes) {
  Spans spans;
  for (std::uint64_t i = 0; i < Spans::kMost; ++i) spans.add({100 + 2 * i}, {101 + 2 * i});
  ASSERT_TRUE(spans.full());
  spans.add({10}, {11});
  EXPECT_TRUE(spans.full());
  EXPECT_EQ(spans.front(), (Span{{10}, {11}}));
  EXPECT_FALSE(spans.contains({100 + 2 * (Spans::kMost - 1)}));
  spans.add({5000}, {5001});
  EXPECT_FALSE(spans.contains({5000}));
}

}  // namespace
}  // namespace weft::wan
