// Memory windows, rule by rule (docs/protocol/verbs.md#memory-windows): which binds are refused, who may use
// what is bound, and what ends it.
#include "core/transport/key_table.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Denied = KeyTable::Denied;

constexpr PdId kPd{0};
constexpr Qpn kMine{17};
constexpr Qpn kOther{18};
constexpr std::uint64_t kBase = 0x1000;
constexpr std::uint8_t kAll = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kMwBind;

class WindowTest : public ::testing::TestWithParam<WindowType> {
 protected:
  WindowBind bind_to(Key to, Key as, std::uint8_t access = kRemoteRead) const {
    return {as, to, kBase + 100, 50, access};
  }
  static Key retagged(Key key) { return {(key.v & ~0xFFU) | ((key.v + 1) & 0xFFU)}; }
  Denied use(Key key, std::uint64_t at = kBase + 100, std::uint64_t bytes = 50, Qpn by = kMine,
             std::uint8_t rights = kRemoteRead) const {
    RegionId r;
    std::uint64_t offset = 0;
    return keys.check_remote(key, kPd, by, rights, at, bytes, r, offset);
  }
  bool second() const { return GetParam() == WindowType::k2; }

  KeyTable keys{64, Prng(1)};
  Key region = *keys.add(kPd, kBase, 4096, kAll);
  Key window = *keys.add_window(kPd, GetParam());
};

TEST_P(WindowTest, OpensItsRangeAndRightsAndNoMore) {
  EXPECT_EQ(use(window), Denied::kKey);
  ASSERT_TRUE(keys.bind(bind_to(region, window), kPd, kMine));
  EXPECT_EQ(use(window), Denied::kNo);
  EXPECT_EQ(use(window, kBase + 99), Denied::kBounds);
  EXPECT_EQ(use(window, kBase + 101), Denied::kBounds);
  EXPECT_EQ(use(window, kBase + 100, ~0ULL), Denied::kBounds);
  EXPECT_EQ(use(window, kBase + 100, 50, kMine, kRemoteWrite), Denied::kRights);
  EXPECT_EQ(use(window, kBase + 100, 50, kOther), second() ? Denied::kDomain : Denied::kNo);
}

TEST_P(WindowTest, ABindIsRefused) {
  const Key not_for_windows = *keys.add(kPd, kBase, 4096, kAll & ~kMwBind);
  EXPECT_FALSE(keys.bind(bind_to(not_for_windows, window), kPd, kMine));
  const Key read_only = *keys.add(kPd, kBase, 4096, kRemoteRead | kMwBind);
  EXPECT_FALSE(keys.bind(bind_to(read_only, window, kRemoteWrite), kPd, kMine));
  EXPECT_FALSE(keys.bind(bind_to(read_only, window, kRemoteAtomic), kPd, kMine));
  const Key of_others = *keys.add(PdId{1}, kBase, 4096, kAll);
  EXPECT_FALSE(keys.bind(bind_to(of_others, window), kPd, kMine));
  EXPECT_FALSE(keys.bind(bind_to(region, window), PdId{1}, kMine));
  EXPECT_FALSE(keys.bind(bind_to(region, window, kRemoteRead | kMwBind), kPd, kMine));
  const Key zero_based = *keys.add(kPd, kBase, 4096, kAll | kZeroBased);
  EXPECT_FALSE(keys.bind({window, zero_based, 100, 50, kRemoteRead}, kPd, kMine));
  WindowBind outside = bind_to(region, window);
  outside.length = 4096;
  EXPECT_FALSE(keys.bind(outside, kPd, kMine));
  outside.length = ~0ULL;
  EXPECT_FALSE(keys.bind(outside, kPd, kMine));
  EXPECT_FALSE(keys.bind(bind_to(window, region), kPd, kMine)) << "a region is no window";
  const Key another = *keys.add_window(kPd, GetParam());
  EXPECT_FALSE(keys.bind(bind_to(another, window), kPd, kMine)) << "nor a window a region";
  EXPECT_EQ(use(window), Denied::kKey);
}

// Programs name it, and it means nothing: what a window opens is for others.
TEST_P(WindowTest, LocalWritingIsNoRightOfAWindow) {
  ASSERT_TRUE(keys.bind(bind_to(region, window, kLocalWrite), kPd, kMine));
  EXPECT_EQ(use(window), Denied::kRights);
  EXPECT_EQ(use(window, kBase + 100, 50, kMine, kRemoteWrite), Denied::kRights);
}

// Its addresses count from its own first byte; what they reach is the same.
TEST_P(WindowTest, OfTypeTwoMayCountFromZero) {
  ASSERT_EQ(keys.bind(bind_to(region, window, kRemoteRead | kZeroBased), kPd, kMine), second());
  if (!second()) return;
  RegionId r;
  std::uint64_t offset = 0;
  ASSERT_EQ(keys.check_remote(window, kPd, kMine, kRemoteRead, 10, 40, r, offset), Denied::kNo);
  EXPECT_EQ(r, KeyTable::region_of(region));
  EXPECT_EQ(offset, 110U);
  EXPECT_EQ(use(window, 10, 41), Denied::kBounds);
  EXPECT_EQ(use(window), Denied::kBounds);
}

TEST_P(WindowTest, KeepsItsRegion) {
  ASSERT_TRUE(keys.bind(bind_to(region, window), kPd, kMine));
  EXPECT_EQ(keys.change(region, kChangeAccess, kPd, 0, 0, kAll).error(), Errc::kBusy);
  EXPECT_EQ(keys.remove(region).error(), Errc::kBusy);
  ASSERT_TRUE(keys.remove_window(window));
  EXPECT_EQ(use(window), Denied::kKey);
  EXPECT_TRUE(keys.remove(region));
}

// Type 1 is bound anew at will, and its old key is dead at once; type 2 only after it was invalidated.
TEST_P(WindowTest, IsBoundAgain) {
  ASSERT_TRUE(keys.bind(bind_to(region, window), kPd, kMine));
  const Key next = retagged(window);
  EXPECT_EQ(keys.bind(bind_to(region, next), kPd, kMine), !second());
  EXPECT_EQ(use(window), second() ? Denied::kNo : Denied::kKey);
  EXPECT_FALSE(keys.invalidate(window, kOther));
  EXPECT_EQ(keys.invalidate(window, kMine), second());
  EXPECT_FALSE(keys.invalidate(region, kMine));
  EXPECT_TRUE(keys.bind(bind_to(region, next), kPd, kMine));
  EXPECT_EQ(use(next), Denied::kNo);
}

TEST_P(WindowTest, ALengthOfZeroClosesTypeOneAndIsNothingToTypeTwo) {
  ASSERT_TRUE(keys.bind(bind_to(region, window), kPd, kMine));
  const Key next = retagged(window);
  WindowBind nothing = bind_to(region, next);
  nothing.length = 0;
  EXPECT_EQ(keys.bind(nothing, kPd, kMine), !second());
  EXPECT_EQ(use(window), second() ? Denied::kNo : Denied::kKey);
  EXPECT_EQ(use(next, kBase + 100, 0), Denied::kKey);
}

TEST_P(WindowTest, OfAQueuePairThatIsGoneIsFreeIfItWasItsOwn) {
  ASSERT_TRUE(keys.bind(bind_to(region, window), kPd, kMine));
  keys.unbind_all(kOther);
  EXPECT_EQ(use(window), Denied::kNo);
  keys.unbind_all(kMine);
  EXPECT_EQ(use(window), second() ? Denied::kKey : Denied::kNo);
}

class RegionTest : public ::testing::Test {
 protected:
  Denied use(std::uint64_t at, PdId pd = kPd, std::uint8_t rights = kRemoteRead) {
    return keys.check_remote(region, pd, kMine, rights, at, 8, where, offset);
  }
  KeyTable keys{64, Prng(1)};
  Key region = *keys.add(kPd, kBase, 4096, kAll);
  RegionId where;
  std::uint64_t offset = 0;
};

TEST_F(RegionTest, MayCountFromZero) {
  region = *keys.add(kPd, kBase, 4096, kAll | kZeroBased);
  ASSERT_EQ(use(4088), Denied::kNo);
  EXPECT_EQ(offset, 4088U);
  EXPECT_EQ(use(kBase), Denied::kBounds);
}

TEST_F(RegionTest, ChangesWhatItIsAskedToAndKeepsItsKey) {
  ASSERT_TRUE(keys.change(region, kChangeAccess, PdId{7}, 0, 0, kLocalWrite));
  EXPECT_EQ(use(kBase), Denied::kRights);
  ASSERT_TRUE(keys.change(region, kChangePd, PdId{1}, 0, 0, 0));
  EXPECT_EQ(use(kBase, kPd, 0), Denied::kDomain);
  EXPECT_EQ(use(kBase, PdId{1}, 0), Denied::kNo);
  ASSERT_TRUE(keys.change(region, kChangeRange, kPd, 0x9000, 16, 0));
  EXPECT_EQ(use(kBase, PdId{1}, 0), Denied::kBounds);
  ASSERT_EQ(use(0x9008, PdId{1}, 0), Denied::kNo);
  EXPECT_EQ(offset, 8U);
}

TEST_F(RegionTest, KeepsItsOldStateWhenAChangeIsRefused) {
  EXPECT_EQ(keys.change(region, 0, kPd, 0, 0, 0).error(), Errc::kInvalid);
  EXPECT_EQ(keys.change(region, kChangeAccess, kPd, 0, 0, kRemoteWrite).error(), Errc::kInvalid);
  EXPECT_EQ(keys.change(region, kChangeAccess, kPd, 0, 0, kZeroBased).error(), Errc::kInvalid);
  EXPECT_EQ(keys.change(region, kChangeRange, kPd, ~0ULL, 16, 0).error(), Errc::kInvalid);
  EXPECT_EQ(keys.change({region.v ^ 1U}, kChangePd, PdId{1}, 0, 0, 0).error(), Errc::kNotFound);
  EXPECT_EQ(use(kBase), Denied::kNo);
}

INSTANTIATE_TEST_SUITE_P(Types, WindowTest, ::testing::Values(WindowType::k1, WindowType::k2),
                         [](const auto& w) { return w.param == WindowType::k1 ? "type1" : "type2"; });

}  // namespace
}  // namespace weft
