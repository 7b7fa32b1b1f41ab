#include "wan/logic/config.h"

#include <gtest/gtest.h>

namespace weft::wan {
namespace {

BoxConfig sound() {
  BoxConfig c;
  c.secret = {1};
  return c;
}

TEST(BoxConfig, AsItIsNeedsASecretOnly) {
  EXPECT_FALSE(BoxConfig{}.validate());
  EXPECT_TRUE(sound().validate());
}

// Each of these makes a box that cannot work, and is refused with the field's name.
TEST(BoxConfig, ThatCannotWorkIsRefusedByName) {
  const struct {
    const char* field;
    void (*spoil)(BoxConfig&);
  } rows[] = {
      {"instance", [](BoxConfig& c) { c.instance = 0; }},
      {"secret", [](BoxConfig& c) { c.secret.clear(); }},
      {"store", [](BoxConfig& c) { c.store = {10'000}; }},
      {"frames", [](BoxConfig& c) { c.frames = 3; }},
      {"frames", [](BoxConfig& c) { c.frames = UINT32_MAX; }},
      {"halves", [](BoxConfig& c) { c.halves = 0; }},
      {"halves", [](BoxConfig& c) { c.halves = (1U << 20U) + 1; }},
      {"queue", [](BoxConfig& c) { c.queue = 0; }},
      {"queue", [](BoxConfig& c) { c.queue = UINT32_MAX; }},
      {"window", [](BoxConfig& c) { c.window = 1000; }},
      {"window", [](BoxConfig& c) { c.window = 1U << 17U; }},
      {"site_window", [](BoxConfig& c) { c.site_window = 0; }},
      {"meetings", [](BoxConfig& c) { c.meetings = UINT32_MAX; }},
      {"loss_blocks", [](BoxConfig& c) { c.loss_blocks = 65535; }},
      {"line_timeout", [](BoxConfig& c) { c.line_timeout = {}; }},
      {"least_line_timeout", [](BoxConfig& c) { c.least_line_timeout = {}; }},
      {"site_timeout", [](BoxConfig& c) { c.site_timeout = {}; }},
      {"hello", [](BoxConfig& c) { c.hello = {}; }},
      {"patience", [](BoxConfig& c) { c.patience = c.hello; }},
      {"give_up", [](BoxConfig& c) { c.give_up = {-1}; }},
      {"quiet", [](BoxConfig& c) { c.quiet = kForever; }},
      {"site_tries", [](BoxConfig& c) { c.site_tries = 255; }},
      {"agreements", [](BoxConfig& c) { c.agreements = 0; }},
  };
  for (const auto& row : rows) {
    BoxConfig c = sound();
    row.spoil(c);
    const Result<void> valid = c.validate();
    ASSERT_FALSE(valid) << row.field;
    EXPECT_EQ(valid.error().message.rfind(row.field, 0), 0U) << valid.error().message;
  }
}

TEST(ParityTermsText, IsDataAndParityFramesOfAGroup) {
  EXPECT_EQ(*parse_parity_terms("--parity", "16+2"), (ParityTerms{16, 2}));
  EXPECT_EQ(*parse_parity_terms("--parity", "64+8"), (ParityTerms{64, 8}));
  EXPECT_FALSE(parse_parity_terms("--parity", "0")->there());
  for (const char* wrong : {"", "16", "16+", "+2", "1+1", "65+1", "16+9", "16+0", "16+2+1", "16-2", "a+b"}) {
    const auto r = parse_parity_terms("--parity", wrong);
    ASSERT_FALSE(r) << wrong;
    EXPECT_EQ(r.error().message.find("--parity: '" + std::string(wrong) + "' is not like 16+2"), 0U) << wrong;
  }
}

}  // namespace
}  // namespace weft::wan
