#include "wan/code/reed_solomon.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "core/base/prng.h"

namespace weft::wan {
namespace {

using Blocks = std::vector<std::vector<std::uint8_t>>;

constexpr std::uint32_t kLongest = 400;

Blocks blocks(std::uint32_t n, Prng& random) {
  Blocks b(n);
  for (auto& block : b) {
    block.resize(1 + random.below(kLongest));
    for (std::uint8_t& byte : block) byte = static_cast<std::uint8_t>(random.next());
  }
  return b;
}

// The rows that are here, in the order in which they are named, give the missing members back.
void expect_restored(const Blocks& b, const Encoder& e, Decoder& d, const std::vector<std::uint32_t>& missing,
                     const std::vector<std::uint32_t>& rows) {
  d.begin(e.used());
  for (const std::uint32_t r : rows) d.row(r, e.row(r));
  for (std::uint32_t i = 0; i < b.size(); ++i) {
    if (std::find(missing.begin(), missing.end(), i) == missing.end()) d.subtract(i, b[i]);
  }
  d.solve(missing);
  for (std::uint32_t i = 0; i < missing.size(); ++i) {
    std::vector<std::uint8_t> expected = b[missing[i]];
    expected.resize(e.used());
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), d.block(i).begin(), d.block(i).end()))
        << "member " << missing[i];
  }
}

std::vector<std::uint32_t> ones(std::uint32_t pattern) {
  std::vector<std::uint32_t> v;
  for (std::uint32_t i = 0; i < 32; ++i) {
    if ((pattern >> i & 1U) != 0) v.push_back(i);
  }
  return v;
}

// Every set of frames that a group of k + m can lose, up to m of them, for a small k and the guide's 16 + 2.
TEST(ReedSolomon, AnyMembersAndRowsThatAreEnoughGiveTheOthersBack) {
  Prng random(1);
  for (const auto& [k, m] : {std::pair{1U, 1U}, std::pair{2U, 2U}, std::pair{6U, 4U}, std::pair{16U, 2U}}) {
    const Blocks b = blocks(k, random);
    Encoder e(m, kLongest);
    Decoder d(kLongest);
    e.begin();
    for (std::uint32_t i = 0; i < k; ++i) e.add(i, b[i]);
    for (std::uint32_t pattern = 1; pattern < 1U << (k + m); ++pattern) {
      if (static_cast<std::uint32_t>(std::popcount(pattern)) > m) continue;
      const std::vector<std::uint32_t> missing = ones(pattern & ((1U << k) - 1));
      if (missing.empty()) continue;
      std::vector<std::uint32_t> rows = ones(~pattern >> k & ((1U << m) - 1));
      ASSERT_GE(rows.size(), missing.size());
      rows.resize(missing.size());
      expect_restored(b, e, d, missing, rows);
    }
  }
}

TEST(ReedSolomon, TheLargestGroupLosesAsManyAsItHasRows) {
  Prng random(2);
  const Blocks b = blocks(kMostMembers, random);
  Encoder e(kMostRows, kLongest);
  Decoder d(kLongest);
  e.begin();
  for (std::uint32_t i = kMostMembers; i-- > 0;) e.add(i, b[i]);  // in any order
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<std::uint32_t> missing;
    while (missing.size() < kMostRows) {
      const auto i = static_cast<std::uint32_t>(random.below(kMostMembers));
      if (std::find(missing.begin(), missing.end(), i) == missing.end()) missing.push_back(i);
    }
    expect_restored(b, e, d, missing, {7, 0, 3, 1, 2, 6, 5, 4});
  }
}

// What a long group left behind must not be in the next, shorter one.
TEST(ReedSolomon, AGroupKnowsNothingOfTheOneBefore) {
  Encoder e(2, kLongest);
  Decoder d(kLongest);
  const Blocks first(4, std::vector<std::uint8_t>(kLongest, 0xAB));
  for (std::uint32_t i = 0; i < 4; ++i) e.add(i, first[i]);
  expect_restored(first, e, d, {0, 1}, {0, 1});
  e.begin();
  const Blocks second = {{1, 2, 3}, {4}};
  for (std::uint32_t i = 0; i < 2; ++i) e.add(i, second[i]);
  EXPECT_EQ(e.used(), 3U);
  expect_restored(second, e, d, {1}, {1});
  expect_restored(second, e, d, {0, 1}, {1, 0});
}

}  // namespace
}  // namespace weft::wan
