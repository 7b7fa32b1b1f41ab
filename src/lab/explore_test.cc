// The search over designs with a measure of the test's own: what fits, what the closed form excludes, which
// points are the front.
#include "lab/explore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace weft::lab {
namespace {

using ::testing::HasSubstr;

ExploreSpace space() {
  ExploreSpace s;
  s.designs = {"srnic", "joined"};
  s.memories = {Bytes{4506 * 1024}};
  s.splits = {0.25, 0.75};
  s.connections = {1000, 5000, 10'000, 50'000};
  s.load.op = WrOpcode::kSend;
  s.load.bytes = 512;
  s.load.depth = s.load.batch = 16;
  s.touched = 4096;
  return s;
}

const auto kSilent = [](std::size_t, std::size_t) {};
// A NIC that reaches what the closed form allows.
const auto kBound = [](const Candidate& c) -> Result<double> { return c.bound; };

// No candidate takes more memory than it was given, and where contexts are all on the chip translations have
// the rest.
TEST(Explore, WhatIsTriedFitsIntoTheMemory) {
  const ExploreSpace s = space();
  const auto families = families_of(s);
  ASSERT_TRUE(families) << families.error().message;
  EXPECT_EQ(families->size(), 3U);  // srnic; joined with two splits
  int made = 0;
  for (const Family& f : *families) {
    for (const std::uint32_t n : s.connections) {
      const auto c = candidate_of(s, f, n);
      if (!c) continue;
      ++made;
      EXPECT_LE(c->chip, f.memory.n);
      if (f.split == 0) {
        EXPECT_GE(c->chip, f.memory.n - 16);  // nothing is left over
        EXPECT_EQ(c->design.context.most, n);
      }
    }
  }
  EXPECT_GE(made, 9);
  // 50000 contexts of 241 bytes are 12 MB.
  EXPECT_FALSE(candidate_of(s, families->front(), 50'000));
}

// What a run reaches does not pass the closed form; so a run below full rate by the closed form is not made.
TEST(Explore, TheClosedFormExcludesWithoutARun) {
  ExploreSpace s = space();
  s.designs = {"csrna-fcfs"};  // one miss at a time, and each message is a turn
  s.load.depth = s.load.batch = 1;
  s.connections = {200, 50'000};
  int runs = 0;
  const auto found = explore(
      s,
      [&](const Candidate& c) -> Result<double> {
        ++runs;
        EXPECT_LE(c.connections, 200U);
        return c.bound;
      },
      kSilent);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(runs, 1);
  EXPECT_GE(found->pruned, 1U);
}

TEST(Explore, TheFrontHasNoPointThatAnotherBeats) {
  ExploreSpace s = space();
  s.memories = {Bytes{2048 * 1024}, Bytes{4506 * 1024}};
  const auto found = explore(s, kBound, kSilent);
  ASSERT_TRUE(found) << found.error().message;
  int front = 0;
  std::uint32_t most = 0;
  for (const Explored& p : found->points) {
    if (!p.front) continue;
    ++front;
    most = std::max(most, p.connections);
    EXPECT_TRUE(p.full);
    for (const Explored& o : found->points) {
      EXPECT_FALSE(o.full && o.connections > p.connections && o.chip <= p.chip && o.rate >= p.rate);
    }
  }
  EXPECT_GE(front, 1);
  EXPECT_EQ(most, 50'000U);  // joined has no contexts on the chip
}

// A design that falls behind at some number of connections is followed to the last one at full rate.
TEST(Explore, FindsTheLastNumberOfConnectionsAtFullRate) {
  ExploreSpace s = space();
  s.designs = {"joined"};
  s.splits = {0.5};
  s.connections = {1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000};
  const auto found = explore(
      s, [](const Candidate& c) -> Result<double> { return c.connections <= 5000 ? c.peak : c.peak / 2; },
      kSilent);
  ASSERT_TRUE(found);
  EXPECT_LE(found->points.size(), 4U);
  EXPECT_TRUE(std::any_of(found->points.begin(), found->points.end(),
                          [](const Explored& p) { return p.front && p.connections == 5000; }));
  EXPECT_TRUE(std::none_of(found->points.begin(), found->points.end(),
                           [](const Explored& p) { return p.full && p.connections > 5000; }));
}

TEST(Explore, MakesNoMoreRunsThanItMay) {
  ExploreSpace s = space();
  s.most_runs = 2;
  const auto found = explore(s, kBound, kSilent);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->points.size(), 2U);
  EXPECT_TRUE(found->cut_short);
}

TEST(Explore, AMistakeInARunEndsTheSearch) {
  ExploreSpace s = space();
  const auto found = explore(
      s, [](const Candidate&) -> Result<double> { return fail("it burns"); }, kSilent);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("it burns"));
  s.designs = {"none-such"};
  EXPECT_THAT(explore(s, kBound, kSilent).error().message, HasSubstr("'none-such' is neither ideal"));
}

}  // namespace
}  // namespace weft::lab
