// What two ends grant each other and take, without a network: Inbox and Outbox facing each other, honest ones
// and liars; and the bytes of the offers, which other implementations read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/prng.h"
#include "live/rsockets/inbox.h"
#include "live/rsockets/outbox.h"
#include "live/rsockets/wire.h"

namespace weft::live::rsockets {
namespace {

Offer offer(std::uint16_t credits, std::uint32_t half) {
  Offer o;
  o.credits = credits;
  o.targets = 2;
  o.first = {0, 1, half};
  return o;
}

TEST(Offers, HaveTheLayoutOfVersionOne) {
  Offer o = offer(0x0180, 0x10000);
  o.maps = 300;
  o.targets_at = 0x1122334455667788;
  o.targets_key = 0xAABBCCDD;
  o.first.address = 0x0102030405060708;
  std::uint8_t bytes[kOfferBytes];
  write_offer(o, bytes);
  const std::uint8_t expected[kOfferBytes] = {
      1, 2, 0x01, 0x80, 0, 0, 0, 0x81, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xAA, 0xBB, 0xCC, 0xDD,
      0, 0, 0,    2,    1, 2, 3, 4,    5,    6,    7,    8,    0,    0,    0,    1,    0,    1,    0,    0};
  EXPECT_TRUE(std::equal(std::begin(bytes), std::end(bytes), std::begin(expected)));
  const auto back = read_offer(bytes, sizeof bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->credits, 0x0180);
  EXPECT_EQ(back->maps, 256U);  // in steps of 256 above 128
  EXPECT_EQ(back->targets_at, o.targets_at);
  EXPECT_EQ(back->first.length, 0x10000U);
  EXPECT_FALSE(back->swapped);
}

TEST(Offers, OfAnEndWithTheOtherByteOrderSayHowToWriteForIt) {
  std::uint8_t bytes[kOfferBytes];
  write_offer(offer(16, 4096), bytes);
  bytes[1] ^= kBigEndian;
  const auto back = read_offer(bytes, sizeof bytes);
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->swapped);
  const Target t = ordered(Target{1, 2, 3}, true);
  EXPECT_EQ(t.address, std::uint64_t{1} << 56U);
  EXPECT_EQ(t.key, 2U << 24U);
  EXPECT_EQ(t.length, 3U << 24U);
}

TEST(Offers, ThatNoEndMakesAreRefused) {
  std::uint8_t good[kOfferBytes];
  write_offer(offer(16, 4096), good);
  EXPECT_TRUE(read_offer(good, sizeof good));
  EXPECT_FALSE(read_offer(good, sizeof good - 1));
  EXPECT_FALSE(read_offer(nullptr, 0));
  const auto without = [&](std::size_t from, std::size_t to, std::uint8_t value) {
    std::uint8_t bad[kOfferBytes];
    std::copy(std::begin(good), std::end(good), std::begin(bad));
    std::fill(bad + from, bad + to, value);
    return read_offer(bad, sizeof bad);
  };
  EXPECT_FALSE(without(0, 1, 2));       // another version
  EXPECT_FALSE(without(2, 4, 0));       // no credits
  EXPECT_FALSE(without(20, 24, 0));     // no targets
  EXPECT_FALSE(without(20, 24, 0xFF));  // more than anybody has
  EXPECT_FALSE(without(36, 40, 0));     // an empty first target
}

// Messages on their way from one end to the other, which arrive in order and at any time.
struct Wire {
  Inbox inbox;
  Outbox outbox;
  std::deque<std::uint32_t> data;
  std::deque<Inbox::Grant> grants;
  std::deque<std::uint32_t> unfinished;
  std::uint64_t written = 0;  // where the next byte goes, by the sender's targets
  std::uint64_t out = 0;
  std::uint64_t in = 0;
};

// Two honest ends, any interleaving: nobody ever refuses anything, bytes lie where the receiver reads them,
// and nobody waits for ever.
TEST(Boxes, OfHonestEndsNeverRefuseAndNeverStop) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Prng random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random.below(n)); };
    const std::uint32_t ring = 2 * (1 + below(300));
    const auto credits = static_cast<std::uint16_t>(1 + below(20));
    const std::uint32_t out = 1 + below(400);
    Wire w{Inbox(ring, credits), Outbox(out, 1 + below(8)), {}, {}, {}, 0, 0, 0};
    w.outbox.begin(offer(credits, ring / 2));
    std::uint32_t idle = 0;
    while (w.in < 70'000) {
      const std::uint64_t before = w.out + w.in;
      switch (below(5)) {
        case 0:
          if (const std::uint32_t want = 1 + below(200); w.outbox.ready(want)) {
            const Outbox::Piece p = w.outbox.take(want);
            ASSERT_NE(p.length, 0U);
            ASSERT_EQ(p.to.address % ring, w.out % ring) << "seed " << seed;
            w.data.push_back(p.length);
            w.unfinished.push_back(p.length);
            w.out += p.length;
          }
          break;
        case 1:
          if (!w.data.empty()) {
            ASSERT_TRUE(w.inbox.arrived(w.data.front())) << "seed " << seed;
            w.data.pop_front();
          }
          break;
        case 2:
          if (!w.unfinished.empty()) {
            w.outbox.done(w.unfinished.front());
            w.unfinished.pop_front();
          }
          break;
        case 3:
          if (w.inbox.unread() != 0) {
            const std::uint32_t n = 1 + below(w.inbox.unread());
            ASSERT_EQ(w.inbox.offset(), w.in % ring);
            w.inbox.read(n);
            w.in += n;
          }
          if (w.inbox.owes()) w.grants.push_back(w.inbox.grant());
          break;
        default:
          if (!w.grants.empty()) {
            const Inbox::Grant g = w.grants.front();
            w.grants.pop_front();
            ASSERT_TRUE(w.outbox.credit(g.limit)) << "seed " << seed;
            if (g.has_half) {
              ASSERT_TRUE(w.outbox.takes_target());
              w.outbox.target({g.half_at, 1, g.half_length});
            }
          }
      }
      idle = w.out + w.in == before ? idle + 1 : 0;
      ASSERT_LT(idle, 2000U) << "seed " << seed << ": both ends wait";
    }
  }
}

// A peer that says anything at all. What is accepted never adds up to more than was granted.
TEST(Inbox, TakesNoMoreThanItHasGranted) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Prng random(seed);
    const std::uint32_t ring = 512;
    Inbox box(ring, 16);
    std::uint64_t granted = ring / 2;
    std::uint64_t arrived = 0;
    std::uint32_t messages = 0;  // whose credits were not given back
    std::uint32_t read = 0;      // of those
    for (int i = 0; i < 500; ++i) {
      const std::uint32_t length =
          static_cast<std::uint32_t>(random.below(8) == 0 ? random.next() : random.below(70));
      if (box.arrived(length)) {
        arrived += length;
        ++messages;
      }
      ASSERT_LE(arrived, granted);
      ASSERT_LE(box.unread(), ring);
      if (random.below(4) == 0 && box.unread() != 0) {
        box.read(box.unread());
        read = messages;
      }
      ASSERT_LE(messages, 16U);
      if (random.below(4) == 0 && box.owes()) {
        granted += box.grant().half_length;
        messages -= std::exchange(read, 0);
      }
    }
    EXPECT_FALSE(box.arrived(0));
  }
}

TEST(Outbox, TakesNoMoreCreditThanThePeerSaidItHas) {
  Outbox box(4096, 64);
  box.begin(offer(16, 4096));
  EXPECT_TRUE(box.credit(16));
  EXPECT_FALSE(box.credit(17));
  EXPECT_FALSE(box.credit(0xFFFF));
  box.take(1);
  EXPECT_TRUE(box.credit(17));
  EXPECT_TRUE(box.credit(0x1'0011));  // other implementations do not cut it to 16 bits
  EXPECT_FALSE(box.credit(18));
  EXPECT_FALSE(box.credit(0));
}

// Two ends that have used up each other's credit still say that they have read something.
TEST(Outbox, KeepsRequestsForControl) {
  Outbox box(1 << 20, 4);
  box.begin(offer(16, 1 << 20));
  for (int i = 0; i < 4; ++i) box.take(1);
  EXPECT_FALSE(box.ready(1));
  std::vector<std::uint32_t> slots;
  while (box.has_control()) slots.push_back(box.take_control());
  EXPECT_EQ(slots, (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_FALSE(box.all_done());
  for (int i = 0; i < 4; ++i) {
    box.done(1);
    box.control_done();
  }
  EXPECT_TRUE(box.all_done());
}

}  // namespace
}  // namespace weft::live::rsockets
