#include "sim/nic/cache/tags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <list>
#include <map>
#include <optional>
#include <set>

#include "core/base/prng.h"
#include "sim/nic/cache/translation.h"
#include "sim/nic/cache/wqe_cache.h"

namespace weft::sim {
namespace {

// The reference: a list of keys, the oldest use first; pins are counted beside it.
class ReferenceLru {
 public:
  explicit ReferenceLru(std::size_t entries) : entries_(entries) {}
  bool holds(std::uint64_t key) const { return pins_.contains(key); }
  std::size_t pinned() const { return pins_.size() - order_.size(); }
  void touch(std::uint64_t key) {
    if (pins_.at(key) == 0) order_.splice(order_.end(), order_, std::find(order_.begin(), order_.end(), key));
  }
  void pin(std::uint64_t key) {
    if (pins_.at(key)++ == 0) order_.remove(key);
  }
  void unpin(std::uint64_t key) {
    if (--pins_.at(key) == 0) order_.push_back(key);
  }
  void erase(std::uint64_t key) {
    pins_.erase(key);
    order_.remove(key);
  }
  // What leaves, or nothing.
  std::optional<std::uint64_t> insert(std::uint64_t key) {
    std::optional<std::uint64_t> left;
    if (pins_.size() == entries_) {
      left = order_.front();
      erase(*left);
    }
    pins_[key] = 0;
    order_.push_back(key);
    return left;
  }

 private:
  std::size_t entries_;
  std::map<std::uint64_t, int> pins_;
  std::list<std::uint64_t> order_;
};

// Random uses, pins and removals: the same keys stay and leave as in the reference.
TEST(Tags, LeaveInTheOrderOfAReferenceLru) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Prng random(seed);
    const auto entries = static_cast<std::uint32_t>(random.between(1, 40));
    const std::uint64_t keys = random.between(1, 100);
    Tags tags(entries, Replacement::kLru, 1);
    ReferenceLru reference(entries);
    for (int i = 0; i < 5000; ++i) {
      const std::uint64_t key = random.below(keys) << random.below(2) * 33U;
      const Tags::Slot s = tags.find(key);
      ASSERT_EQ(s != Tags::kNone, reference.holds(key));
      const std::uint64_t what = random.below(10);
      if (s == Tags::kNone) {
        ASSERT_EQ(tags.free(), entries - reference.pinned());
        if (tags.free() == 0) continue;
        Tags::Left left;
        tags.insert(key, left);
        const auto expected = reference.insert(key);
        ASSERT_EQ(left.any, expected.has_value());
        if (left.any) {
          ASSERT_EQ(left.key, *expected);
        }
      } else if (what == 0 && tags.pins(s) == 0) {
        tags.erase(s);
        reference.erase(key);
      } else if (what <= 3) {
        tags.pin(s);
        reference.pin(key);
      } else if (what <= 7 && tags.pins(s) != 0) {
        tags.unpin(s);
        reference.unpin(key);
      } else {
        tags.touch(s);
        reference.touch(key);
      }
    }
    tags.check_invariants();
  }
}

// Each of 16 keys leaves as often as the others, within 5 standard deviations; a pinned one never.
TEST(Tags, RandomReplacementIsEvenAndSparesWhatIsPinned) {
  constexpr std::uint32_t kEntries = 16;
  constexpr int kRounds = 30'000;
  Tags tags(kEntries, Replacement::kRandom, 7);
  Tags::Left left;
  for (std::uint64_t k = 0; k < kEntries; ++k) tags.insert(k, left);
  tags.pin(tags.find(3));
  std::array<int, kEntries> times{};
  for (int i = 0; i < kRounds; ++i) {
    tags.insert(1000, left);
    ASSERT_TRUE(left.any);
    ASSERT_NE(left.key, 3U);
    ++times[left.key];
    const std::uint64_t gone = left.key;
    tags.erase(tags.find(1000));
    tags.insert(gone, left);
    ASSERT_FALSE(left.any);
  }
  const double mean = kRounds / (kEntries - 1.0);
  for (std::uint64_t k = 0; k < kEntries; ++k) {
    if (k != 3) {
      EXPECT_NEAR(times[k], mean, 5 * std::sqrt(mean)) << k;
    }
  }
  tags.check_invariants();
}

TEST(Tags, AChangeLeavesWithItsKeyAndNotWithTheNext) {
  Tags tags(1, Replacement::kLru, 1);
  Tags::Left left;
  tags.set_dirty(tags.insert(5, left));
  tags.insert(6, left);
  EXPECT_TRUE(left.dirty);
  EXPECT_EQ(left.key, 5U);
  tags.insert(7, left);
  EXPECT_FALSE(left.dirty);
}

// A cyclic walk over one key more than the cache has entries misses every time with LRU, and mostly hits with
// random replacement: why commercial NICs need not fall off a cliff.
TEST(Cache, LruFailsWhereTheWorkingSetIsOneTooLarge) {
  Cache lru(64, Replacement::kLru, 1);
  Cache random(64, Replacement::kRandom, 1);
  for (int round = 0; round < 100; ++round) {
    for (std::uint64_t key = 0; key < 65; ++key) {
      lru.look_up(key);
      random.look_up(key);
    }
  }
  EXPECT_EQ(lru.counters().hits, 0U);
  EXPECT_GT(random.counters().hits, random.counters().misses * 5);
}

TEST(Translation, AReadBringsTheNeighboursThatStandInTheSamePiece) {
  TranslationDesign d;
  d.cache = 64;
  d.fetch_bytes = 64;
  Translation t(d);
  ASSERT_EQ(t.entries_per_read(), 8U);
  EXPECT_EQ(t.misses({1}, 0, 1), 1U);
  EXPECT_EQ(t.misses({1}, 7 * 4096, 4096), 0U) << "came with page 0";
  EXPECT_EQ(t.misses({1}, 7 * 4096, 4097), 1U) << "page 8 stands in the next piece";
  EXPECT_EQ(t.misses({2}, 0, 1), 1U) << "another region";
  EXPECT_EQ(t.pages()->hits + t.pages()->misses, 5U);
}

// SRNIC §4.5: the hit rate depends on how much memory is touched, and not on who touches it; larger pages
// reach further.
TEST(Translation, HitsFollowTheMemoryThatIsTouchedAndTheSizeOfItsPages) {
  const auto hit_rate = [](std::uint64_t page, std::uint64_t touched) {
    TranslationDesign d;
    d.page = {page};
    d.cache = 1024;
    Translation t(d);
    Prng random(3);
    for (int i = 0; i < 50'000; ++i) t.misses({0}, random.below(touched), 1);
    return static_cast<double>(t.pages()->hits) / 50'000;
  };
  EXPECT_GT(hit_rate(4096, 4U << 20U), 0.99) << "1024 entries reach 4 MiB";
  EXPECT_NEAR(hit_rate(4096, 16U << 20U), 0.25, 0.02);
  EXPECT_GT(hit_rate(2U << 20U, 16U << 20U), 0.99);
}

TEST(Translation, ProtectionEntriesMissByThemselves) {
  TranslationDesign d;
  d.mpt_entries = 1;
  Translation t(d);
  EXPECT_EQ(t.misses({1}, 0, 1), 1U);
  EXPECT_EQ(t.misses({1}, 0, 1), 0U);
  EXPECT_EQ(t.misses({2}, 0, 0), 1U);
  EXPECT_EQ(t.pages(), nullptr);
}

// Against a set of what was brought and not taken.
TEST(WqeWindow, HoldsTheNextWqesOfItsQueueUpToItsEntries) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Prng random(seed);
    WqeWindow window(8);
    std::set<std::uint64_t> reference;
    std::uint64_t next = 0;
    for (int i = 0; i < 2000; ++i) {
      if (random.below(3) == 0) {
        const auto n = static_cast<std::uint32_t>(random.between(1, 12));
        window.bring(next, n);
        for (std::uint64_t k = next; k < next + n && reference.size() < 8; ++k) reference.insert(k);
      } else {
        ASSERT_EQ(window.take(next), reference.contains(next)) << "seed " << seed << " step " << i;
        reference.erase(next++);
      }
      ASSERT_EQ(window.held(), reference.size());
    }
  }
}

TEST(SharedWqes, AWqeIsTakenOnceAndTheOldestLeave) {
  SharedWqes shared(2, Replacement::kLru, 1);
  shared.bring({1}, 0);
  shared.bring({2}, 0);
  EXPECT_TRUE(shared.take({1}, 0));
  EXPECT_FALSE(shared.take({1}, 0));
  shared.bring({3}, 5);
  shared.bring({4}, 5);
  EXPECT_FALSE(shared.take({2}, 0)) << "it was the oldest of two";
  EXPECT_TRUE(shared.take({4}, 5));
  EXPECT_EQ(shared.hits(), 2U);
  EXPECT_EQ(shared.misses(), 2U);
}

}  // namespace
}  // namespace weft::sim
