// Answers of READs and atomics that the line loses: sent again by the box near their responder, and handed on
// so that the requester sees no gap; never an older one after a newer one.
#include <gtest/gtest.h>

#include "tests/wan/by_hand.h"

namespace weft::wan {
namespace {

// A responder at site 1 answers a requester at site 0. The MSN of an answer says when it was made.
struct Answering {
  struct Got {
    std::uint32_t psn;
    std::uint32_t made;
    std::uint8_t opcode;
    bool operator==(const Got&) const = default;
  };

  explicit Answering(wire::Mode m, const std::function<void(std::uint32_t, BoxConfig&)>& change = {})
      : boxes([&change](std::uint32_t which, BoxConfig& c) {
          c.repair_answers = true;
          if (change) change(which, c);
        }),
        mode(m) {
    boxes.heard = [this](std::uint32_t site, const ByHand::Seen& s) {
      const wire::Header& h = s.frame.header;
      if (site == 0 && h.dest_qp == Qpn{11}) got.push_back({h.psn.v, h.aeth_msn(), h.opcode});
    };
    // Until the boxes know of each other.
    for (std::uint32_t i = 0; i < 20; ++i) {
      answer(i, wire::kReadResponseOnly);
      boxes.run(milliseconds(4));
      if (boxes.count(1, BoxCounter::answers_kept) > 1) break;
    }
    known = boxes.count(1, BoxCounter::answers_kept) > 1;
    got.clear();
  }
  void answer(std::uint32_t psn, std::uint8_t opcode, Qpn to = {11}) {
    Frame f;
    f.header.mode = mode;
    f.header.opcode = opcode;
    f.header.dest_qp = to;
    f.header.psn = {psn};
    f.header.set_aeth(wire::kSyndromeAck, made);
    f.payload = opcode == wire::kAcknowledge ? 0 : 1024;
    f.source = Connection::kB;
    f.destination = Connection::kA;
    boxes.from_site(1, f);
  }
  void middles(std::uint32_t from, std::uint32_t end) {
    for (; from < end; ++from) answer(from, wire::kReadResponseMiddle);
  }
  void lost(std::uint32_t psn, std::uint8_t opcode) {
    boxes.cut = true;
    answer(psn, opcode);
    boxes.cut = false;
  }
  // Of a READ of four packets, from 100 on.
  void lose_second_of_four() {
    answer(100, wire::kReadResponseFirst);
    lost(101, wire::kReadResponseMiddle);
    answer(102, wire::kReadResponseMiddle);
    answer(103, wire::kReadResponseLast);
  }
  // The responder reads its memory once more.
  void repeat_from_the_second() {
    made = 2;
    answer(101, wire::kReadResponseFirst);
    answer(102, wire::kReadResponseMiddle);
    answer(103, wire::kReadResponseLast);
  }
  void ask(std::uint32_t psn) {
    Frame f;
    f.header.mode = mode;
    f.header.opcode = wire::kReadRequest;
    f.header.dest_qp = {21};
    f.header.psn = {psn};
    f.header.dma_len = 4096;
    f.source = Connection::kA;
    f.destination = Connection::kB;
    boxes.from_site(0, f);
  }
  std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> n;
    for (const Got& g : got) n.push_back(g.psn);
    return n;
  }
  bool never_older() const {
    for (std::size_t i = 1; i < got.size(); ++i) {
      if (got[i].made < got[i - 1].made) return false;
    }
    return true;
  }
  void expect_empty() {
    boxes.run(milliseconds(400));
    EXPECT_EQ(boxes.bodies(), 0U);
    for (std::uint32_t i = 0; i < 2; ++i) EXPECT_EQ(boxes.box(i).stored().n, 0U);
  }

  ByHand boxes;
  wire::Mode mode;
  std::vector<Got> got;
  std::uint32_t made = 1;
  bool known = false;
};

using Numbers = std::vector<std::uint32_t>;

TEST(AnswersOfRoce, ThatAreLostAreSentAgainAndTheRequesterSeesNoGap) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  a.answer(100, wire::kReadResponseFirst);
  a.middles(101, 103);
  a.lost(103, wire::kReadResponseMiddle);
  a.middles(104, 106);
  a.lost(106, wire::kReadResponseMiddle);
  a.answer(107, wire::kReadResponseLast);
  a.boxes.run(microseconds(1500));
  EXPECT_EQ(a.numbers(), (Numbers{100, 101, 102})) << "what is behind the gap is held";
  a.boxes.run(milliseconds(3));
  EXPECT_EQ(a.numbers(), (Numbers{100, 101, 102, 103, 104, 105, 106, 107}));
  const std::uint64_t resent = a.boxes.count(1, BoxCounter::answers_resent);
  EXPECT_TRUE(resent == 2 || resent == 3) << resent << ": a report may cross a repair";
  a.expect_empty();
}

TEST(AnswersOfRoce, TheLastOfWhichIsLostAreSentAgainAfterATimeOut) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  a.answer(100, wire::kReadResponseFirst);
  a.lost(101, wire::kReadResponseLast);
  a.boxes.run(milliseconds(8));
  EXPECT_EQ(a.numbers(), (Numbers{100, 101}));
  a.expect_empty();
}

// The first answer is lost, and with it what the box said of it.
TEST(AnswersOfRoce, OfWhichThePartnerHeardNothingAreSentAgain) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  a.boxes.run(milliseconds(12));  // at rest
  ASSERT_TRUE(a.boxes.box(1).partner_is_there(a.boxes.now()));
  a.lost(300, wire::kReadResponseOnly);
  a.boxes.run(milliseconds(12));
  ASSERT_FALSE(a.got.empty());
  for (const Answering::Got& g : a.got) EXPECT_EQ(g.psn, 300U);
  a.expect_empty();
}

// Atomics have one answer each; an atomic's is kept as those of READs are.
TEST(AnswersOfRoce, OfAtomicsAreSentAgain) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  a.answer(100, wire::kAtomicAcknowledge);
  a.lost(101, wire::kAtomicAcknowledge);
  a.answer(102, wire::kAtomicAcknowledge);
  a.boxes.run(milliseconds(8));
  EXPECT_EQ(a.numbers(), (Numbers{100, 101, 102}));
  a.expect_empty();
}

// WRITEs took the numbers between two READs: nobody waits for answers with those.
TEST(AnswersOfRoce, AreNotHeldForNumbersThatNoAnswerHas) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  for (const std::uint32_t first : {100U, 110U, 130U}) {
    a.answer(first, wire::kReadResponseFirst);
    a.answer(first + 1, wire::kReadResponseLast);
  }
  a.boxes.run(microseconds(1200));
  EXPECT_EQ(a.numbers(), (Numbers{100, 101, 110, 111, 130, 131}));
  a.lost(140, wire::kReadResponseOnly);
  a.answer(150, wire::kReadResponseOnly);
  a.boxes.run(milliseconds(8));
  EXPECT_EQ(a.numbers(), (Numbers{100, 101, 110, 111, 130, 131, 140, 150}));
  a.expect_empty();
}

// It says that everything before it arrived.
TEST(AnswersOfRoce, AreNotOvertakenByAnAcknowledgement) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  a.answer(100, wire::kReadResponseFirst);
  a.lost(101, wire::kReadResponseMiddle);
  a.answer(102, wire::kReadResponseLast);
  a.answer(103, wire::kAcknowledge);
  a.boxes.run(milliseconds(8));
  EXPECT_EQ(a.numbers(), (Numbers{100, 101, 102, 103}));
  a.expect_empty();
}

// 101 is lost, 102 and 103 wait at the far box; then the READ is repeated from 101 on, and the responder
// reads its memory once more. A requester that got 101 of the new answers and 102 of the old ones would see
// the memory go back in time.
TEST(AnswersOfRoce, OfAReadThatIsRepeatedAreNeverFollowedByOlderOnes) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  a.lose_second_of_four();
  a.repeat_from_the_second();
  a.answer(104, wire::kAcknowledge);
  a.boxes.run(milliseconds(8));
  EXPECT_TRUE(a.never_older());
  EXPECT_EQ(a.numbers(), (Numbers{100, 101, 102, 103, 104}));
  EXPECT_EQ(a.boxes.count(1, BoxCounter::answers_anew), 1U);
  a.expect_empty();
}

// The same, and what the boxes say to each other is lost at first.
TEST(AnswersOfRoce, OfAReadThatIsRepeatedWaitForThePartnersWord) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  int losses = 2;
  a.boxes.lose = [&losses](std::uint32_t from, const Message& m) {
    return from == 1 && m.say == Say::kAnswers && losses-- > 0;
  };
  losses = 0;
  a.answer(100, wire::kReadResponseFirst);
  a.lost(101, wire::kReadResponseMiddle);
  a.answer(102, wire::kReadResponseLast);
  a.made = 2;
  losses = 2;
  a.answer(101, wire::kReadResponseFirst);
  a.answer(102, wire::kReadResponseLast);
  a.boxes.run(milliseconds(30));
  EXPECT_TRUE(a.never_older());
  ASSERT_FALSE(a.got.empty());
  EXPECT_EQ(a.got.back(), (Answering::Got{102, 2, wire::kReadResponseLast}));
  a.expect_empty();
}

// Its answers are here already, so the first ones count.
TEST(AnswersOfRoce, OfAReadThatIsRepeatedWholeAreThoseThatWereKept) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  for (a.made = 1; a.made < 3; ++a.made) {
    a.answer(100, wire::kReadResponseFirst);
    a.lost(101, wire::kReadResponseMiddle);
    a.answer(102, wire::kReadResponseLast);
  }
  a.boxes.run(milliseconds(8));
  std::vector<bool> seen(3, false);
  for (const Answering::Got& g : a.got) {
    EXPECT_EQ(g.made, 1U);
    seen[g.psn - 100] = true;
  }
  EXPECT_TRUE(seen[0] && seen[1] && seen[2]);
  a.expect_empty();
}

// The box near the responder is gone, and a wire stands there. What the other one holds is older than what
// its requester asks for now.
TEST(AnswersOfRoce, ThatAreHeldGoWhenTheRequesterAsksAgain) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  a.lose_second_of_four();
  a.boxes.run(microseconds(1100));
  a.boxes.remove(1);
  a.ask(101);
  a.repeat_from_the_second();
  a.boxes.run(milliseconds(5));
  EXPECT_TRUE(a.never_older());
  EXPECT_EQ(a.numbers(), (Numbers{100, 101, 102, 103}));
  EXPECT_EQ(a.boxes.count(0, BoxCounter::answers_asked_again), 1U);
}

// The line is cut with a gap open: what is held goes to the requester, which asks again, and both boxes are
// wires.
TEST(AnswersOfRoce, AreNotHeldForAPartnerThatIsGone) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  a.answer(100, wire::kReadResponseFirst);
  a.lost(101, wire::kReadResponseMiddle);
  a.answer(102, wire::kReadResponseLast);
  a.boxes.run(microseconds(1100));
  a.boxes.cut = true;
  a.expect_empty();
  a.boxes.cut = false;
  a.made = 2;
  a.got.clear();
  for (std::uint32_t i = 0; i < 4; ++i) a.answer(101 + i, wire::kReadResponseOnly);
  a.boxes.run(milliseconds(2));
  EXPECT_EQ(a.numbers(), (Numbers{101, 102, 103, 104}));
}

// The site is faster than the line, for longer than the queue of passing frames is: the store takes it up.
TEST(Answers, WaitForTheLineInTheStore) {
  for (const wire::Mode mode : {wire::Mode::kRoce, wire::Mode::kIrn}) {
    Answering a(mode, [](std::uint32_t, BoxConfig& c) {
      c.queue = 8;
      c.window = 64;
      c.frames = 2048;
      c.store = Bytes{4'000'000};
    });
    ASSERT_TRUE(a.known);
    a.boxes.busy[1] = true;
    a.answer(100, wire::kReadResponseFirst);
    a.middles(101, 399);
    a.answer(399, wire::kReadResponseLast);
    a.middles(150, 160);  // repeated, and not on the line yet: they leave once
    a.boxes.busy[1] = false;
    a.boxes.run(milliseconds(40));
    EXPECT_EQ(a.got.size(), 300U);
    EXPECT_EQ(a.boxes.count(1, BoxCounter::drop_queue), 0U);
    EXPECT_EQ(a.boxes.count(1, BoxCounter::answers_resent), 0U);
    a.expect_empty();
  }
}

// A window of them is on the line, however many wait.
TEST(AnswersOfRoce, AreOnTheLineForAWindowOnly) {
  Answering a(wire::Mode::kRoce, [](std::uint32_t, BoxConfig& c) {
    c.window = 64;
    c.frames = 2048;
    c.store = Bytes{4'000'000};
  });
  ASSERT_TRUE(a.known);
  const std::uint64_t before = a.boxes.count(1, BoxCounter::answers_kept);
  a.answer(100, wire::kReadResponseFirst);
  a.middles(101, 400);
  EXPECT_EQ(a.boxes.count(1, BoxCounter::answers_kept) - before, 64U);
  a.boxes.run(milliseconds(40));
  EXPECT_EQ(a.got.size(), 300U);
  a.expect_empty();
}

// It waits for those before it and for no others, or the answers that follow would hold it up for ever.
TEST(AnswersOfRoce, ThatWaitForTheLineAreNotOvertakenByAnAcknowledgement) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  a.boxes.busy[1] = true;
  a.answer(100, wire::kReadResponseFirst);
  a.answer(101, wire::kReadResponseLast);
  a.answer(102, wire::kAcknowledge);
  a.answer(103, wire::kReadResponseOnly);
  a.boxes.busy[1] = false;
  a.boxes.run(milliseconds(8));
  EXPECT_EQ(a.numbers(), (Numbers{100, 101, 102, 103}));
  a.expect_empty();
}

// None of the first ones has left, so nobody holds any: the repeated READ waits for no word.
TEST(AnswersOfRoce, OfAReadThatIsRepeatedWaitForNothingIfNoOlderOneHasLeft) {
  Answering a(wire::Mode::kRoce);
  ASSERT_TRUE(a.known);
  a.boxes.run(milliseconds(3));
  a.boxes.busy[1] = true;
  a.answer(100, wire::kReadResponseFirst);
  a.middles(101, 103);
  a.made = 2;
  a.answer(101, wire::kReadResponseFirst);
  a.answer(102, wire::kReadResponseLast);
  a.boxes.busy[1] = false;
  a.boxes.run({});
  a.boxes.run(microseconds(1500));
  ASSERT_FALSE(a.got.empty());
  EXPECT_EQ(a.got.back(), (Answering::Got{102, 2, wire::kReadResponseLast}));
  EXPECT_EQ(a.boxes.count(1, BoxCounter::answers_anew), 0U);
  a.expect_empty();
}

// The box near the requester takes none: what waited passes, in order.
TEST(AnswersOfRoce, ThatWaitForTheLinePassWhereThePartnerTakesNone) {
  Answering a(wire::Mode::kRoce, [](std::uint32_t which, BoxConfig& c) { c.repair_answers = which == 1; });
  a.boxes.run(milliseconds(2));
  a.got.clear();
  for (std::uint32_t i = 0; i < 40; ++i) {
    a.answer(100 + i, wire::kReadResponseOnly);
    a.boxes.run(microseconds(100));
  }
  a.boxes.run(milliseconds(5));
  EXPECT_EQ(a.got.size(), 40U);
  EXPECT_EQ(a.got.back().psn, 139U);
  EXPECT_GE(a.boxes.count(1, BoxCounter::answers_declined), 1U);
  a.expect_empty();
}

// Answers of numbers of their own come in any order, so each is handed on as it comes.
TEST(AnswersOfIrn, AreHandedOnAsTheyComeAndTheLostOneIsSentAgain) {
  for (const wire::Mode mode : {wire::Mode::kIrn, wire::Mode::kSrnic}) {
    Answering a(mode);
    ASSERT_TRUE(a.known);
    a.answer(100, wire::kReadResponseFirst);
    a.lost(101, wire::kReadResponseMiddle);
    a.middles(102, 104);
    a.answer(104, wire::kReadResponseLast);
    a.boxes.run(milliseconds(4));
    EXPECT_EQ(a.numbers(), (Numbers{100, 102, 103, 104, 101}));
    a.expect_empty();
  }
}

// The requester has said what it misses, too: the line carries the repair once.
TEST(AnswersOfIrn, AreNotSentAgainTwice) {
  Answering a(wire::Mode::kIrn);
  ASSERT_TRUE(a.known);
  a.answer(100, wire::kReadResponseFirst);
  a.lost(101, wire::kReadResponseMiddle);
  a.answer(102, wire::kReadResponseLast);
  a.boxes.run(microseconds(2100));
  a.made = 2;
  a.answer(101, wire::kReadResponseMiddle);
  a.boxes.run(milliseconds(4));
  EXPECT_EQ(a.numbers(), (Numbers{100, 102, 101}));
  a.expect_empty();
}

// The store is a bound, not a limit of what passes.
TEST(Answers, WithoutRoomPassUnkept) {
  Answering a(wire::Mode::kRoce, [](std::uint32_t, BoxConfig& c) { c.store = Bytes{20'000}; });
  ASSERT_TRUE(a.known);
  a.answer(100, wire::kReadResponseFirst);
  a.middles(101, 140);
  a.boxes.run(milliseconds(5));
  EXPECT_EQ(a.got.size(), 40U);
  EXPECT_GT(a.boxes.count(1, BoxCounter::answers_unkept), 20U);
  EXPECT_LE(a.boxes.box(1).most_stored().n, 20'000U);
  // One that nobody kept is asked for in vain; the requester sees the gap.
  a.got.clear();
  a.middles(140, 155);
  a.lost(155, wire::kReadResponseMiddle);
  a.middles(156, 160);
  a.boxes.run(milliseconds(8));
  EXPECT_EQ(a.got.size(), 19U);
  EXPECT_EQ(a.got.back().psn, 159U);
  a.expect_empty();
}

TEST(Answers, WithoutAPlaceAtThePartnerPass) {
  Answering a(wire::Mode::kRoce, [](std::uint32_t which, BoxConfig& c) {
    if (which == 0) c.halves = 1;
  });
  ASSERT_TRUE(a.known);
  a.answer(100, wire::kReadResponseFirst);
  for (std::uint32_t i = 0; i < 10; ++i) {
    a.answer(500 + i, wire::kReadResponseOnly, {12});
    a.middles(101 + i, 102 + i);
    a.boxes.run(microseconds(300));
  }
  a.boxes.run(milliseconds(3));
  EXPECT_EQ(a.got.size(), 11U);
  a.expect_empty();
}

TEST(Answers, OfABoxThatRepairsNoneAreAsOnAWire) {
  Answering a(wire::Mode::kRoce, [](std::uint32_t, BoxConfig& c) { c.repair_answers = false; });
  EXPECT_FALSE(a.known);
  a.answer(100, wire::kReadResponseFirst);
  a.lost(101, wire::kReadResponseMiddle);
  a.answer(102, wire::kReadResponseLast);
  a.boxes.run(milliseconds(8));
  EXPECT_EQ(a.numbers(), (Numbers{100, 102}));
}

}  // namespace
}  // namespace weft::wan
