// The connection manager and the Device together: what qp_setup says is what modify_qp takes, in every mode,
// and a message goes through the connection. The test is the world between them, as live and sim are.
#include <gtest/gtest.h>

#include "core/cm/steps.h"
#include "core/transport/two_devices.h"

namespace weft {
namespace {

// Takes a queue pair through INIT, RTR and RTS as its manager says.
void set_up(Side& side, Qpn qpn, const cm::Cm& cm, cm::ConnId conn, Time now) {
  for (const QpState state : {QpState::kInit, QpState::kRtr, QpState::kRts}) {
    cm::QpSetup s = *cm.qp_setup(conn, state);
    s.attr.path = *side.device.open_path({cm.info(conn)->peer});
    ASSERT_TRUE(side.device.modify_qp(qpn, s.attr, s.mask, now).has_value()) << static_cast<int>(state);
  }
}

class Connect : public testing::TestWithParam<wire::Mode> {};

TEST_P(Connect, sets_queue_pairs_up_that_carry_a_message_and_a_read) {
  TwoDevices devices(wire::Mode::kRoce);
  const Qpn qa = devices.a.create(), qb = devices.b.create();
  cm::CmConfig ca = cm::TwoManagers::small(1), cb = cm::TwoManagers::small(2);
  for (cm::CmConfig* c : {&ca, &cb}) {
    c->modes = wire::mode_bit(wire::Mode::kRoce) | wire::mode_bit(GetParam());
    c->preferred = GetParam();
  }
  cm::TwoManagers managers(ca, cb);

  cm::listen_at(managers.b);
  cm::ConnectAttr attr = managers.connect_attr();
  attr.qpn = qa;
  const cm::ConnId x = *managers.a.cm.connect(attr, {});
  cm::carry(managers, managers.a, managers.b);
  const cm::ConnId y = cm::event(managers.b).conn;
  cm::AcceptAttr accept = cm::accept_attr();
  accept.qpn = qb;
  ASSERT_TRUE(managers.b.cm.accept(y, accept, {}).has_value());
  set_up(devices.b, qb, managers.b.cm, y, devices.now);
  cm::carry(managers, managers.b, managers.a);
  ASSERT_EQ(cm::event(managers.a).kind, cm::EventKind::kConnectResponse);
  set_up(devices.a, qa, managers.a.cm, x, devices.now);
  ASSERT_TRUE(managers.a.cm.establish(x, {}).has_value());
  EXPECT_EQ(devices.a.device.query_qp(qa)->mode, GetParam());

  for (std::size_t i = 0; i < 3000; ++i) devices.a.bytes()[i] = static_cast<std::uint8_t>(i * 7);
  ASSERT_TRUE(devices.b.device.post_recv(qb, devices.receive(devices.b, 0, 4096, 99)).has_value());
  ASSERT_TRUE(
      devices.a.device.post_send(qa, devices.request(WrOpcode::kSend, 0, 3000, 0), devices.now).has_value());
  ASSERT_TRUE(devices.a.device.post_send(qa, devices.request(WrOpcode::kRead, 8000, 3000, 0), devices.now)
                  .has_value());
  devices.run();
  const std::vector<Completion> done = devices.a.completions();
  ASSERT_EQ(done.size(), 2U);
  for (const Completion& c : done) EXPECT_EQ(c.status, WcStatus::kSuccess);
  const std::vector<Completion> received = devices.b.completions();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].byte_len, 3000U);
  EXPECT_TRUE(
      std::equal(devices.a.bytes().begin(), devices.a.bytes().begin() + 3000, devices.b.bytes().begin()));
  EXPECT_TRUE(std::equal(devices.a.bytes().begin(), devices.a.bytes().begin() + 3000,
                         devices.a.bytes().begin() + 8000));
}

INSTANTIATE_TEST_SUITE_P(Modes, Connect,
                         testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& i) {
                           return std::string(i.param == wire::Mode::kRoce  ? "roce"
                                              : i.param == wire::Mode::kIrn ? "irn"
                                                                            : "srnic");
                         });

// Data may overtake the RTU: the Device's first packet tells the manager.
TEST(Rtu, that_is_lost_is_replaced_by_the_first_packet) {
  TwoDevices devices(wire::Mode::kRoce);
  const Qpn qa = devices.a.create(), qb = devices.b.create();
  cm::TwoManagers managers;
  cm::listen_at(managers.b);
  cm::ConnectAttr attr = managers.connect_attr();
  attr.qpn = qa;
  const cm::ConnId x = *managers.a.cm.connect(attr, {});
  cm::carry(managers, managers.a, managers.b);
  const cm::ConnId y = cm::event(managers.b).conn;
  cm::AcceptAttr accept = cm::accept_attr();
  accept.qpn = qb;
  ASSERT_TRUE(managers.b.cm.accept(y, accept, {}).has_value());
  // Only to RTR: COMM_EST is an event of that state.
  for (const QpState state : {QpState::kInit, QpState::kRtr}) {
    cm::QpSetup s = *managers.b.cm.qp_setup(y, state);
    s.attr.path = *devices.b.device.open_path({managers.a.address});
    ASSERT_TRUE(devices.b.device.modify_qp(qb, s.attr, s.mask, devices.now).has_value());
  }
  cm::carry(managers, managers.b, managers.a);
  ASSERT_EQ(cm::event(managers.a).kind, cm::EventKind::kConnectResponse);
  set_up(devices.a, qa, managers.a.cm, x, devices.now);
  ASSERT_TRUE(managers.a.cm.establish(x, {}).has_value());
  cm::mads(managers.a);  // the RTU is lost
  ASSERT_TRUE(
      devices.a.device.post_send(qa, devices.request(WrOpcode::kWrite, 0, 100, 0), devices.now).has_value());
  devices.run();
  Event e;
  ASSERT_TRUE(devices.b.device.poll_event(e));
  ASSERT_EQ(e.kind, EventKind::kCommEstablished);
  ASSERT_EQ(e.qpn, qb);
  ASSERT_TRUE(managers.b.cm.notify(y, {}).has_value());
  EXPECT_EQ(cm::event(managers.b).kind, cm::EventKind::kEstablished);
}

}  // namespace
}  // namespace weft
