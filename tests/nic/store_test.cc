// The stores of contexts against serial oracles: what they must grant, in which order, and for the blocking
// one and the one that holds everything, when to the picosecond.
#include <gtest/gtest.h>

#include <cstdlib>
#include <list>
#include <map>

#include "core/base/prng.h"
#include "tests/nic/store_driver.h"

namespace weft::sim {
namespace {

using Ask = StoreDriver::Ask;
constexpr Duration kRead = nanoseconds(500);

Design cached(ContextPolicy policy, std::uint32_t entries, std::uint32_t capacity = 16) {
  Design d;
  d.context.policy = policy;
  d.context.cache = entries;
  d.context.ooo_capacity = capacity;
  d.context.access = {1, 3};
  return d;
}
Ask ask(std::int64_t ns, std::uint32_t qpn, StoreChannel channel = StoreChannel::kDescriptor) {
  return {Time{} + nanoseconds(ns), Qpn{qpn}, channel, {}, true, false};
}
std::vector<std::uint32_t> order_of(const StoreDriver& d) {
  std::vector<std::uint32_t> qpns;
  for (const ContextGrant& g : d.grants) qpns.push_back(g.qpn.v);
  return qpns;
}

// csRNA §3, Figure 2: QP6 is not in the cache; QP5 and QP4 are.
TEST(Stores, AMissHoldsUpOthersOnlyWhereTheFirstComeIsServedFirst) {
  const std::vector<Ask> warm_then_figure2{ask(0, 5), ask(1, 4), ask(2000, 6), ask(2001, 5), ask(2002, 4)};
  StoreDriver fcfs(cached(ContextPolicy::kFcfs, 8), [] { return kRead; });
  fcfs.run(warm_then_figure2);
  EXPECT_EQ(order_of(fcfs), (std::vector<std::uint32_t>{5, 4, 6, 5, 4}));
  StoreDriver nb(cached(ContextPolicy::kNonBlocking, 8), [] { return kRead; });
  nb.run(warm_then_figure2);
  EXPECT_EQ(order_of(nb), (std::vector<std::uint32_t>{5, 4, 5, 4, 6}));
  EXPECT_EQ(nb.grants[2].at - nb.grants[2].asked, nanoseconds(3)) << "as if nothing were missing";
}

TEST(Stores, AnIdleStoreAnswersAfterItsDepthAndAReadOfTheMemory) {
  for (const ContextPolicy policy : {ContextPolicy::kFcfs, ContextPolicy::kNonBlocking}) {
    StoreDriver d(cached(policy, 8), [] { return kRead; });
    d.run({ask(0, 1), ask(1000, 1)});
    EXPECT_EQ(d.grants[0].at, Time{} + kRead + nanoseconds(3));
    EXPECT_EQ(d.grants[1].at - d.grants[1].asked, nanoseconds(3));
    EXPECT_EQ(d.reads, 1U);
  }
}

TEST(Stores, AReadOfTheMemoryIsSharedByTheRequestsOfItsQueuePair) {
  StoreDriver d(cached(ContextPolicy::kNonBlocking, 8), [] { return kRead; });
  d.run({ask(0, 1), ask(1, 1, StoreChannel::kRequester), ask(2, 1, StoreChannel::kResponder), ask(3, 1)});
  EXPECT_EQ(d.reads, 1U);
  EXPECT_EQ(d.store->counters().ordered, 3U);
  EXPECT_LT(d.now - Time{}, kRead + nanoseconds(20));
  for (std::size_t i = 0; i < d.grants.size(); ++i) EXPECT_EQ(d.grants[i].tag, i);
}

// With 16 indexes, 16 reads of 500 ns overlap; with one, none do.
TEST(Stores, AsManyMissesOverlapAsAChannelHasIndexes) {
  for (const std::uint32_t capacity : {1U, 4U, 16U}) {
    std::vector<Ask> asks;
    for (std::uint32_t i = 0; i < 160; ++i) asks.push_back(ask(0, i));
    StoreDriver d(cached(ContextPolicy::kNonBlocking, 300, capacity), [] { return kRead; });
    d.run(asks);
    const double rounds = 160.0 / capacity;
    EXPECT_NEAR(static_cast<double>((d.now - Time{}).ps), rounds * static_cast<double>(kRead.ps),
                rounds * 25e3)
        << capacity;
  }
}

TEST(Stores, LookingAheadOfAMissKeepsTheOrderAndOverlapsReads) {
  std::vector<Ask> asks;
  for (std::uint32_t i = 0; i < 16; ++i) asks.push_back(ask(0, i));
  for (const std::uint32_t misses : {1U, 4U}) {
    Design design = cached(ContextPolicy::kFcfs, 8);
    design.context.misses = misses;
    StoreDriver d(design, [] { return kRead; });
    d.run(asks);
    for (std::size_t i = 0; i < asks.size(); ++i) EXPECT_EQ(d.grants[i].tag, i);
    EXPECT_NEAR(static_cast<double>((d.now - Time{}).ns()), 16.0 / misses * 500, 100);
  }
}

// The look-up of a send queue's address begins the read; the request that comes 300 ns later waits for the
// rest of it.
TEST(Stores, APrefetchTakesTheTimeUntilTheRequestOffItsWait) {
  Design design = cached(ContextPolicy::kNonBlocking, 8);
  design.context.sq_table = 1024;
  StoreDriver d(design, [] { return kRead; });
  Ask look = ask(0, 7);
  look.address = true;
  d.run({look, ask(300, 7, StoreChannel::kRequester)});
  ASSERT_EQ(d.grants.size(), 1U);
  EXPECT_EQ(d.reads, 1U);
  EXPECT_NEAR(static_cast<double>((d.grants[0].at - d.grants[0].asked).ns()), 203, 3);
  EXPECT_EQ(d.store->counters().prefetches, 1U);
  EXPECT_EQ(d.store->counters().misses, 0U);
}

TEST(Stores, WithoutATableAQueuesAddressIsInItsContext) {
  StoreDriver nb(cached(ContextPolicy::kNonBlocking, 8), [] { return kRead; });
  EXPECT_FALSE(nb.store->queue_address({1}, Time{}));
  StoreDriver chip(Design{}, [] { return kRead; });
  EXPECT_TRUE(chip.store->queue_address({1}, Time{}));
}

// A context in use does not leave, so that the next one waits until it is released.
TEST(Stores, AContextInUseStaysAndAnArrivalWaitsForItsPlace) {
  for (const ContextPolicy policy : {ContextPolicy::kFcfs, ContextPolicy::kNonBlocking}) {
    StoreDriver d(cached(policy, 1), [] { return kRead; });
    Ask slow = ask(0, 1);
    slow.held = microseconds(5);
    d.run({slow, ask(10, 2)});
    ASSERT_EQ(d.grants.size(), 2U);
    EXPECT_GE(d.grants[1].at, d.grants[0].at + microseconds(5));
    EXPECT_EQ(d.writes, 1U) << "it was changed";
    EXPECT_EQ(d.report.text(), "");
  }
}

TEST(Stores, AForgottenContextIsNotWrittenBack) {
  for (const ContextPolicy policy : {ContextPolicy::kFcfs, ContextPolicy::kNonBlocking}) {
    StoreDriver d(cached(policy, 1), [] { return kRead; });
    d.run({ask(0, 1)});
    EXPECT_TRUE(d.store->holds({1}));
    d.store->forget({1}, d.now);
    EXPECT_FALSE(d.store->holds({1}));
    d.run({{d.now, Qpn{2}, StoreChannel::kDescriptor, {}, false, false}});
    EXPECT_EQ(d.writes, 0U);
  }
}

// --- Oracles ---

struct Traffic {
  std::uint32_t queue_pairs = 1;
  std::uint32_t requests = 1;
  std::int64_t gap_ns = 1;   // mean
  std::int64_t held_ns = 0;  // at most
  bool addresses = false;
};

std::vector<Ask> draw(const Traffic& t, Prng& random) {
  std::vector<Ask> asks;
  Time at{};
  for (std::uint32_t i = 0; i < t.requests; ++i) {
    at = at +
         nanoseconds(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * t.gap_ns + 1))));
    // A few are asked for often, so that requests meet.
    const std::uint64_t among = random.below(2) == 0 ? t.queue_pairs : 1 + t.queue_pairs / 4;
    Ask a;
    a.at = at;
    a.qpn = Qpn{static_cast<std::uint32_t>(random.below(among))};
    a.channel = static_cast<StoreChannel>(random.below(3));
    a.held = nanoseconds(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(t.held_ns) + 1)));
    a.dirty = random.below(2) == 0;
    a.address = t.addresses && random.below(4) == 0;
    asks.push_back(a);
  }
  return asks;
}

// What holds of every store after every run.
void expect_whole(const StoreDriver& d, const std::vector<Ask>& asks) {
  const StoreCounters& n = d.store->counters();
  std::size_t requests = 0;
  for (const Ask& a : asks) requests += a.address ? 0U : 1U;
  ASSERT_EQ(d.report.text(), "");
  ASSERT_EQ(n.requests, requests);
  ASSERT_EQ(n.grants, requests) << "a request was lost";
  ASSERT_EQ(n.hits + n.misses + n.ordered - n.refetched, requests);
  ASSERT_EQ(n.misses + n.prefetches, d.reads);
  ASSERT_EQ(n.bytes_read, d.reads * d.store->design().bytes);
  ASSERT_EQ(n.write_backs, d.writes);
  ASSERT_EQ(n.bytes_written, d.writes * d.store->design().bytes);
  ASSERT_EQ(n.waited, n.occupied) << "Little's law";
  d.store->check_invariants();
}

// Small caches, few indexes, many requests of few queue pairs, reads of any length: contexts leave while
// requests wait for them, indexes come back while their queue pair has more requests.
void serial_order(ContextPolicy policy, std::uint64_t seeds) {
  std::uint64_t refetched = 0;
  std::uint64_t ordered = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Prng random(seed);
    Design d = cached(policy, static_cast<std::uint32_t>(random.between(1, 6)),
                      static_cast<std::uint32_t>(random.between(1, 6)));
    d.context.replacement = random.below(2) == 0 ? Replacement::kLru : Replacement::kRandom;
    d.context.access = {static_cast<std::uint32_t>(random.between(1, 3)),
                        static_cast<std::uint32_t>(random.between(1, 6))};
    d.context.misses = static_cast<std::uint32_t>(random.between(1, 4));
    d.context.write_back = random.below(8) != 0;
    d.context.sq_table = random.below(2) == 0 ? 100 : 0;
    const auto longest = static_cast<std::uint64_t>(random.between(1, 200));
    Traffic t;
    t.queue_pairs = static_cast<std::uint32_t>(random.between(1, 16));
    t.requests = static_cast<std::uint32_t>(random.between(10, 60));
    t.gap_ns = static_cast<std::int64_t>(random.between(1, 30));
    t.held_ns = static_cast<std::int64_t>(random.below(2) * random.below(100));
    t.addresses = d.context.sq_table != 0;
    const std::vector<Ask> asks = draw(t, random);
    Prng latency = random.fork(1);
    StoreDriver driver(d, [&] { return nanoseconds(static_cast<std::int64_t>(latency.below(longest))); });
    driver.run(asks);
    expect_whole(driver, asks);
    if (::testing::Test::HasFatalFailure()) return;
    refetched += driver.store->counters().refetched;
    ordered += driver.store->counters().ordered;
  }
  if (policy == ContextPolicy::kNonBlocking) {
    EXPECT_GT(refetched, seeds / 2) << "contexts left while requests waited for them";
    EXPECT_GT(ordered, seeds);
  }
}

// WEFT_SEQUENCES asks for more: millions take minutes.
std::uint64_t sequences() {
  const char* wanted = std::getenv("WEFT_SEQUENCES");
  return wanted == nullptr ? 20'000 : std::strtoull(wanted, nullptr, 10);
}
TEST(SerialOracle, NonBlockingGrantsEachRequestOnceAndInTheOrderOfItsQueuePair) {
  serial_order(ContextPolicy::kNonBlocking, sequences());
}
TEST(SerialOracle, FirstComeGrantsEachRequestOnceAndInTheOrderOfItsQueuePair) {
  serial_order(ContextPolicy::kFcfs, sequences());
}

// First come, first served, with one miss at a time, is a serial machine: a list of requests, a clock, and a
// reference LRU.
TEST(SerialOracle, FirstComeIsASerialMachineToThePicosecond) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Prng random(seed);
    const auto entries = static_cast<std::size_t>(random.between(8, 40));
    Design d = cached(ContextPolicy::kFcfs, static_cast<std::uint32_t>(entries), 256);
    d.context.access = {1, 1};
    Traffic t;
    t.queue_pairs = static_cast<std::uint32_t>(random.between(1, 80));
    t.requests = 250;
    t.gap_ns = static_cast<std::int64_t>(random.between(1, 600));
    std::vector<Ask> asks = draw(t, random);
    for (Ask& a : asks) a.channel = StoreChannel::kDescriptor;
    StoreDriver driver(d, [] { return kRead; });
    driver.run(asks);
    expect_whole(driver, asks);
    if (::testing::Test::HasFatalFailure()) return;

    std::list<std::uint32_t> cache;  // the latest use first
    Time free{};
    std::uint64_t hits = 0;
    for (std::size_t i = 0; i < asks.size(); ++i) {
      const Time begin = std::max(asks[i].at, free);
      Time end = begin;
      const auto found = std::find(cache.begin(), cache.end(), asks[i].qpn.v);
      if (found != cache.end()) {
        cache.erase(found);
        ++hits;
      } else {
        end = std::max(begin + kRead, begin + nanoseconds(1));
        if (cache.size() == entries) cache.pop_back();
      }
      cache.push_front(asks[i].qpn.v);
      free = end + nanoseconds(1);
      ASSERT_EQ(driver.grants[i].tag, i);
      ASSERT_EQ(driver.grants[i].at, end + nanoseconds(1)) << "seed " << seed << " request " << i;
    }
    ASSERT_EQ(driver.store->counters().hits, hits);
  }
}

TEST(SerialOracle, AnOnChipStoreIsAPipeline) {
  Prng random(5);
  Traffic t;
  t.queue_pairs = 1000;
  t.requests = 5000;
  const std::vector<Ask> asks = draw(t, random);
  Design d;
  d.context.access = {2, 5};
  StoreDriver driver(d, [] { return kRead; });
  driver.run(asks);
  expect_whole(driver, asks);
  Time last = Time{} - seconds(1);
  for (const ContextGrant& g : driver.grants) {
    EXPECT_EQ(g.at, std::max(g.asked, last + nanoseconds(2 - 5)) + nanoseconds(5));
    last = g.at;
  }
}

}  // namespace
}  // namespace weft::sim
