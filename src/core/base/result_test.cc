// The two kinds of error: a sentence for people, a code for verbs.
#include "core/base/result.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace weft {
namespace {

Result<int> parse_digit(char c) {
  if (c < '0' || c > '9') return fail(std::string("digit '") + c + "': must be 0 to 9");
  return c - '0';
}

Outcome<void> take(int& left) {
  if (left == 0) return fail(Errc::kNoMemory);
  --left;
  return {};
}

TEST(Result, HoldsAValueOrASentence) {
  EXPECT_EQ(parse_digit('7'), 7);
  const Result<int> bad = parse_digit('x');
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "digit 'x': must be 0 to 9");
}

TEST(Outcome, HoldsAValueOrACode) {
  int left = 1;
  EXPECT_TRUE(take(left));
  const Outcome<void> full = take(left);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error(), Errc::kNoMemory);
}

// A full queue must cost nothing to report: no heap behind a code, no more than a register pair in all.
static_assert(std::is_trivially_copyable_v<Errc> && sizeof(Errc) == 1);
static_assert(sizeof(Outcome<std::uint32_t>) <= 8);
static_assert(std::is_trivially_destructible_v<Outcome<std::uint32_t>>);
static_assert(!std::is_convertible_v<Errc, int>);

}  // namespace
}  // namespace weft
