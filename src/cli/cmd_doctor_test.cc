// weft doctor as a command: what it prints, and its exit codes.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/answer.h"

namespace weft::cli {
namespace {

using ::testing::HasSubstr;

// No drop-in library lies beside this test's program. (interop.doctor asks the program that has them.)
TEST(Doctor, MissesTheLibraries) {
  const Answer a = answer_to({"doctor"});
  EXPECT_EQ(a.code, 1) << a.err;
  EXPECT_THAT(a.out, HasSubstr("broken libraries"));
  EXPECT_THAT(a.out, HasSubstr("good   wire"));
  EXPECT_THAT(a.out, HasSubstr("weft run will not work here"));
}

TEST(Doctor, SaysWhatWillNotWorkAndEndsWithOne) {
  const Answer a = answer_to({"doctor", "--addr", "192.0.2.77", "-j"});
  EXPECT_EQ(a.code, 1);
  const nlohmann::json j = nlohmann::json::parse(a.out);
  EXPECT_EQ(j["health"], "broken");
  const auto wire = std::find_if(j["symptoms"].begin(), j["symptoms"].end(),
                                 [](const auto& symptom) { return symptom["what"] == "wire"; });
  ASSERT_NE(wire, j["symptoms"].end());
  EXPECT_EQ((*wire)["health"], "broken");
  EXPECT_THAT((*wire)["change"].get<std::string>(), HasSubstr("ip addr"));
}

TEST(Doctor, ReadsItsOptionsAsRunDoes) {
  EXPECT_EQ(answer_to({"doctor", "--addr", "10.0.0"}).code, 2);
  EXPECT_EQ(answer_to({"doctor", "--wire", "string"}).code, 2);
}

}  // namespace
}  // namespace weft::cli
