// The paper's numbers, to the digits that it prints, out of the planner.
#include "lab/wan_account.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lab/account.h"

namespace weft::lab {
namespace {

struct Stated {
  const char* quantity;
  double value;
  double within;
};

TEST(WanQuantities, AreThePapers) {
  constexpr Stated kStated[] = {
      {"ntt-table1.0", 100, 0},          {"ntt-table1.1", 1000, 0},     {"ntt-table1.2", 10'000, 0},
      {"ntt-qd-formula", 2991, 0},       {"ntt-qd-formula.1", 4178, 0}, {"ntt-qd-formula.2", 299, 0},
      {"ntt-qd-formula.3", 29'918, 0},   {"ntt-qd-formula.4", 2980, 0}, {"ntt-qd-limit", 1024, 0},
      {"ntt-fixed-window.1", 4.2, 0.05}, {"ntt-tx-depth.0", 4.2, 0.05}, {"ntt-tx-depth.1", 8.4, 0.05},
      {"ntt-tx-depth.2", 67.1, 0.1},
  };
  for (const Stated& s : kStated) {
    const auto computed = account_quantity(s.quantity);
    ASSERT_TRUE(computed) << computed.error().message;
    EXPECT_NEAR(computed->value, s.value, s.within) << s.quantity;
  }
}

TEST(WanQuantities, HaveNamesOfTheirOwn) {
  std::set<std::string> ids;
  for (const std::string& id : account_quantities()) EXPECT_TRUE(ids.insert(id).second) << id;
}

}  // namespace
}  // namespace weft::lab
