// Which answers belong to a question: both communication ids and the transaction id say so
// (docs/protocol/connection-manager.md#the-course-of-a-connection). Ids are used again after a while;
// transaction ids are drawn from 56 bits.
#include <gtest/gtest.h>

#include "core/cm/steps.h"

namespace weft::cm {
namespace {

using wire::CmKind;
using wire::CmMessage;
using K = CmEventKind;

// An answer that differs in the transaction id alone is ignored; the right one, which follows, is taken.
void carry_behind_a_wrong_one(TwoManagers& t, End& from, End& to) {
  const std::vector<CmMessage> all = mads(from);
  ASSERT_EQ(all.size(), 1U);
  CmMessage wrong = all[0];
  wrong.transaction ^= 1U;
  const std::uint64_t strays = to.cm.counters().strays;
  t.inject(to, wrong, from.address);
  EXPECT_TRUE(silent(to));
  EXPECT_EQ(to.cm.counters().strays, strays + 1);
  mads(to);
  t.inject(to, all[0], from.address);
}

TEST(Answers, OfAnotherTransactionAreStrays) {
  TwoManagers t;
  listen_at(t.b);
  const ConnId x = *t.a.cm.connect(t.connect_attr(), t.now);
  carry(t, t.a, t.b);
  const ConnId y = event(t.b).conn;
  ASSERT_TRUE(t.b.cm.accept(y, accept_attr(), t.now));
  carry_behind_a_wrong_one(t, t.b, t.a);  // REP
  EXPECT_EQ(event(t.a).kind, K::kConnectResponse);
  ASSERT_TRUE(t.a.cm.establish(x, t.now));
  EXPECT_EQ(event(t.a).kind, K::kEstablished);
  carry_behind_a_wrong_one(t, t.a, t.b);  // RTU
  EXPECT_EQ(event(t.b).kind, K::kEstablished);
  ASSERT_TRUE(t.a.cm.disconnect(x, t.now));
  carry(t, t.a, t.b);
  carry_behind_a_wrong_one(t, t.b, t.a);  // DREP
  EXPECT_EQ(event(t.a).kind, K::kDisconnected);
}

TEST(Answers, OfAnotherTransactionRejectNothing) {
  TwoManagers t;
  static_cast<void>(*t.a.cm.connect(t.connect_attr(), t.now));  // nobody listens
  carry(t, t.a, t.b);
  carry_behind_a_wrong_one(t, t.b, t.a);  // REJ
  EXPECT_EQ(event(t.a).kind, K::kRejected);
}

TEST(Answers, OfAnotherTransactionResolveNothing) {
  TwoManagers t;
  ResolveAttr r;
  r.local = t.a.address;
  r.peer = t.b.address;
  r.port = TwoManagers::kPort;
  static_cast<void>(*t.a.cm.resolve(r, t.now));
  carry(t, t.a, t.b);
  carry_behind_a_wrong_one(t, t.b, t.a);  // SIDR_REP
  EXPECT_EQ(event(t.a).kind, K::kRefused);
}

}  // namespace
}  // namespace weft::cm
