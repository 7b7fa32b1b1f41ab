// Sequence numbers over wraps: the signed distance of 24-bit numbers, and the 64-bit number nearest to one
// that is already trusted.
#include "core/base/seq.h"

#include <gtest/gtest.h>

#include <concepts>

namespace weft {
namespace {

constexpr std::int32_t kHalf = 1 << 23;

TEST(WirePsn, DistanceCountsAcrossTheWrap) {
  EXPECT_EQ(WirePsn{5}.distance({3}), 2);
  EXPECT_EQ(WirePsn{3}.distance({5}), -2);
  EXPECT_EQ(WirePsn{0}.distance({kPsnMask}), 1);
  EXPECT_EQ(WirePsn{kPsnMask}.distance({0}), -1);
  EXPECT_EQ(WirePsn{0x10}.distance({0xFFFF'F0}), 0x20);
}

// docs/protocol/reliable.md#sequence-numbers: a number exactly half the space away counts as before.
TEST(WirePsn, HalfTheSpaceAwayIsTheLastNumberBeforeAndOneLessTheLastAfter) {
  for (const std::uint32_t base : {0U, 1U, 0x7F'FFFFU, 0x80'0000U, kPsnMask}) {
    const WirePsn b{base};
    EXPECT_EQ((WirePsn{(base + 0x7F'FFFF) & kPsnMask}.distance(b)), kHalf - 1);
    EXPECT_EQ((WirePsn{(base + 0x80'0000) & kPsnMask}.distance(b)), -kHalf);
    EXPECT_EQ((WirePsn{(base + 0x80'0001) & kPsnMask}.distance(b)), -kHalf + 1);
  }
}

TEST(Seq, StartsOneWrapUpSoThatNumbersBeforeTheStartExist) {
  const Seq first = Seq::start({0});
  EXPECT_EQ(first.wire(), WirePsn{0});
  const Seq before = expand({kPsnMask}, first);
  EXPECT_EQ(first - before, 1U);
  EXPECT_LT(before, first);
  EXPECT_EQ(expand({0x80'0000}, first), first - 0x80'0000);
}

TEST(Seq, StartTakes24BitsOfWhatAUserAskedFor) {
  EXPECT_EQ(Seq::start({0xAB'123456}).wire(), WirePsn{0x123456});
  EXPECT_EQ(Seq::start({0xAB'123456}), Seq::start({0x123456}));
}

// A stream walks over three wraps in uneven steps; packets around its head, near and nearly half the space
// away, are expanded against it and must come back exactly.
TEST(Seq, ExpandRecoversEveryNumberWithinHalfTheSpaceOverSeveralWraps) {
  for (Seq head = Seq::start({0xFF'FF00}); head.v < (4ULL << 24U); head += 77'777) {
    for (const std::int64_t offset :
         {-8'388'608, -8'388'607, -65'536, -2, -1, 0, 1, 2, 65'536, 8'388'606, 8'388'607}) {
      const Seq packet{head.v + static_cast<std::uint64_t>(offset)};
      ASSERT_EQ(expand(packet.wire(), head), packet) << "head " << head.v << " offset " << offset;
    }
  }
}

TEST(Seq, ExpandDependsOnTheTrustedNumberAndNotOnThePacketAlone) {
  const Seq early = Seq::start({10});
  EXPECT_EQ(expand({12}, early), early + 2);
  EXPECT_EQ(expand({12}, early + (1ULL << 24U)), early + (1ULL << 24U) + 2);
}

TEST(Msn, CountsModulo24Bits) {
  Msn m{kPsnMask - 1};
  EXPECT_EQ(++m, Msn{kPsnMask});
  EXPECT_EQ(++m, Msn{0});
}

// Comparing wire numbers without a reference point is the classic wrap bug: it must not compile.
template <class T>
concept Ordered = requires(T a, T b) {
  a < b;
};
static_assert(!Ordered<WirePsn> && !Ordered<Msn> && Ordered<Seq>);
static_assert(!std::convertible_to<WirePsn, Seq> && !std::convertible_to<Seq, WirePsn>);

}  // namespace
}  // namespace weft
