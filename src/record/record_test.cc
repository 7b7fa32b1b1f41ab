#include "record/record.h"

#include <gtest/gtest.h>

namespace weft::record {
namespace {

// Names keep their order, lists grow, trees nest.
TEST(Record, IsJsonInTheOrderOfSetting) {
  Record inner;
  inner.set("z", std::int64_t{-1}).set("a", 0.5);
  Record r;
  r.set("name", "x").set("yes", true).set("inner", std::move(inner));
  Record one;
  one.set("i", std::uint64_t{1});
  r.append("list", std::move(one));
  EXPECT_EQ(r.json(),
            "{\n  \"name\": \"x\",\n  \"yes\": true,\n  \"inner\": {\n    \"z\": -1,\n    \"a\": 0.5\n  },\n"
            "  \"list\": [\n    {\n      \"i\": 1\n    }\n  ]\n}\n");
}

}  // namespace
}  // namespace weft::record
