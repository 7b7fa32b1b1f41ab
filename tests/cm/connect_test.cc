// The connection manager and the Device together: what qp_setup says is what modify_qp takes, in every mode,
// and a message goes through the connection. The test is the world between them, as live and sim are.
#include <gtest/gtest.h>

#include "core/cm/steps.h"
#include "core/transport/two_devices.h"

namespace weft {
namespace {

// Two Devices, each with a queue pair that its manager is asked to connect.
struct Connecting {
  explicit Connecting(wire::Mode mode) : managers(at(1, mode), at(2, mode)) {}

  static cm::CmConfig at(std::uint8_t host, wire::Mode mode) {
    cm::CmConfig c = cm::TwoManagers::small(host);
    c.modes = wire::mode_bit(wire::Mode::kRoce) | wire::mode_bit(mode);
    c.preferred = mode;
    return c;
  }
  // REQ and REP: the passive side's manager knows what its queue pair is to be.
  void request() {
    cm::listen_at(managers.b);
    cm::ConnectAttr attr = managers.connect_attr();
    attr.qpn = qa;
    x = *managers.a.cm.connect(attr, {});
    cm::carry(managers, managers.a, managers.b);
    y = cm::event(managers.b).conn;
    cm::AcceptAttr accept = cm::accept_attr();
    accept.qpn = qb;
    ASSERT_TRUE(managers.b.cm.accept(y, accept, {}).has_value());
  }
  // Takes the passive side's queue pair as far as `states` go.
  void prepare_passive(std::initializer_list<QpState> states) {
    set_up(devices.b, qb, managers.b.cm, y, states);
  }
  // The REP arrives, and the active side is ready; its RTU waits to be carried.
  void establish() {
    cm::carry(managers, managers.b, managers.a);
    ASSERT_EQ(cm::event(managers.a).kind, cm::CmEventKind::kConnectResponse);
    set_up(devices.a, qa, managers.a.cm, x, {QpState::kInit, QpState::kRtr, QpState::kRts});
    ASSERT_TRUE(managers.a.cm.establish(x, {}).has_value());
  }
  void set_up(Side& side, Qpn qpn, const cm::Cm& cm, cm::ConnId conn, std::initializer_list<QpState> states) {
    for (const QpState state : states) {
      cm::QpSetup s = *cm.qp_setup(conn, state);
      s.attr.path = *side.device.open_path({cm.info(conn)->peer});
      ASSERT_TRUE(side.device.modify_qp(qpn, s.attr, s.mask, devices.now).has_value())
          << static_cast<int>(state);
    }
  }
  void post(const SendWr& w) { ASSERT_TRUE(devices.a.device.post_send(qa, w).has_value()); }

  TwoDevices devices{wire::Mode::kRoce};
  Qpn qa = devices.a.create();
  Qpn qb = devices.b.create();
  cm::TwoManagers managers;
  cm::ConnId x{};
  cm::ConnId y{};
};

class Connect : public testing::TestWithParam<wire::Mode> {};

TEST_P(Connect, SetsQueuePairsUpThatCarryAMessageAndARead) {
  Connecting c(GetParam());
  TwoDevices& devices = c.devices;
  c.request();
  c.prepare_passive({QpState::kInit, QpState::kRtr, QpState::kRts});
  c.establish();
  EXPECT_EQ(devices.a.device.query_qp(c.qa)->mode, GetParam());

  for (std::size_t i = 0; i < 3000; ++i) devices.a.bytes()[i] = static_cast<std::uint8_t>(i * 7);
  ASSERT_TRUE(devices.b.device.post_recv(c.qb, devices.receive(devices.b, 0, 4096, 99)).has_value());
  c.post(devices.request(WrOpcode::kSend, 0, 3000, 0));
  c.post(devices.request(WrOpcode::kRead, 8000, 3000, 0));
  devices.run();
  const std::vector<Completion> done = devices.a.completions();
  ASSERT_EQ(done.size(), 2U);
  for (const Completion& each : done) EXPECT_EQ(each.status, WcStatus::kSuccess);
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
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

// Data may overtake the RTU: the Device's first packet tells the manager.
TEST(Rtu, ThatIsLostIsReplacedByTheFirstPacket) {
  Connecting c(wire::Mode::kRoce);
  c.request();
  c.prepare_passive({QpState::kInit, QpState::kRtr});  // in the order that cm.h wants
  c.establish();
  cm::mads(c.managers.a);  // the RTU is lost
  c.post(c.devices.request(WrOpcode::kWrite, 0, 100, 0));
  c.devices.run();
  DeviceEvent e;
  ASSERT_TRUE(c.devices.b.device.poll_event(e));
  ASSERT_EQ(e.kind, DeviceEventKind::kCommEstablished);
  ASSERT_EQ(e.qpn, c.qb);
  ASSERT_TRUE(c.managers.b.cm.notify(c.y, {}).has_value());
  EXPECT_EQ(cm::event(c.managers.b).kind, cm::CmEventKind::kEstablished);
  c.prepare_passive({QpState::kRts});
  ASSERT_TRUE(c.devices.b.device.post_recv(c.qb, c.devices.receive(c.devices.b, 0, 64, 1)).has_value());
  c.post(c.devices.request(WrOpcode::kSend, 0, 8, 0));
  c.devices.run();
  EXPECT_EQ(c.devices.b.completions().size(), 1U);
}

}  // namespace
}  // namespace weft
