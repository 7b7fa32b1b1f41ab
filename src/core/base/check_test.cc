// A failed CHECK says what, where and with which values, and ends the program; a true one costs a compare.
#include "core/base/check.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(CheckDeathTest, names_the_expression_the_place_and_the_values) {
  const int held = 41, bound = 40;
  EXPECT_DEATH(CHECK_OP(held, <=, bound), "held <= bound.*check_test.cc.*41, 40");
  EXPECT_DEATH(CHECK(held == bound), "held == bound");
}

TEST(Check, evaluates_its_arguments_once_when_it_holds) {
  int calls = 0;
  CHECK_OP(++calls, ==, 1);
  CHECK(++calls == 2);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace weft
