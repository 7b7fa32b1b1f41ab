// The box at the far site gives its endpoint what came over the line: as often as the endpoint asks for it,
// at the time that the endpoint asks for, and as long as it means what an endpoint can mean.
#include "tests/wan/speaking.h"

namespace weft::wan {
namespace {

class LastHop : public Speaking {};     // irn and srnic
class AnyLastHop : public Speaking {};  // roce, too

// The far endpoint lost one of many: the box there sends that one again, and nothing else.
TEST_P(LastHop, TheLastHopIsRepairedSelectively) {
  begin();
  const Seq at = next;
  lost.insert(at + 1);
  write(8);
  boxes->run(milliseconds(4));
  EXPECT_EQ(expected, next);
  EXPECT_EQ(count(1, BoxCounter::given_again), 1U);
}

TEST_P(LastHop, TheFarEndpointIsGivenNoMoreThanItsWindow) {
  begin([](std::uint32_t, BoxConfig& c) { c.site_window = 5; });
  answers = false;
  write(20);
  boxes->run(milliseconds(2));
  EXPECT_EQ(std::set<Seq>(given.begin(), given.end()).size(), 5U);
  answers = true;
  boxes->run(milliseconds(20));
  EXPECT_EQ(expected, next);
}

// It has no receive: everything from there goes again after the delay that it asks for.
TEST_P(LastHop, AFarEndpointWithoutAReceiveIsWaitedFor) {
  begin([](std::uint32_t, BoxConfig& c) { c.site_timeout = milliseconds(50); });
  const Seq at = next;
  answers = false;
  emit(at);
  boxes->run(milliseconds(1));
  ASSERT_EQ(given, (Packets{at}));
  constexpr std::uint8_t kDelay = 14;  // 1.28 ms
  from_responder(said(static_cast<std::uint8_t>(wire::kSyndromeRnr | kDelay), at, at, false));
  boxes->run(milliseconds(1));
  EXPECT_EQ(given.size(), 1U);
  answers = true;
  boxes->run(milliseconds(2));
  EXPECT_EQ(given, (Packets{at, at}));
  EXPECT_EQ(expected, next);
}

// The endpoint refused one copy of a packet for want of a receive, and took another: the delay is over. Or it
// refused what it had acknowledged before.
TEST_P(AnyLastHop, ADelayEndsWithTheAcknowledgementOfWhatItWasAskedFor) {
  for (const bool before : {false, true}) {
    begin([](std::uint32_t, BoxConfig& c) {
      c.site_timeout = milliseconds(50);
      c.quiet = milliseconds(50);
    });
    const Seq at = next;
    answers = false;
    emit(at);
    boxes->run(milliseconds(1));
    ASSERT_EQ(given, (Packets{at}));
    constexpr std::uint8_t kDelay = 31;  // 491.52 ms
    const wire::Header refusal =
        said(static_cast<std::uint8_t>(wire::kSyndromeRnr | kDelay), before ? at + 1 : at, at, false);
    if (!before) from_responder(refusal);
    from_responder(said(wire::kSyndromeAck, at + 1, at, false));
    if (before) from_responder(refusal);
    expected = at + 1;
    answers = true;
    emit(at + 1);
    boxes->run(milliseconds(4));
    EXPECT_EQ(expected, next);
  }
}

// Nobody knows what reserved syndromes will come to mean.
TEST_P(AnyLastHop, AReservedSyndromeEndsNothing) {
  begin([](std::uint32_t, BoxConfig& c) { c.site_timeout = milliseconds(20); });
  const Seq at = next;
  answers = false;
  write(2);
  boxes->run(milliseconds(1));
  ASSERT_EQ(given, (Packets{at, at + 1}));
  for (const unsigned syndrome : {0x7FU, 0x64U, 0x45U})
    from_responder(said(static_cast<std::uint8_t>(syndrome), at, at, false));
  answers = true;
  boxes->run(milliseconds(60));
  EXPECT_EQ(expected, next);
  EXPECT_EQ(count(0, BoxCounter::failed), 0U);
}

TEST_P(LastHop, AnErrorOfWhatWasNotGivenEndsNothing) {
  begin();
  from_responder(said(wire::kSyndromeNakAccess, next, next, false));
  write(2);
  boxes->run(milliseconds(5));
  EXPECT_EQ(expected, next);
  EXPECT_EQ(count(0, BoxCounter::failed), 0U);
}

INSTANTIATE_TEST_SUITE_P(Dialects, LastHop, testing::Values(wire::Mode::kIrn, wire::Mode::kSrnic), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, AnyLastHop,
                         testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic), name_of);

}  // namespace
}  // namespace weft::wan
