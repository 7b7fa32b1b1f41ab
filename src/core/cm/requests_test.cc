// Which requests reach the program, and what they agree on: listeners, backlog, refusals, modes, SIDR
// (docs/protocol/connection-manager.md, modes.md#negotiation).
#include <gtest/gtest.h>

#include "core/cm/steps.h"

namespace weft::cm {
namespace {

using K = CmEventKind;
using wire::CmMessage;
using wire::Mode;

TEST(Requests, ThatCannotBeAreRefusedWithTheirReason) {
  TwoManagers t;
  listen_at(t.b);
  static_cast<void>(*t.a.cm.connect(t.connect_attr(), t.now));
  const CmMessage good = mads(t.a).at(0);
  const auto reason = [&](auto change) {
    CmMessage m = good;
    change(m);
    t.inject(t.b, m, t.a.address);
    const std::vector<CmMessage> answers = mads(t.b);
    EXPECT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers.at(0).remote_id, good.local_id);
    EXPECT_EQ(answers.at(0).transaction, good.transaction);
    return answers.at(0).reason;
  };
  EXPECT_EQ(reason([](CmMessage& m) { m.service_id += 1; }), wire::kRejInvalidServiceId);
  EXPECT_EQ(
      reason([](CmMessage& m) { m.service_id = wire::service_id(wire::PortSpace::kIb, TwoManagers::kPort); }),
      wire::kRejInvalidServiceId);
  EXPECT_EQ(reason([](CmMessage& m) { m.service_id |= 1ULL << 60U; }), wire::kRejInvalidServiceId);
  EXPECT_EQ(reason([](CmMessage& m) { m.transport = 2; }), wire::kRejInvalidTransport);
  EXPECT_EQ(reason([](CmMessage& m) { m.transport = 3, m.extended_transport = 1; }),
            wire::kRejInvalidTransport);
  EXPECT_EQ(reason([](CmMessage& m) { m.mtu = 0; }), wire::kRejInvalidMtu);
  EXPECT_EQ(reason([](CmMessage& m) { m.mtu = 6; }), wire::kRejInvalidMtu);
  EXPECT_EQ(reason([](CmMessage& m) { m.private_data[1] = 0; }), wire::kRejUnsupported);
  EXPECT_TRUE(silent(t.b));
  EXPECT_EQ(t.b.cm.counters().refused, 8U);
  EXPECT_EQ(t.b.cm.connections(), 0U);
}

TEST(Requests, BeyondTheBacklogOrTheTableAreRefused) {
  CmConfig cb = TwoManagers::small(2);
  cb.max_connections = 3;
  TwoManagers t(TwoManagers::small(1), cb);
  ListenAttr l;
  l.port = TwoManagers::kPort;
  l.backlog = 2;
  const ListenerId listener = *t.b.cm.listen(l);
  std::vector<ConnId> requests;
  const auto try_one = [&](std::uint32_t qpn) {
    ConnectAttr attr = t.connect_attr();
    attr.qpn = {qpn};
    static_cast<void>(*t.a.cm.connect(attr, t.now));
    carry(t, t.a, t.b);
    CmEvent e;
    if (!t.b.cm.poll_event(e)) return mads(t.b).at(0).reason;
    EXPECT_EQ(e.listener, listener);
    requests.push_back(e.conn);
    return std::uint16_t{0};
  };
  EXPECT_EQ(try_one(1), 0);
  EXPECT_EQ(try_one(2), 0);
  EXPECT_EQ(try_one(3), wire::kRejNoResources) << "two wait already";
  ASSERT_TRUE(t.b.cm.accept(requests[0], accept_attr(), t.now).has_value());
  mads(t.b);
  EXPECT_EQ(try_one(4), 0);
  ASSERT_TRUE(t.b.cm.accept(requests[1], accept_attr(), t.now).has_value());
  mads(t.b);
  EXPECT_EQ(try_one(5), wire::kRejNoResources) << "the table is full";
  // A remembered rejection gives up its row when a new request needs one.
  ASSERT_TRUE(t.b.cm.reject(requests[2], {}, t.now).has_value());
  mads(t.b);
  EXPECT_EQ(t.b.cm.connections(), 3U);
  EXPECT_EQ(try_one(6), 0);
  t.b.cm.check_invariants();
}

TEST(Requests, GoToTheListenerOfTheirAddressSpaceAndPort) {
  TwoManagers t;
  ListenAttr l;
  l.port = TwoManagers::kPort;
  l.local = t.b.address;
  const ListenerId here = *t.b.cm.listen(l);
  EXPECT_EQ(t.b.cm.listen(l).error(), Errc::kBusy);
  l.local = {};
  EXPECT_EQ(t.b.cm.listen(l).error(), Errc::kBusy);  // any includes this one
  l.local = wire::Address::v4(10, 0, 0, 99);
  EXPECT_TRUE(t.b.cm.listen(l).has_value());
  l.local = {};
  l.space = wire::PortSpace::kIb;
  EXPECT_TRUE(t.b.cm.listen(l).has_value());
  static_cast<void>(*t.a.cm.connect(t.connect_attr(), t.now));
  carry(t, t.a, t.b);
  EXPECT_EQ(event(t.b).listener, here);
  EXPECT_EQ(t.b.cm.listeners(), 3U);
}

TEST(Requests, ThatNobodyHeardOfGoWithTheirListener) {
  TwoManagers t;
  ListenAttr l;
  l.port = TwoManagers::kPort;
  const ListenerId here = *t.b.cm.listen(l);
  const ConnId x = *t.a.cm.connect(t.connect_attr(), t.now);
  carry(t, t.a, t.b);
  ASSERT_TRUE(t.b.cm.close(here, t.now).has_value());
  EXPECT_EQ(t.b.cm.close(here, t.now).error(), Errc::kNotFound);
  EXPECT_TRUE(silent(t.b));
  carry(t, t.b, t.a);
  const CmEvent e = event(t.a);
  EXPECT_EQ(e.kind, K::kRejected);
  EXPECT_EQ(e.conn, x);
  t.b.cm.check_invariants();
}

// A program that has just begun may be about to listen: what comes too early is asked again, not refused.
TEST(Requests, ThatComeBeforeAProgramHasBegunAreAskedAgain) {
  CmConfig late = TwoManagers::small(2);
  late.refuse_from = Time{} + seconds(1);
  for (const bool datagrams : {false, true}) {
    TwoManagers t(TwoManagers::small(1), late);
    ResolveAttr r;
    r.local = t.a.address;
    r.peer = t.b.address;
    r.port = TwoManagers::kPort;
    if (datagrams) {
      ASSERT_TRUE(t.a.cm.resolve(r, t.now).has_value());
    } else {
      ASSERT_TRUE(t.a.cm.connect(t.connect_attr(), t.now).has_value());
    }
    carry(t, t.a, t.b);
    EXPECT_TRUE(mads(t.b).empty());
    EXPECT_EQ(t.b.cm.counters().early, 1U);
    listen_at(t.b, datagrams ? wire::PortSpace::kUdp : wire::PortSpace::kTcp);
    t.now = t.a.cm.next_deadline();
    t.a.cm.on_timer(t.now);
    carry(t, t.a, t.b);
    EXPECT_EQ(event(t.b).kind, datagrams ? K::kResolveRequest : K::kConnectRequest);
  }
}

// perftest listens, closes, and listens at the same port again, while its peer is on its way.
TEST(Requests, ThatComeBetweenTwoListenersAreAskedAgain) {
  CmConfig config = TwoManagers::small(2);
  config.reopening = seconds(1);
  TwoManagers t(TwoManagers::small(1), config);
  ListenAttr l;
  l.port = TwoManagers::kPort;
  ASSERT_TRUE(t.b.cm.close(*t.b.cm.listen(l), t.now).has_value());
  ASSERT_TRUE(t.a.cm.connect(t.connect_attr(), t.now).has_value());
  carry(t, t.a, t.b);
  EXPECT_TRUE(mads(t.b).empty());
  t.now = t.a.cm.next_deadline();  // six seconds later nobody listens
  t.a.cm.on_timer(t.now);
  carry(t, t.a, t.b);
  carry(t, t.b, t.a);
  EXPECT_EQ(event(t.a).kind, K::kRejected);
}

// What each side speaks and prefers, and the mode that they agree on.
struct ModeCase {
  std::uint16_t active, passive;
  Mode active_prefers, passive_prefers, mode;
};
TEST(Modes, AreWhatBothSidesSpeakAndThePassiveOnePrefers) {
  constexpr std::uint16_t kR = mode_bit(Mode::kRoce), kI = mode_bit(Mode::kIrn), kS = mode_bit(Mode::kSrnic);
  constexpr std::uint16_t kAll = kR | kI | kS;
  for (const ModeCase& c :
       {ModeCase{kAll, kAll, Mode::kIrn, Mode::kIrn, Mode::kIrn},
        ModeCase{kAll, kAll, Mode::kIrn, Mode::kSrnic, Mode::kSrnic},
        ModeCase{kAll, kAll, Mode::kIrn, Mode::kRoce, Mode::kSrnic},  // no preference among the two
        ModeCase{kAll, kR, Mode::kIrn, Mode::kRoce, Mode::kRoce},
        ModeCase{kR, kAll, Mode::kRoce, Mode::kIrn, Mode::kRoce},
        ModeCase{kR | kI, kR | kS, Mode::kIrn, Mode::kSrnic, Mode::kRoce},
        ModeCase{kR | kI, kAll, Mode::kIrn, Mode::kSrnic, Mode::kIrn}}) {
    CmConfig ca = TwoManagers::small(1), cb = TwoManagers::small(2);
    ca.modes = c.active;
    ca.preferred = c.active_prefers;
    cb.modes = c.passive;
    cb.preferred = c.passive_prefers;
    ca.options.ecn_echo = cb.options.ecn_echo = cb.options.dctcp = true;
    ca.options.window_log2 = 9;
    cb.options.window_log2 = 7;
    TwoManagers t(ca, cb);
    const auto [x, y] = until_response(t);
    for (const ConnInfo& i : {*t.a.cm.info(x), *t.b.cm.info(y)}) {
      EXPECT_EQ(i.mode, c.mode) << c.active << " " << c.passive;
      if (c.mode == Mode::kRoce) continue;
      EXPECT_TRUE(i.options.ecn_echo);
      EXPECT_FALSE(i.options.dctcp);
      EXPECT_EQ(i.options.window_log2, 7);
    }
  }
}

TEST(Modes, APeerThatNegotiatesNothingGetsPlainRoceUnlessToldOtherwise) {
  for (const bool forced : {false, true}) {
    CmConfig cb = TwoManagers::small(2);
    if (forced) cb.modes = mode_bit(Mode::kIrn);
    TwoManagers t(TwoManagers::small(1), cb);
    listen_at(t.b);
    static_cast<void>(*t.a.cm.connect(t.connect_attr(), t.now));
    CmMessage req = mads(t.a).at(0);
    EXPECT_EQ(req.vendor_id, wire::kEceVendor);
    req.vendor_id = 0x15B3;  // another vendor
    t.inject(t.b, req, t.a.address);
    const CmEvent e = event(t.b);
    EXPECT_EQ(e.info.mode, forced ? Mode::kIrn : Mode::kRoce);
    ASSERT_TRUE(t.b.cm.accept(e.conn, accept_attr(), t.now).has_value());
    const CmMessage rep = mads(t.b).at(0);
    EXPECT_EQ(rep.vendor_id, 0U) << "nothing is echoed that was not offered";
    EXPECT_EQ(rep.modifier, 0U);
  }
}

TEST(Sidr, AnswersWithQueuePairAndKeyOnce) {
  TwoManagers t;
  t.start(Plan::kResolve);
  t.run();
  ASSERT_EQ(t.a.log.size(), 1U);
  EXPECT_EQ(t.a.log[0].kind, K::kResolved);
  EXPECT_EQ(t.a.log[0].info.peer_qpn, Qpn{0x20033});
  EXPECT_EQ(t.a.log[0].info.qkey, 0x01234567U);
  EXPECT_EQ(t.a.log[0].private_length, kAnswerPrivate);
  ASSERT_EQ(t.b.log.size(), 1U);
  EXPECT_EQ(t.b.log[0].private_length, kResolvePrivate);
  EXPECT_EQ(t.b.log[0].info.peer, t.a.address);
}

TEST(Sidr, SaysWhyNot) {
  for (const auto& [plan, status] : {std::pair{Plan::kResolveRejected, wire::kSidrRejected},
                                     std::pair{Plan::kResolveNobody, wire::kSidrUnsupported}}) {
    TwoManagers t;
    t.start(plan);
    t.run();
    ASSERT_EQ(t.a.log.size(), 1U);
    EXPECT_EQ(t.a.log[0].kind, K::kRefused);
    EXPECT_EQ(t.a.log[0].reason, status);
  }
}

}  // namespace
}  // namespace weft::cm
