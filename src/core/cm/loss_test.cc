// Every plan of two users over every loss pattern of the first eight MADs, over every mixture of loss,
// repetition and lateness (beyond the sender's time-out) of the first six, and over random trouble without
// end.
//
// In each run the events of a connection come in an order that terms.h allows, and in the end both managers
// are empty.
#include <gtest/gtest.h>

#include "core/base/prng.h"
#include "core/cm/two_managers.h"

namespace weft::cm {
namespace {

using K = CmEventKind;
using Kinds = std::vector<CmEventKind>;

bool is_last(K k) {
  return k == K::kRejected || k == K::kUnreachable || k == K::kTimewaitExit || k == K::kResolved ||
         k == K::kRefused;
}

// Events of one connection: in order, none twice, and nothing after the last.
void expect_a_sentence(const Kinds& kinds, bool active) {
  for (std::size_t i = 0; i + 1 < kinds.size(); ++i) {
    ASSERT_LT(kinds[i], kinds[i + 1]);
    ASSERT_FALSE(is_last(kinds[i]));
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const K before = i == 0 ? K::kConnectRequest : kinds[i - 1];
    switch (kinds[i]) {
      case K::kConnectRequest:
      case K::kResolveRequest:
        ASSERT_FALSE(active);
        break;
      case K::kConnectResponse:
      case K::kResolved:
      case K::kRefused:
        ASSERT_TRUE(active);
        ASSERT_EQ(i, 0U);
        break;
      case K::kEstablished:
        ASSERT_EQ(before, active ? K::kConnectResponse : K::kConnectRequest);
        break;
      case K::kRejected:
      case K::kUnreachable:
        ASSERT_NE(before, K::kEstablished);
        break;
      case K::kDisconnected:
        if (!active) {
          ASSERT_EQ(before, K::kEstablished);
        }
        break;
      case K::kTimewaitExit:
        ASSERT_EQ(before, K::kDisconnected);
    }
  }
}

void expect_sentences(const End& e, bool active) {
  std::vector<ConnId> seen;
  for (const CmEvent& event : e.log) {
    if (std::find(seen.begin(), seen.end(), event.conn) != seen.end()) continue;
    seen.push_back(event.conn);
    ASSERT_NO_FATAL_FAILURE(expect_a_sentence(e.kinds(event.conn), active));
  }
}

void expect_empty(TwoManagers& t) {
  EXPECT_EQ(t.a.cm.connections(), 0U);
  EXPECT_EQ(t.b.cm.connections(), 0U);
  EXPECT_EQ(t.a.cm.next_deadline(), kNever);
  EXPECT_EQ(t.b.cm.next_deadline(), kNever);
}

// What the user of the connecting side hears when nothing but loss happens.
Kinds active_hears(Plan p) {
  switch (p) {
    case Plan::kPassiveRejects:
    case Plan::kPassiveAbandonsRequest:
    case Plan::kNobodyListens:
      return {K::kRejected};
    case Plan::kActiveRejects:
    case Plan::kActiveAbandonsResponse:
      return {K::kConnectResponse};
    case Plan::kActiveAbandonsRequest:
      return {};
    case Plan::kActiveAbandonsConnection:
      return {K::kConnectResponse, K::kEstablished};
    case Plan::kResolve:
      return {K::kResolved};
    case Plan::kResolveRejected:
    case Plan::kResolveNobody:
      return {K::kRefused};
    default:
      return {K::kConnectResponse, K::kEstablished, K::kDisconnected, K::kTimewaitExit};
  }
}

TEST(Loss, OfAnyOfTheFirstEightMadsChangesNothingThatTheUsersSee) {
  for (const Plan plan : kPlans) {
    for (unsigned pattern = 0; pattern < 256; ++pattern) {
      SCOPED_TRACE("plan " + std::to_string(static_cast<int>(plan)) + " pattern " + std::to_string(pattern));
      TwoManagers t;
      for (unsigned i = 0; i < 8; ++i)
        t.fates.push_back((pattern >> i & 1U) != 0 ? Fate::kLose : Fate::kDeliver);
      t.start(plan);
      t.run();
      ASSERT_NO_FATAL_FAILURE(expect_empty(t));
      ASSERT_NO_FATAL_FAILURE(expect_sentences(t.a, true));
      ASSERT_NO_FATAL_FAILURE(expect_sentences(t.b, false));
      // The passive side gives up right after its REP. Which MAD is lost decides whether the active side
      // learns of it.
      if (plan != Plan::kPassiveAbandonsAccepted) {
        ASSERT_EQ(t.a.kinds(t.conn), active_hears(plan));
      }
      ASSERT_LE(t.b.count(K::kConnectRequest), 1U);
      ASSERT_LE(t.b.count(K::kResolveRequest), 1U);
      for (const CmEvent& e : t.a.log) {
        if (e.kind != K::kConnectResponse && e.kind != K::kResolved) continue;
        ASSERT_TRUE(std::equal(t.answered.begin(), t.answered.end(), e.private_data.begin()));
      }
      for (const CmEvent& e : t.b.log) {
        if (e.kind != K::kConnectRequest && e.kind != K::kResolveRequest) continue;
        ASSERT_TRUE(std::equal(t.said.begin(), t.said.end(), e.private_data.begin()));
      }
    }
  }
}

TEST(Loss, RepetitionAndLatenessMixedLeaveSentencesAndEmptyTables) {
  for (const Plan plan : kPlans) {
    for (unsigned code = 0; code < 4096; ++code) {
      TwoManagers t;
      for (unsigned i = 0; i < 6; ++i) t.fates.push_back(static_cast<Fate>(code >> (2 * i) & 3U));
      t.start(plan);
      t.run();
      SCOPED_TRACE("plan " + std::to_string(static_cast<int>(plan)) + " code " + std::to_string(code));
      ASSERT_NO_FATAL_FAILURE(expect_empty(t));
      ASSERT_NO_FATAL_FAILURE(expect_sentences(t.a, true));
      ASSERT_NO_FATAL_FAILURE(expect_sentences(t.b, false));
      const bool abandoned = plan == Plan::kActiveAbandonsRequest || plan == Plan::kActiveAbandonsResponse ||
                             plan == Plan::kActiveAbandonsConnection || plan == Plan::kActiveRejects;
      if (!abandoned) {
        ASSERT_TRUE(is_last(t.a.kinds(t.conn).back()));
      }
    }
  }
}

// Half of everything is lost: some attempts fail, all end. A plain count shows that both outcomes occur.
TEST(Loss, OfHalfOfAllMadsEndsInTheWordsOfTheProtocol) {
  Prng prng(5);
  int established = 0, unreachable = 0;
  for (int round = 0; round < 3000; ++round) {
    CmConfig ca = TwoManagers::small(1), cb = TwoManagers::small(2);
    ca.max_retries = cb.max_retries = 2;
    TwoManagers t(ca, cb);
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t roll = prng.below(100);
      t.fates.push_back(roll < 50   ? Fate::kLose
                        : roll < 60 ? Fate::kRepeat
                        : roll < 70 ? Fate::kLate
                                    : Fate::kDeliver);
    }
    t.start(kPlans[prng.below(std::size(kPlans))]);
    t.run();
    t.hang_up();
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(expect_empty(t));
    ASSERT_NO_FATAL_FAILURE(expect_sentences(t.a, true));
    ASSERT_NO_FATAL_FAILURE(expect_sentences(t.b, false));
    established += static_cast<int>(t.a.count(K::kEstablished));
    unreachable += static_cast<int>(t.a.count(K::kUnreachable));
  }
  EXPECT_GT(established, 100);
  EXPECT_GT(unreachable, 100);
}

}  // namespace
}  // namespace weft::cm
