// weft doctor as a command: what it prints, and its exit codes.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/answer.h"

namespace weft::cli {
namespace {

using ::testing::HasSubstr;

TEST(Doctor, SaysThatLoopbackWorks) {
  const Answer a = answer_to({"doctor"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_THAT(a.out, HasSubstr("weft run works here"));
}

TEST(Doctor, SaysWhatWillNotWorkAndEndsWithOne) {
  const Answer a = answer_to({"doctor", "--addr", "192.0.2.77", "-j"});
  EXPECT_EQ(a.code, 1);
  const nlohmann::json j = nlohmann::json::parse(a.out);
  EXPECT_EQ(j["health"], "broken");
  EXPECT_EQ(j["symptoms"][0]["what"], "wire");
  EXPECT_THAT(j["symptoms"][0]["change"].get<std::string>(), HasSubstr("ip addr"));
}

TEST(Doctor, ReadsItsOptionsAsRunDoes) {
  EXPECT_EQ(answer_to({"doctor", "--addr", "10.0.0"}).code, 2);
  EXPECT_EQ(answer_to({"doctor", "--wire", "string"}).code, 2);
}

}  // namespace
}  // namespace weft::cli
