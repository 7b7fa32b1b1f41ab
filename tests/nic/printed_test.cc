// Where csRNA's printed algorithms fail, one sequence each, and what repairs them. X0, X1 are the first and
// second request of queue pair X.
#include <gtest/gtest.h>

#include <string>

#include "core/base/prng.h"
#include "tests/nic/printed_store.h"
#include "tests/nic/store_driver.h"

namespace weft::sim {
namespace {

// Algorithm 2 counts an element down before it knows that it can be returned. X1 is looked at twice while
// X0's read is under way; when X0 returns, the table takes X for done, and X2 overtakes X1.
std::string a_look_in_vain(Repairs repairs) {
  PrintedStore s(4, 8, repairs);
  s.request('A');
  s.request('X');
  s.request('X');
  s.answer();  // A, so that the traversal begins
  s.check_all();
  s.answer();  // X0
  s.request('X');
  s.check_all();
  return s.granted();
}

TEST(PrintedAlgorithm, CountsARequestDownThatItOnlyLooksAt) {
  EXPECT_EQ(a_look_in_vain({}), "A0 X0 X2") << "X2 overtakes X1, which is lost";
  EXPECT_EQ(a_look_in_vain({.count_when_returned = true, .tickets = true}), "A0 X0 X1 X2");
}

// The same sequence with the count repaired. X1 was looked at and stands in the online FIFO; X2 comes to the
// offline one, which the traversal looks at first.
TEST(PrintedAlgorithm, LooksAtNewRequestsBeforeThoseThatItHasLookedAt) {
  Repairs all{true, true, true, false, true};
  EXPECT_EQ(a_look_in_vain(all), "A0 X0 X2 X1");
  all.tickets = true;
  EXPECT_EQ(a_look_in_vain(all), "A0 X0 X1 X2");
}

// A cache of one. X0 returns, Y0 returns and takes its place before X1 is looked at. Algorithm 2 pushes X1
// back, and neither marks it nor begins a read.
std::string an_evicted_context(Repairs repairs) {
  PrintedStore s(1, 8, repairs);
  s.request('X');
  s.request('Y');
  s.request('X');
  s.answer();
  s.answer();
  s.check_all();
  while (s.reads() != 0) s.answer();
  s.check_all();
  return s.granted();
}

TEST(PrintedAlgorithm, ForgetsToReadAContextThatHasLeftAgain) {
  EXPECT_EQ(an_evicted_context({.count_when_returned = true}), "X0 Y0") << "X1 waits for ever";
  EXPECT_EQ(an_evicted_context({.count_when_returned = true, .read_when_converted = true}), "X0 Y0 X1");
}

// Two indexes. X0 creates X's entry at place 0 (Formula 1) and returns; its index is free again while X1 is
// pending. Y0 takes index 0, misses, and overwrites X's entry. X2 then finds no entry and overtakes X1.
std::string a_recycled_index(Repairs repairs) {
  PrintedStore s(4, 3, repairs);
  s.request('X');  // index 0, place 0
  s.request('X');  // index 1
  s.request('B');  // index 2
  s.answer();      // X0: index 0 is free again
  s.request('Y');  // index 0: at place 0 stands X's entry
  s.answer();      // B0: index 2 is free again
  s.request('X');
  s.check_all();
  while (s.reads() != 0) s.answer();
  s.check_all();
  return s.granted();
}

TEST(PrintedAlgorithm, OverwritesTheEntryOfAQueuePairWhoseIndexHasComeBack) {
  Repairs all{true, true, false, true, true};
  EXPECT_EQ(a_recycled_index(all), "X0 B0 X2 Y0") << "X2 overtakes X1, which is lost";
  all.any_free_entry = true;
  EXPECT_EQ(a_recycled_index(all), "X0 X1 B0 X2 Y0");
}

// All of that repaired. X1 and X2 are pending when X's context leaves; X1 is read again and goes to the end
// of the FIFO, behind X2. When its answer comes X2 stands first and finds the context there.
std::string a_second_read(Repairs repairs) {
  PrintedStore s(1, 8, repairs);
  s.request('X');
  s.request('Y');
  s.request('X');
  s.request('X');
  s.answer();     // X0
  s.answer();     // Y0: X has left
  s.check_all();  // X1 is read again
  while (s.reads() != 0) s.answer();
  s.check_all();
  return s.granted();
}

TEST(PrintedAlgorithm, LetsALaterRequestPassOneWhoseContextIsReadAgain) {
  Repairs all{true, true, true, false, true};
  EXPECT_EQ(a_second_read(all), "X0 Y0 X2 X1");
  all.tickets = true;
  EXPECT_EQ(a_second_read(all), "X0 Y0 X1 X2");
}

// X1 and X2 have been looked at and stand online; Y0 is offline. Y0's answer finds X1, whose context it has
// just driven out, and then X2, whose turn it is not: X2 goes round and round, and Y0 behind the other FIFO
// is never reached.
TEST(PrintedAlgorithm, LetsAnAnswerGoRoundAmongElementsThatItIsNotFor) {
  for (const bool repaired : {false, true}) {
    PrintedStore s(1, 8, {true, true, true, true, repaired});
    s.request('A');
    s.request('X');
    s.request('X');
    s.request('X');
    s.answer();  // A, so that the traversal begins
    for (int i = 0; i < 3; ++i) s.check();
    s.request('Y');
    s.answer();  // X0
    s.answer();  // Y0
    EXPECT_EQ(s.stuck(), !repaired);
    s.check_all();
    while (s.reads() != 0) s.answer();
    s.check_all();
    EXPECT_EQ(s.granted() == "A0 X0 Y0 X1 X2", repaired) << s.granted();
  }
}

// Random sequences on the printed algorithms: how often each goes wrong, and that all repairs together never
// do.
struct Counts {
  int lost = 0;  // or stuck
  int disordered = 0;
};
Counts at_random(Repairs repairs, int sequences) {
  Counts wrong;
  for (int seed = 1; seed <= sequences; ++seed) {
    Prng random(static_cast<std::uint64_t>(seed));
    const auto capacity = static_cast<std::uint32_t>(random.between(2, 6));
    PrintedStore s(random.between(1, 3), capacity, repairs);
    std::map<char, int> asked;
    std::size_t all = 0;
    for (int i = 0; i < 40; ++i) {
      const auto done = (s.granted().size() + 1) / 3;
      switch (random.below(4)) {
        case 0:
          if (s.reads() != 0) s.answer();
          break;
        case 1:
          s.check();
          break;
        default:
          if (all - done >= capacity || all >= 27) break;
          const char q = static_cast<char>('A' + random.below(4));
          if (asked[q] == 9) break;
          ++asked[q];
          ++all;
          s.request(q);
      }
    }
    for (int i = 0; i < 50; ++i) {
      s.check_all();
      if (s.reads() != 0) s.answer();
    }
    std::map<char, int> got;
    bool disordered = false;
    const std::string text = s.granted();
    for (std::size_t i = 0; i + 1 < text.size(); i += 3) disordered |= text[i + 1] - '0' != got[text[i]]++;
    wrong.disordered += disordered ? 1 : 0;
    wrong.lost += got != asked && (text.size() + 1) / 3 < all ? 1 : 0;
  }
  return wrong;
}

TEST(PrintedAlgorithm, NeedsEveryRepair) {
  constexpr int kSequences = 5000;
  const Repairs all{true, true, true, true, true};
  const Counts good = at_random(all, kSequences);
  EXPECT_EQ(good.lost, 0);
  EXPECT_EQ(good.disordered, 0);
  for (bool Repairs::*one : {&Repairs::count_when_returned, &Repairs::read_when_converted,
                             &Repairs::any_free_entry, &Repairs::tickets, &Repairs::out_of_the_way}) {
    Repairs without = all;
    without.*one = false;
    const Counts bad = at_random(without, kSequences);
    EXPECT_GT(bad.lost + bad.disordered, 0);
  }
}

// The same traps, and the store of the product.
TEST(NonBlockingStore, BearsTheSequencesThatThePrintedAlgorithmsFailOn) {
  using Ask = StoreDriver::Ask;
  const auto ask = [](std::int64_t ns, std::uint32_t qpn) {
    return Ask{Time{} + nanoseconds(ns), Qpn{qpn}, StoreChannel::kDescriptor, {}, true, false};
  };
  Design d;
  d.context.policy = ContextPolicy::kNonBlocking;
  d.context.cache = 1;
  d.context.ooo_capacity = 4;
  int reads = 0;
  StoreDriver s(d, [&] { return nanoseconds(reads++ % 2 == 0 ? 500 : 499); });
  // X = 0, Y = 1; both answers come at once, and Y's is handled before X1 is looked at.
  s.run({ask(0, 0), ask(1, 1), ask(2, 0), ask(3, 0)});
  EXPECT_EQ(s.report.text(), "");
  EXPECT_EQ(s.grants.size(), 4U);
  EXPECT_GE(s.store->counters().refetched, 1U) << "the context did not leave, and the sequence shows nothing";
}

}  // namespace
}  // namespace weft::sim
