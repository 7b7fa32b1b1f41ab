// Single rules of the connection manager, each against its sentence of docs/protocol/connection-manager.md.
#include "core/cm/cm.h"

#include <gtest/gtest.h>

#include <set>

#include "core/cm/steps.h"

namespace weft::cm {
namespace {

using K = CmEventKind;
using wire::CmKind;
using wire::CmMessage;
using wire::Mode;

TEST(Connections, CrossTheirSequenceNumbersAndDepthsOver) {
  TwoManagers t;
  const auto [x, y] = until_response(t);
  const ConnInfo a = *t.a.cm.info(x);
  const ConnInfo b = *t.b.cm.info(y);
  EXPECT_EQ(a.rq_psn, b.sq_psn);
  EXPECT_EQ(a.sq_psn, b.rq_psn);
  EXPECT_NE(a.rq_psn, a.sq_psn);
  EXPECT_EQ(a.peer_qpn, b.qpn);
  EXPECT_EQ(b.peer_qpn, a.qpn);
  // a accepts 4 and issues 8; b accepts 16 and issues 2.
  EXPECT_EQ(a.responder_resources, 2);
  EXPECT_EQ(b.initiator_depth, 2);
  EXPECT_EQ(a.initiator_depth, 8);
  EXPECT_EQ(b.responder_resources, 8);
  EXPECT_EQ(a.peer_port, TwoManagers::kPort);
  EXPECT_EQ(b.peer_port, 40000);
  EXPECT_EQ(b.peer, t.a.address);
}

TEST(Connections, TellWhatTheirQueuePairsAreSetTo) {
  TwoManagers t;
  const auto [x, y] = until_response(t);
  for (const auto& [end, conn] : {std::pair{&t.a, x}, {&t.b, y}}) {
    const ConnInfo i = *end->cm.info(conn);
    const QpSetup init = *end->cm.qp_setup(conn, QpState::kInit);
    EXPECT_EQ(init.mask, kAttrState | kAttrPkeyIndex | kAttrPort | kAttrAccess);
    EXPECT_EQ(init.attr.access, kRemoteWrite | kRemoteRead | kRemoteAtomic);
    const QpSetup rtr = *end->cm.qp_setup(conn, QpState::kRtr);
    EXPECT_EQ(rtr.mask, kAttrState | kAttrPath | kAttrMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic |
                            kAttrMinRnrTimer);
    EXPECT_EQ(rtr.attr.dest_qpn, i.peer_qpn);
    EXPECT_EQ(rtr.attr.rq_psn, i.rq_psn);
    EXPECT_EQ(rtr.attr.max_dest_rd_atomic, i.responder_resources);
    EXPECT_EQ(rtr.attr.min_rnr_timer, 0);
    const QpSetup rts = *end->cm.qp_setup(conn, QpState::kRts);
    EXPECT_EQ(rts.mask,
              kAttrState | kAttrSqPsn | kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrMaxRdAtomic);
    EXPECT_EQ(rts.attr.sq_psn, i.sq_psn);
    EXPECT_EQ(rts.attr.timeout, 19);  // connection-manager.md#time-outs-of-the-manager: life 18, delay 15
    EXPECT_EQ(rts.attr.max_rd_atomic, i.initiator_depth);
    EXPECT_EQ(rts.attr.mode, Mode::kIrn);
    EXPECT_FALSE(end->cm.qp_setup(conn, QpState::kErr).has_value());
  }
}

// A program that takes its own queue pair to RTR must do so before the REP leaves.
TEST(Connections, TellThePassiveSideWhatItsQueuePairIsSetToBeforeItAccepts) {
  TwoManagers t;
  listen_at(t.b);
  const ConnId x = *t.a.cm.connect(t.connect_attr(), t.now);
  carry(t, t.a, t.b);
  const ConnId y = event(t.b).conn;
  const QpSetup before = *t.b.cm.qp_setup(y, QpState::kRtr);
  EXPECT_TRUE(t.b.cm.qp_setup(y, QpState::kRts).has_value());
  ASSERT_TRUE(t.b.cm.accept(y, accept_attr(), t.now).has_value());
  carry(t, t.b, t.a);
  EXPECT_EQ(t.a.cm.info(x)->sq_psn, before.attr.rq_psn);
  EXPECT_EQ(t.b.cm.qp_setup(y, QpState::kRtr)->attr.rq_psn, before.attr.rq_psn);
}

// Where the peer counts, a count must last as long as with RDMA-CM's own delay.
TEST(Connections, KeepRdmaCmsRnrDelayWhereThePeerCounts) {
  CmConfig config = TwoManagers::small(1);
  config.patient_rnr_timer = 12;
  for (const std::uint8_t retries : {std::uint8_t{6}, std::uint8_t{7}}) {
    TwoManagers t(config, TwoManagers::small(2));
    listen_at(t.b);
    ConnectAttr attr = t.connect_attr();
    attr.rnr_retry = retries;
    const ConnId x = *t.a.cm.connect(attr, t.now);
    carry(t, t.a, t.b);
    ASSERT_TRUE(t.b.cm.accept(event(t.b).conn, accept_attr(), t.now).has_value());
    carry(t, t.b, t.a);
    EXPECT_EQ(t.a.cm.qp_setup(x, QpState::kRtr)->attr.min_rnr_timer, retries == 7 ? 12 : 0);
  }
}

TEST(Connections, OfUnreliableQueuePairsSetWhatThoseHave) {
  TwoManagers t;
  listen_at(t.b);
  ConnectAttr attr = t.connect_attr();
  attr.type = QpType::kUc;
  attr.responder_resources = 0;
  const ConnId x = *t.a.cm.connect(attr, t.now);
  EXPECT_FALSE(t.a.cm.qp_setup(x, QpState::kRtr).has_value());  // the peer's numbers are not known yet
  carry(t, t.a, t.b);
  const CmEvent request = event(t.b);
  EXPECT_EQ(request.info.type, QpType::kUc);
  ASSERT_TRUE(t.b.cm.accept(request.conn, accept_attr(), t.now).has_value());
  EXPECT_EQ(t.b.cm.qp_setup(request.conn, QpState::kRtr)->mask,
            kAttrState | kAttrPath | kAttrMtu | kAttrDestQpn | kAttrRqPsn);
  EXPECT_EQ(t.b.cm.qp_setup(request.conn, QpState::kRts)->mask, kAttrState | kAttrSqPsn);
  EXPECT_EQ(t.a.cm.qp_setup(x, QpState::kInit)->attr.access, kRemoteWrite);
}

TEST(Connections, CarryTheirSlotInCommunicationAndTransactionIds) {
  CmConfig config = TwoManagers::small(0xA5);
  TwoManagers t(config);
  listen_at(t.b);
  std::set<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 40; ++i) {
    ConnectAttr attr = t.connect_attr();
    attr.qpn = {i};
    const ConnId x = *t.a.cm.connect(attr, t.now);
    EXPECT_EQ(x.v >> 24U, 0xA5U);
    EXPECT_TRUE(ids.insert(x.v).second) << "a number comes back only after many others";
    const CmMessage req = mads(t.a).at(0);
    EXPECT_EQ(req.transaction >> 56U, 0xA5U);
    EXPECT_EQ(req.local_id, x.v);
    ASSERT_TRUE(t.a.cm.abandon(x, t.now).has_value());
    mads(t.a);
  }
  EXPECT_EQ(t.a.cm.connections(), 0U);
}

TEST(Connections, WorkOverIpv6AndFromAManagerToItself) {
  CmConfig config = TwoManagers::small(1);
  Cm cm(config);
  wire::Address self;
  self.bytes[0] = 0xFD;
  self.bytes[15] = 1;
  ListenAttr l;
  l.port = 5;
  ASSERT_TRUE(cm.listen(l).has_value());
  ConnectAttr attr;
  attr.local = attr.peer = self;
  attr.port = 5;
  attr.qpn = {0x11};
  const ConnId x = *cm.connect(attr, Time{});
  std::vector<K> kinds;
  Time now{};
  for (int i = 0; i < 100; ++i) {
    for (MadOut out; cm.poll_mad(out);) {
      EXPECT_EQ(out.facts.source, self);
      ASSERT_TRUE(cm.on_mad(now, out.facts, out.mad));
    }
    for (CmEvent e; cm.poll_event(e);) {
      if (e.kind == K::kConnectRequest) {
        EXPECT_EQ(e.info.peer, self);
        ASSERT_TRUE(cm.accept(e.conn, accept_attr(), now).has_value());
      }
      if (e.kind == K::kConnectResponse) {
        ASSERT_TRUE(cm.establish(e.conn, now).has_value());
      }
      if (e.kind == K::kEstablished && e.conn == x) {
        ASSERT_TRUE(cm.disconnect(e.conn, now).has_value());
      }
      kinds.push_back(e.kind);
    }
    cm.check_invariants();
    if (cm.next_deadline() != kNever) now = std::max(now, cm.next_deadline());
    cm.on_timer(now);
  }
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), K::kEstablished), 2);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), K::kTimewaitExit), 2);
  EXPECT_EQ(cm.connections(), 0U);
}

TEST(Connections, RefuseArgumentsThatNoMessageCanCarry) {
  TwoManagers t;
  const auto refused = [&](auto change) {
    ConnectAttr attr = t.connect_attr();
    change(attr);
    return !t.a.cm.connect(attr, t.now).has_value();
  };
  const std::vector<std::uint8_t> long_data(kConnectPrivate + 1);
  EXPECT_TRUE(refused([&](ConnectAttr& a) { a.private_data = long_data; }));
  EXPECT_TRUE(refused([](ConnectAttr& a) { a.mtu = 1500; }));
  EXPECT_TRUE(refused([](ConnectAttr& a) { a.port = 0; }));
  EXPECT_TRUE(refused([](ConnectAttr& a) { a.retry_count = 8; }));
  EXPECT_TRUE(refused([](ConnectAttr& a) { a.type = QpType::kUd; }));
  EXPECT_TRUE(refused([](ConnectAttr& a) { a.space = wire::PortSpace::kUdp; }));
  EXPECT_FALSE(
      refused([&](ConnectAttr& a) { a.private_data = std::span(long_data).first(kConnectPrivate); }));
  const ConnId nobody{0x01000001};
  EXPECT_EQ(t.a.cm.disconnect(nobody, t.now).error(), Errc::kNotFound);
  EXPECT_EQ(t.a.cm.accept(nobody, accept_attr(), t.now).error(), Errc::kNotFound);
}

TEST(Connections, RefuseStepsOutOfTurn) {
  TwoManagers t;
  listen_at(t.b);
  const ConnId x = *t.a.cm.connect(t.connect_attr(), t.now);
  EXPECT_EQ(t.a.cm.establish(x, t.now).error(), Errc::kInvalid);
  EXPECT_EQ(t.a.cm.disconnect(x, t.now).error(), Errc::kInvalid);
  EXPECT_EQ(t.a.cm.accept(x, accept_attr(), t.now).error(), Errc::kInvalid);
  carry(t, t.a, t.b);
  const ConnId y = event(t.b).conn;
  EXPECT_EQ(t.b.cm.establish(y, t.now).error(), Errc::kInvalid);
  ASSERT_TRUE(t.b.cm.reject(y, {}, t.now).has_value());
  EXPECT_EQ(t.b.cm.accept(y, accept_attr(), t.now).error(), Errc::kInvalid);
  EXPECT_EQ(t.b.cm.abandon(y, t.now).error(), Errc::kNotFound)
      << "a rejected request is no longer the user's";
}

// REQ: 2 x t(18) + t(20); 15 repetitions, then the program is told and the peer as well.
TEST(Timeouts, RepeatARequestAtThePaceOfTheProtocolAndThenGiveUp) {
  TwoManagers t;
  static_cast<void>(*t.a.cm.connect(t.connect_attr(), t.now));
  const std::vector<CmMessage> first = mads(t.a);
  ASSERT_EQ(first.size(), 1U);
  const Duration interval = timeout_of(18) * 2 + timeout_of(20);
  EXPECT_EQ(interval.ps, nanoseconds(4096).ps * ((2LL << 18) + (1LL << 20)));
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(t.a.cm.next_deadline(), t.now + interval);
    t.now = t.now + interval;
    t.a.cm.on_timer(t.now - picoseconds(1));
    EXPECT_TRUE(mads(t.a).empty());
    t.a.cm.on_timer(t.now);
    EXPECT_EQ(mads(t.a), first);
  }
  EXPECT_TRUE(silent(t.a));
  t.now = t.now + interval;
  t.a.cm.on_timer(t.now);
  EXPECT_EQ(event(t.a).kind, K::kUnreachable);
  const CmMessage rej = mads(t.a).at(0);
  EXPECT_EQ(rej.kind, CmKind::kRej);
  EXPECT_EQ(rej.reason, wire::kRejTimeout);
  EXPECT_EQ(rej.info_length, 8);
  EXPECT_EQ(rej.info[7], 1);  // the GUID
  EXPECT_EQ(t.a.cm.connections(), 0U);
}

TEST(Timeouts, WaitForAPeerThatSaidItNeedsTime) {
  TwoManagers t;
  listen_at(t.b);
  static_cast<void>(*t.a.cm.connect(t.connect_attr(), t.now));
  const std::vector<CmMessage> req = mads(t.a);
  t.inject(t.b, req[0], t.a.address);
  EXPECT_TRUE(mads(t.b).empty());  // the program decides; nothing is said before it is asked again
  t.inject(t.b, req[0], t.a.address);
  const CmMessage mra = mads(t.b).at(0);
  EXPECT_EQ(mra.kind, CmKind::kMra);
  EXPECT_EQ(mra.about, wire::kAboutReq);
  EXPECT_EQ(mra.service_timeout, 24);
  t.inject(t.a, mra, t.b.address);
  t.a.cm.on_timer(t.now + timeout_of(24));
  EXPECT_TRUE(mads(t.a).empty());
  t.a.cm.on_timer(t.now + timeout_of(24) + seconds(7));
  EXPECT_EQ(mads(t.a).size(), 1U);
}

TEST(Timeouts, OfTheResponseFollowWhatTheRequestAskedFor) {
  CmConfig ca = TwoManagers::small(1);
  ca.response_timeout = 10;
  ca.max_retries = 3;
  TwoManagers t(ca);
  listen_at(t.b);
  static_cast<void>(*t.a.cm.connect(t.connect_attr(), t.now));
  carry(t, t.a, t.b);
  ASSERT_TRUE(t.b.cm.accept(event(t.b).conn, accept_attr(), t.now).has_value());
  int reps = static_cast<int>(mads(t.b).size());
  while (t.b.cm.next_deadline() != kNever) {
    EXPECT_EQ(t.b.cm.next_deadline(), t.now + timeout_of(10));
    t.now = t.b.cm.next_deadline();
    t.b.cm.on_timer(t.now);
    for (const CmMessage& m : mads(t.b)) reps += m.kind == CmKind::kRep ? 1 : 0;
  }
  EXPECT_EQ(reps, 4);
  EXPECT_EQ(event(t.b).kind, K::kUnreachable);
}

// 31 is two and a half hours, sixteen times.
TEST(Timeouts, ThatAPeerNamesAreBelievedUpToAMinute) {
  CmConfig ca = TwoManagers::small(1);
  ca.response_timeout = 31;
  TwoManagers t(ca);
  listen_at(t.b);
  static_cast<void>(*t.a.cm.connect(t.connect_attr(), t.now));
  carry(t, t.a, t.b);
  ASSERT_TRUE(t.b.cm.accept(event(t.b).conn, accept_attr(), t.now).has_value());
  EXPECT_EQ(t.b.cm.next_deadline(), t.now + timeout_of(24));
  for (int i = 0; i < 40 && t.b.cm.next_deadline() != kNever; ++i) {
    t.now = t.b.cm.next_deadline();
    t.b.cm.on_timer(t.now);
    mads(t.b);
  }
  EXPECT_EQ(t.b.cm.next_deadline(), kNever);
  EXPECT_LT(t.now, Time{} + seconds(3600));
}

TEST(Answers, RepeatTheRtuWhenTheRepComesAgain) {
  TwoManagers t;
  const auto [x, y] = until_response(t);
  ASSERT_TRUE(t.a.cm.establish(x, t.now).has_value());
  mads(t.a);  // lost
  t.now = t.b.cm.next_deadline();
  t.b.cm.on_timer(t.now);
  carry(t, t.b, t.a);
  carry(t, t.a, t.b);
  EXPECT_EQ(event(t.b).kind, K::kEstablished);
}

TEST(Answers, TheFirstPacketCountsAsTheRtu) {
  TwoManagers t;
  const auto [x, y] = until_response(t);
  ASSERT_TRUE(t.b.cm.notify(y, t.now).has_value());
  EXPECT_EQ(event(t.b).kind, K::kEstablished);
  ASSERT_TRUE(t.b.cm.notify(y, t.now).has_value());
  EXPECT_TRUE(silent(t.b));
}

TEST(Answers, TellStrangersThatTheirConnectionIsUnknown) {
  TwoManagers t;
  CmMessage m;
  m.kind = CmKind::kDreq;
  m.transaction = 77;
  m.local_id = 0x11;
  m.remote_id = 0x22;
  t.inject(t.b, m, t.a.address);
  CmMessage answer = mads(t.b).at(0);
  EXPECT_EQ(answer.kind, CmKind::kDrep);
  EXPECT_EQ(answer.local_id, 0x22U);
  EXPECT_EQ(answer.remote_id, 0x11U);
  EXPECT_EQ(answer.transaction, 77U);
  m.kind = CmKind::kRep;
  t.inject(t.b, m, t.a.address);
  answer = mads(t.b).at(0);
  EXPECT_EQ(answer.kind, CmKind::kRej);
  EXPECT_EQ(answer.reason, wire::kRejInvalidCommId);
  EXPECT_EQ(answer.about, wire::kAboutRep);
  for (const CmKind kind : {CmKind::kRtu, CmKind::kMra, CmKind::kRej, CmKind::kDrep, CmKind::kSidrRep}) {
    m.kind = kind;
    t.inject(t.b, m, t.a.address);
    EXPECT_TRUE(mads(t.b).empty()) << "nothing that is an answer is answered";
  }
  EXPECT_EQ(t.b.cm.counters().strays, 7U);
}

TEST(Answers, AreBoundedAndTheRestIsCounted) {
  TwoManagers t;
  CmMessage m;
  m.kind = CmKind::kDreq;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    m.local_id = i;
    t.inject(t.b, m, t.a.address);
  }
  EXPECT_EQ(mads(t.b).size() + t.b.cm.counters().overflow, 1000U);
  EXPECT_GT(t.b.cm.counters().overflow, 0U);
}

// The peer died, came back and uses the number of its queue pair again: the old connection must go first.
TEST(Stale, ConnectionsEndWhenThePeersQueuePairTurnsUpAnew) {
  TwoManagers t;
  const auto [x, y] = until_established(t);
  CmConfig config = TwoManagers::small(1);
  config.seed = 99;
  Cm reborn(config);
  static_cast<void>(*reborn.connect(t.connect_attr(), t.now));
  MadOut out;
  ASSERT_TRUE(reborn.poll_mad(out));
  ASSERT_TRUE(t.b.cm.on_mad(t.now, out.facts, out.mad));
  const std::vector<CmMessage> answers = mads(t.b);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].kind, CmKind::kRej);
  EXPECT_EQ(answers[0].reason, wire::kRejStaleConnection);
  EXPECT_EQ(answers[1].kind, CmKind::kDreq);
  EXPECT_EQ(answers[1].remote_id, x.v);
  // The process at that address now knows no such connection, and says so.
  wire::Mad mad;
  encode(answers[1], mad);
  ASSERT_TRUE(reborn.on_mad(t.now, {.source = t.b.address, .destination = t.a.address}, mad));
  ASSERT_TRUE(reborn.poll_mad(out));
  ASSERT_TRUE(t.b.cm.on_mad(t.now, out.facts, out.mad));
  EXPECT_EQ(event(t.b).kind, K::kDisconnected);
  t.b.cm.on_timer(t.now + seconds(3));
  EXPECT_EQ(event(t.b).kind, K::kTimewaitExit);
  EXPECT_EQ(t.b.cm.connections(), 0U);
}

TEST(Stale, AttemptsMakeRoomForThePeersNextOne) {
  TwoManagers t;
  listen_at(t.b);
  const ConnId x = *t.a.cm.connect(t.connect_attr(), t.now);
  carry(t, t.a, t.b);
  const ConnId old = event(t.b).conn;
  ASSERT_TRUE(t.a.cm.abandon(x, t.now).has_value());
  mads(t.a);  // the REJ is lost
  static_cast<void>(*t.a.cm.connect(t.connect_attr(), t.now));
  carry(t, t.a, t.b);
  CmEvent e = event(t.b);
  EXPECT_EQ(e.kind, K::kRejected);
  EXPECT_EQ(e.conn, old);
  e = event(t.b);
  EXPECT_EQ(e.kind, K::kConnectRequest);
  t.b.cm.check_invariants();
}

TEST(Endings, IgnoreADreqAboutAnotherQueuePairAndMadsFromAnotherAddress) {
  TwoManagers t;
  const auto [x, y] = until_established(t);
  ASSERT_TRUE(t.a.cm.disconnect(x, t.now).has_value());
  CmMessage dreq = mads(t.a).at(0);
  ASSERT_EQ(dreq.kind, CmKind::kDreq);
  EXPECT_EQ(dreq.qpn, Qpn{0x20022});
  CmMessage wrong = dreq;
  wrong.qpn = {0x20023};
  t.inject(t.b, wrong, t.a.address);
  EXPECT_TRUE(mads(t.b).empty());
  EXPECT_TRUE(silent(t.b));
  // From another address: answered as for an unknown connection, and nothing changes.
  t.inject(t.b, dreq, wire::Address::v4(10, 0, 0, 66));
  mads(t.b);
  EXPECT_TRUE(silent(t.b));
  CmMessage rej;
  rej.kind = CmKind::kRej;
  rej.local_id = x.v;
  rej.remote_id = y.v;
  t.inject(t.b, rej, wire::Address::v4(10, 0, 0, 66));
  EXPECT_TRUE(silent(t.b));
  t.inject(t.b, dreq, t.a.address);
  EXPECT_EQ(event(t.b).kind, K::kDisconnected);
}

TEST(Endings, TheNumberOfAQueuePairWaitsForTheTimeWait) {
  TwoManagers t;
  const auto [x, y] = until_established(t);
  ASSERT_TRUE(t.a.cm.disconnect(x, t.now).has_value());
  ASSERT_TRUE(t.a.cm.disconnect(x, t.now).has_value());  // a second disconnect changes nothing
  carry(t, t.a, t.b);
  ASSERT_TRUE(t.b.cm.disconnect(y, t.now).has_value());
  carry(t, t.b, t.a);
  EXPECT_EQ(event(t.a).kind, K::kDisconnected);
  EXPECT_EQ(event(t.b).kind, K::kDisconnected);
  t.a.cm.on_timer(t.now + timeout_of(19) - picoseconds(1));
  EXPECT_TRUE(silent(t.a));
  EXPECT_EQ(t.a.cm.connections(), 1U);
  t.a.cm.on_timer(t.now + timeout_of(19));
  EXPECT_EQ(event(t.a).kind, K::kTimewaitExit);
  EXPECT_EQ(t.a.cm.connections(), 0U);
}

// The program polls late: both events are still there, in order.
TEST(Events, WaitForTheirReader) {
  TwoManagers t;
  const auto [x, y] = until_response(t);
  ASSERT_TRUE(t.a.cm.establish(x, t.now).has_value());
  ASSERT_TRUE(t.a.cm.disconnect(x, t.now).has_value());
  carry(t, t.a, t.b);
  carry(t, t.b, t.a);
  t.now = t.now + seconds(60);
  t.b.cm.on_timer(t.now);
  EXPECT_EQ(t.b.cm.connections(), 1U);
  EXPECT_EQ(event(t.b).kind, K::kEstablished);
  EXPECT_EQ(event(t.b).kind, K::kDisconnected);
  EXPECT_EQ(event(t.b).kind, K::kTimewaitExit);
  EXPECT_EQ(t.b.cm.connections(), 0U);
}

TEST(Mads, ThatAreNoCmMessagesBelongToSomebodyElse) {
  TwoManagers t;
  wire::Mad mad;
  encode(wire::Capability{}, mad);
  EXPECT_FALSE(t.a.cm.on_mad(t.now, {}, mad));
  EXPECT_FALSE(t.a.cm.on_mad(t.now, {}, std::span(mad).first(100)));
  EXPECT_EQ(t.a.cm.counters().received, 0U);
}

TEST(Config, IsCheckedFieldByField) {
  const auto wrong = [](auto change) {
    CmConfig c;
    change(c);
    return !c.validate().has_value();
  };
  EXPECT_TRUE(CmConfig{}.validate().has_value());
  EXPECT_TRUE(wrong([](CmConfig& c) { c.max_connections = 0; }));
  EXPECT_TRUE(wrong([](CmConfig& c) { c.max_connections = 1U << 17U; }));
  EXPECT_TRUE(wrong([](CmConfig& c) { c.response_timeout = 32; }));
  EXPECT_TRUE(wrong([](CmConfig& c) { c.max_retries = 16; }));
  EXPECT_TRUE(wrong([](CmConfig& c) { c.modes = 8; }));
  EXPECT_TRUE(wrong([](CmConfig& c) { c.modes = 1; }));  // preferred is irn
}

}  // namespace
}  // namespace weft::cm
