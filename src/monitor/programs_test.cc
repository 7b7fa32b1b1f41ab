#include "monitor/programs.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft::monitor {
namespace {

using page::Found;
using page::ReadPage;
using page::ReadTable;
using page::Sort;

ReadTable channels(std::vector<std::vector<std::uint64_t>> rows) {
  return {
      "channel",
      {{"opening", Sort::kCount}, {"depth", Sort::kCount}, {"held", Sort::kCount}, {"sent", Sort::kCount}},
      std::move(rows)};
}
// As channels have it whose queue pair, peer and service do not tell them apart.
ReadTable connections(std::vector<std::vector<std::uint64_t>> rows) {
  return {"channel",
          {{"opening", Sort::kCount},
           {"qpn", Sort::kCount},
           {"peer", Sort::kAddress},
           {"service", Sort::kCount},
           {"sent", Sort::kCount}},
          std::move(rows)};
}
ReadPage page_of(const std::string& program, std::uint64_t pid, std::vector<ReadTable> tables) {
  ReadPage p;
  p.path = program;
  p.kind = "channels";
  p.command = program;
  p.pid = pid;
  p.updated = 1'000'000'000;
  p.tables = std::move(tables);
  return p;
}
Found found(std::vector<ReadPage> pages) { return {std::move(pages), 0, 0}; }

// The value of a series; -1: there is none.
double value(const Programs& programs, const std::string& series) {
  Metrics m;
  programs.tell(m);
  for (const Family& f : m.families()) {
    for (const Value& v : f.values) {
      if (series_of(f, v) == series) return v.value;
    }
  }
  return -1;
}
constexpr const char* kSent = "weft_messages_sent_total{program=\"a\"}";

TEST(Programs, AddUpTheirProcessesAndChannels) {
  Programs p;
  p.look(
      found({page_of("a", 1, {channels({{10, 8, 8, 5}, {11, 8, 0, 7}})}), page_of("b", 2, {channels({})})}),
      3'500'000'000);
  EXPECT_EQ(value(p, kSent), 12);
  EXPECT_EQ(value(p, "weft_messages_held{program=\"a\"}"), 8);
  EXPECT_EQ(value(p, "weft_channels_held_full{program=\"a\"}"), 1);
  EXPECT_EQ(value(p, "weft_contexts{program=\"b\"}"), 1);
  EXPECT_EQ(value(p, "weft_silent_seconds{program=\"b\"}"), 2.5);
}

// A counter of a program never sinks: not when a channel closes, not when a process ends, and not when a new
// one has the name of an old one.
TEST(Programs, CountOnWhenChannelsCloseAndProcessesEnd) {
  Programs p;
  p.look(found({page_of("a", 1, {channels({{10, 8, 0, 5}, {11, 8, 0, 7}})})}), 0);
  p.look(found({page_of("a", 1, {channels({{11, 8, 0, 9}})})}), 0);
  EXPECT_EQ(value(p, kSent), 14);
  p.look(found({page_of("a", 1, {channels({{12, 8, 0, 6}, {11, 8, 0, 9}})})}), 0);
  EXPECT_EQ(value(p, kSent), 20);  // another channel
  p.look(found({page_of("a", 1, {channels({{12, 8, 0, 2}, {11, 8, 0, 9}})})}), 0);
  EXPECT_EQ(value(p, kSent), 22);  // a third one that has the name of the second
  for (std::uint64_t i = 0; i < kLooksWithout; ++i) p.look(found({}), 0);
  EXPECT_EQ(value(p, kSent), 22);
  EXPECT_EQ(value(p, "weft_contexts{program=\"a\"}"), -1);
  p.look(found({page_of("a", 3, {channels({{11, 8, 0, 30}})})}), 0);
  EXPECT_EQ(value(p, kSent), 52);
  ReadPage again = page_of("a", 3, {channels({{11, 8, 0, 40}})});
  again.file = 1;  // another page with the path of the one before
  p.look(found({again}), 0);
  EXPECT_EQ(value(p, kSent), 92);
}

// Another connection of a session has another queue pair, or none; what was sent goes on.
TEST(Programs, CountAChannelOnceWhenItsConnectionChanges) {
  Programs p;
  p.look(found({page_of("a", 1, {connections({{1, 17, 5, 100, 50}})})}), 0);
  p.look(found({page_of("a", 1, {connections({{1, 23, 5, 100, 60}})})}), 0);
  p.look(found({page_of("a", 1, {connections({{1, 0, 5, 100, 61}})})}), 0);
  EXPECT_EQ(value(p, kSent), 61);
}

// Over TCP all channels have the same number of a queue pair.
TEST(Programs, TellChannelsApartThatHaveOnePeerAndService) {
  Programs p;
  for (int i = 0; i < 5; ++i)
    p.look(found({page_of("a", 1, {connections({{1, 0, 5, 100, 50}, {2, 0, 5, 100, 7}})})}), 0);
  EXPECT_EQ(value(p, kSent), 57);
}

// A row is missing from a look whose writer was stopped in the middle of it; so is a page.
TEST(Programs, CountNothingAgainThatWasMissingForALook) {
  Programs p;
  const Found all = found({page_of("a", 1, {channels({{10, 8, 0, 5}, {11, 8, 0, 7}})})});
  p.look(all, 0);
  for (std::uint64_t i = 1; i < kLooksWithout; ++i)
    p.look(found({page_of("a", 1, {channels({{11, 8, 0, 7}})})}), 0);
  p.look(all, 0);
  EXPECT_EQ(value(p, kSent), 12);
  for (std::uint64_t i = 1; i < kLooksWithout; ++i) p.look(found({}), 0);
  p.look(all, 0);
  EXPECT_EQ(value(p, kSent), 12);
}

// Whoever starts programs of many names cannot hide those that come after.
TEST(Programs, TheOneGoneLongestMakesRoomForANewName) {
  Programs p;
  std::vector<ReadPage> pages;
  for (std::uint64_t i = 0; i < kMostPrograms; ++i)
    pages.push_back(page_of(std::to_string(i), i, {channels({{1, 8, 0, 1}})}));
  p.look(found(pages), 0);
  pages.erase(pages.begin() + 7);
  for (std::uint64_t i = 0; i < kLooksWithout; ++i) p.look(found(pages), 0);
  pages.push_back(page_of("a", 1000, {channels({{1, 8, 0, 3}})}));
  pages.push_back(page_of("b", 1001, {channels({{1, 8, 0, 4}})}));
  p.look(found(pages), 0);
  EXPECT_EQ(value(p, "weft_messages_sent_total{program=\"7\"}"), -1);
  EXPECT_EQ(value(p, "weft_messages_sent_total{program=\"8\"}"), 1);
  EXPECT_EQ(value(p, kSent), 3);
  EXPECT_EQ(value(p, "weft_messages_sent_total{program=\"other\"}"), 4);
}

TEST(Programs, HaveABoundedNumberOfNames) {
  Programs p;
  std::vector<ReadPage> pages;
  for (std::uint64_t i = 0; i < 3 * kMostPrograms; ++i)
    pages.push_back(page_of(std::to_string(i), i, {channels({{1, 8, 0, 1}})}));
  p.look(found(pages), 0);
  Metrics m;
  p.tell(m);
  for (const Family& f : m.families()) EXPECT_LE(f.values.size(), kMostPrograms + 1) << f.name;
  EXPECT_EQ(value(p, "weft_messages_sent_total{program=\"other\"}"), 2 * kMostPrograms);
}

TEST(Metrics, ArePrintedAsPrometheusReadsThem) {
  Metrics m;
  m.add("weft_a_total", "what\nit is", Kind::kCounter, {{"program", "a\"b\\c"}, {"x", "1"}}, 12345678901.0);
  m.add("weft_b_seconds", "time", Kind::kGauge, {}, 0.25);
  m.add("weft_a_total", "what\nit is", Kind::kCounter, {}, 1);
  EXPECT_EQ(m.text(),
            "# HELP weft_a_total what\\nit is\n# TYPE weft_a_total counter\n"
            "weft_a_total{program=\"a\\\"b\\\\c\",x=\"1\"} 12345678901\nweft_a_total 1\n"
            "# HELP weft_b_seconds time\n# TYPE weft_b_seconds gauge\nweft_b_seconds 0.25\n");
}

}  // namespace
}  // namespace weft::monitor
