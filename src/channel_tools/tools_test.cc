// Matrices, histograms and options, without a network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "channel_tools/histogram.h"
#include "channel_tools/matrix.h"
#include "channel_tools/options.h"
#include "core/base/prng.h"

namespace weft::tools {
namespace {

using ::testing::HasSubstr;

Matrix mesh(std::size_t n, std::uint64_t ns = 50'000) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < n; ++i) names.push_back("10.0.0." + std::to_string(i + 1));
  Matrix m(names);
  for (Cell& c : m.cells) {
    if (c.state != Cell::State::kSelf) c = {Cell::State::kReached, 10, 10, ns, ns, ns};
  }
  return m;
}
std::vector<Finding::Kind> kinds(const Matrix& m) {
  std::vector<Finding::Kind> out;
  for (const Finding& f : findings(m)) out.push_back(f.kind);
  return out;
}

TEST(Matrices, AreQuietWhenAllIsWell) { EXPECT_TRUE(findings(mesh(5)).empty()); }

TEST(Matrices, NameADeadNodeOnceAndNotItsCells) {
  Matrix m = mesh(4);
  for (std::size_t k = 0; k < 4; ++k) {
    if (k == 2) continue;
    m.at(k, 2) = {Cell::State::kSilent, 0, 0, 0, 0, 0};
    m.at(2, k) = {};
  }
  const auto all = findings(m);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].sentence, "10.0.0.3 is dead: nobody reaches it");
  EXPECT_THAT(text(m, false), HasSubstr("dead"));
}

TEST(Matrices, NameASlowNodeAndNotThoseWhoTalkToIt) {
  Matrix m = mesh(4);
  for (std::size_t k = 0; k < 4; ++k) {
    if (k != 1) m.at(1, k).mean_ns = m.at(k, 1).mean_ns = 400'000;
  }
  const auto all = findings(m);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].from, 1U);
  EXPECT_THAT(all[0].sentence, HasSubstr("its row and its column"));
}

TEST(Matrices, NameASlowPair) {
  Matrix m = mesh(4);
  m.at(0, 3).mean_ns = 400'000;
  EXPECT_EQ(kinds(m), std::vector{Finding::Kind::kSlow});
  EXPECT_THAT(findings(m)[0].sentence, HasSubstr("10.0.0.1 -> 10.0.0.4 is slow: 400.0 us where 50.0"));
}

TEST(Matrices, TellAFailureOfOneWayFromACut) {
  Matrix m = mesh(4);
  m.at(0, 1) = {Cell::State::kRefused, 0, 0, 0, 0, 0};
  m.at(2, 3) = m.at(3, 2) = {Cell::State::kSilent, 0, 0, 0, 0, 0};
  const std::vector expected{Finding::Kind::kOneWay, Finding::Kind::kCut};
  EXPECT_EQ(kinds(m), expected);
}

TEST(Matrices, TellLosses) {
  Matrix m = mesh(3);
  m.at(0, 1).received = 7;
  EXPECT_EQ(findings(m)[0].sentence, "10.0.0.1 -> 10.0.0.2 loses 30%");
  EXPECT_THAT(text(m, false), HasSubstr("50.0 -30%"));
}

// What a host is called may be anything where it comes from a file.
TEST(Matrices, AreDrawnWhole) {
  Matrix m = mesh(3);
  m.names[0] = "<a&b>";
  const std::string drawn = svg(m);
  EXPECT_THAT(drawn, HasSubstr("&lt;a&amp;b&gt;"));
  EXPECT_EQ(drawn.find("<a&b>"), std::string::npos);
  EXPECT_TRUE(drawn.ends_with("</svg>\n"));
}

// Against sorting: never below, and at most one part in 64 above.
TEST(Histograms, AreAsExactAsTheySay) {
  Prng random(5);
  Histogram h;
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t ns = random.next() >> random.between(20, 60);
    h.record(ns);
    all.push_back(ns);
  }
  std::sort(all.begin(), all.end());
  for (const std::uint32_t part : {1U, 100'000U, 500'000U, 900'000U, 990'000U, 999'000U, 1'000'000U}) {
    const std::uint64_t truth =
        all[std::max<std::uint64_t>(1, (all.size() * part + 999'999) / 1'000'000) - 1];
    EXPECT_GE(h.percentile(part), truth) << part;
    EXPECT_LE(h.percentile(part), truth + truth / 64) << part;
  }
  EXPECT_EQ(h.most(), all.back());
  EXPECT_EQ(h.least(), all.front());
}

TEST(Histograms, AddUp) {
  Histogram a;
  Histogram b;
  for (std::uint64_t i = 1; i <= 100; ++i) (i % 2 == 0 ? a : b).record(i);
  a.add(b);
  EXPECT_EQ(a.count(), 100U);
  EXPECT_EQ(a.percentile(500'000), 50U);
  EXPECT_EQ(a.least(), 1U);
  EXPECT_EQ(Histogram().percentile(500'000), 0U);
}

// What is wrong with a command line; empty: nothing.
std::string parsed(const std::string& words, PingOptions& o) {
  CLI::App app;
  add_ping_options(app, o);
  try {
    app.parse(words);
  } catch (const CLI::ParseError& wrong) {
    return wrong.what();
  }
  return "";
}

TEST(Options, OfOneValueLeaveTheHostAlone) {
  PingOptions o;
  EXPECT_EQ(parsed("ping --set calls=9 127.0.0.2", o), "");
  EXPECT_EQ(o.hosts, std::vector<std::string>{"127.0.0.2"});
  EXPECT_EQ(o.common.parameters, std::vector<std::string>{"calls=9"});
  PingOptions twice;
  EXPECT_EQ(parsed("ping --set calls=9 --interval 5 --set queue=4 127.0.0.2", twice), "");
  EXPECT_EQ(twice.common.parameters, (std::vector<std::string>{"calls=9", "queue=4"}));
  EXPECT_EQ(twice.hosts, std::vector<std::string>{"127.0.0.2"});
  PingOptions agent;
  EXPECT_EQ(parsed("ping --serve --deny 10.0.0.1 --deny 10.0.0.2", agent), "");
  EXPECT_EQ(agent.common.agent.deny, (std::vector<std::string>{"10.0.0.1", "10.0.0.2"}));
  PingOptions neither;
  EXPECT_NE(parsed("ping --deny 10.0.0.1 127.0.0.2", neither), "");
}

TEST(Options, RefuseToDenyWhatIsNoAddress) {
  for (const std::string wrong : {"10.0.0.0/24", "somebody", "10.0.0", "10.0.0.256", "010.0.0.1", "::1"}) {
    PingOptions o;
    EXPECT_THAT(parsed("ping --serve --deny " + wrong, o), HasSubstr("must be an IPv4 address")) << wrong;
  }
}

}  // namespace
}  // namespace weft::tools
