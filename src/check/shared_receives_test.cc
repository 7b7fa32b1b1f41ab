// Shared receives as the ledger follows them: two queue pairs of host 1 draw from one queue.
#include <gtest/gtest.h>

#include "check/ledger.h"

namespace weft::check {
namespace {

constexpr SrqId kQueue{0};

struct TwoUsers {
  TwoUsers() {
    ledger.shared({1}, kQueue, {});
    for (std::uint32_t i = 0; i < 2; ++i) {
      QpFacts from, to;
      from.self = to.peer = {{0}, {10 + i}};
      from.peer = to.self = {{1}, {20 + i}};
      to.srq = kQueue;
      ledger.connected(from);
      ledger.connected(to);
    }
  }
  void receives(std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) ledger.posted_shared({1}, kQueue, {100 + posted++, {}}, {});
  }
  void message(std::uint32_t user) {
    SendWr wr;
    wr.wr_id = ++sent;
    wr.opcode = WrOpcode::kSend;
    ledger.posted_send({{0}, {10 + user}}, wr, {}, {});
  }
  bool take(std::uint32_t user, std::uint64_t k, std::uint64_t receive) {
    return ledger.take_shared(*ledger.find({{1}, {20 + user}}), k, receive, {});
  }
  void done(std::uint64_t receive) {
    ledger.shared_done({1}, *ledger.find({{1}, {20}})->shared, receive, {});
  }
  Report report;
  Ledger ledger{report};
  std::uint64_t posted = 0;
  std::uint64_t sent = 0;
};

TEST(SharedReceives, AreTakenOnceAndInOrder) {
  TwoUsers w;
  w.receives(4);
  EXPECT_TRUE(w.take(0, 0, 1));
  EXPECT_TRUE(w.take(0, 0, 1));  // told again
  EXPECT_TRUE(w.take(1, 0, 0));
  EXPECT_TRUE(w.take(1, 2, 3));
  EXPECT_TRUE(w.report.clean());
  EXPECT_FALSE(w.take(0, 0, 2));  // another one for the same message
  EXPECT_FALSE(w.take(0, 1, 0));  // the other user's
  EXPECT_FALSE(w.take(1, 3, 2));  // behind one that was posted later
  EXPECT_EQ(w.report.total(), 3U);
}

TEST(SharedReceives, NoneIsPassedOver) {
  for (const bool user_failed : {false, true}) {
    TwoUsers w;
    w.receives(3);
    w.take(0, 0, 0);
    w.take(1, 0, 2);
    w.done(0);
    w.done(2);
    if (user_failed) w.ledger.failed({{1}, {20}});
    w.ledger.finish_shared({});
    EXPECT_EQ(w.report.clean(), user_failed);  // which may have held the one between them
  }
}

TEST(SharedReceives, TheLimitEventComesWhenItMustAndNotBefore) {
  {
    TwoUsers w;
    w.receives(3);
    w.ledger.limit_armed({1}, kQueue, 2);
    w.message(0);
    w.ledger.limit_reached({1}, kQueue, {});  // two are left
    EXPECT_FALSE(w.report.clean());
  }
  TwoUsers w;
  w.receives(3);
  w.ledger.limit_armed({1}, kQueue, 2);
  w.message(0);
  w.message(1);
  w.take(0, 0, 0);
  w.done(0);
  w.ledger.limit_reached({1}, kQueue, {});
  w.take(1, 0, 1);
  w.done(1);
  EXPECT_TRUE(w.report.clean());
  w.ledger.limit_armed({1}, kQueue, 2);
  w.message(0);
  w.take(0, 1, 2);
  w.done(2);  // none is left
  EXPECT_FALSE(w.report.clean());
}

TEST(SharedReceives, NobodyAskedForASecondLimitEvent) {
  TwoUsers w;
  w.receives(1);
  w.message(0);
  w.ledger.limit_armed({1}, kQueue, 1);
  w.ledger.limit_reached({1}, kQueue, {});
  EXPECT_TRUE(w.report.clean());
  w.ledger.limit_reached({1}, kQueue, {});
  EXPECT_FALSE(w.report.clean());
}

}  // namespace
}  // namespace weft::check
