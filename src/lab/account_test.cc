#include "lab/account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "account/quantities.h"

namespace weft::lab {
namespace {

using ::testing::HasSubstr;

TEST(AccountQuantity, IsAFigureOfTheTable) {
  for (const account::Quantity& q : account::quantities()) {
    const auto first = account_quantity(q.id);
    ASSERT_TRUE(first) << q.id;
    EXPECT_EQ(first->value, q.figures()[0].value);
    EXPECT_EQ(first->unit, q.unit);
    for (std::size_t i = 0; i < q.figures().size(); ++i) {
      const auto one = account_quantity(std::string(q.id) + "." + std::to_string(i));
      ASSERT_TRUE(one) << q.id;
      EXPECT_EQ(one->value, q.figures()[i].value);
      EXPECT_THAT(one->text, HasSubstr(q.figures()[i].what));
    }
  }
}

TEST(AccountQuantity, MistakesSayWhatThereIs) {
  EXPECT_THAT(account_quantity("irn-wings").error().message,
              HasSubstr("no quantity 'irn-wings'; there are "));
  EXPECT_THAT(account_quantity("irn-topology.99").error().message,
              HasSubstr("irn-topology.0 to irn-topology."));
  EXPECT_THAT(account_quantity("irn-topology.x").error().message, HasSubstr("no 'irn-topology.x'"));
}

}  // namespace
}  // namespace weft::lab
