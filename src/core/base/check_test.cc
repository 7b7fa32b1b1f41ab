// A failed CHECK says what, where and with which values, and ends the program; a true one costs a compare.
#include "core/base/check.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(CheckDeathTest, NamesTheExpressionThePlaceAndTheValues) {
  const int held = 41, bound = 40;
  EXPECT_DEATH(CHECK_OP(held, <=, bound), "held <= bound.*check_test.cc.*41, 40");
  EXPECT_DEATH(CHECK(held == bound), "held == bound");
}

TEST(Check, EvaluatesItsArgumentsOnceWhenItHolds) {
  int calls = 0;
  CHECK_OP(++calls, ==, 1);
  CHECK(++calls == 2);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace weft
