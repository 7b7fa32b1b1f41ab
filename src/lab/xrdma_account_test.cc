// What is counted of the interface is in its header, and the product is the paper's.
#include "lab/xrdma_account.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "lab/account.h"

namespace weft::lab {
namespace {

TEST(XrdmaQuantities, CountWhatTheHeaderDeclares) {
  std::ifstream file(WEFT_SOURCE_DIR "/src/channel_c/weft/channel.h");
  std::ostringstream read;
  read << file.rdbuf();
  const std::string header = read.str();
  for (const CallRow& row : kTableOne)
    EXPECT_NE(header.find(std::string(row.ours) + "("), std::string::npos) << row.theirs;
  for (const char* name : kStructures)
    EXPECT_NE(header.find("typedef struct " + std::string(name)), std::string::npos) << name;
}

TEST(XrdmaQuantities, MultiplyAsThePaperDoes) {
  const auto product = account_quantity("xrdma-mem-formula.0");
  ASSERT_TRUE(product) << product.error().message;
  EXPECT_DOUBLE_EQ(product->value, 8.0 * 8 * 100 * 32 * 4096 / (1024.0 * 1024 * 1024));
  const auto kept = account_quantity("xrdma-mem-formula.2");
  ASSERT_TRUE(kept);
  EXPECT_NEAR(kept->value, 40.0 / 32 * 4288 / 4096, 0.001);
}

}  // namespace
}  // namespace weft::lab
