// The table of paths has as many rows as there are peers at a time, not in a Device's life.
#include <gtest/gtest.h>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

DeviceConfig three_rows() {
  DeviceConfig c;
  c.max_path = 3;
  return c;
}

wire::Address stranger(int n) {
  return wire::Address::v4(10, 1, static_cast<std::uint8_t>(n / 200), static_cast<std::uint8_t>(1 + n % 200));
}

// A queue pair towards a stranger, as far as RTR.
Qpn connect(Side& s, int n) {
  const Qpn q = s.create(kNoSrq, QpType::kRc);
  QpAttr a;
  a.access = kRemoteWrite;
  const auto [init, rtr, rts] = ladder(QpType::kRc);
  CHECK(s.step(q, a, init));
  const auto path = s.device.open_path({stranger(n)});
  if (!path) return kNoQpn;
  a.path = *path;
  CHECK(s.step(q, a, rtr));
  return q;
}

// What lives on in one Device, whoever else comes and goes: its own pair of connected queue pairs.
struct Paths : testing::Test {
  explicit Paths(QpType type = QpType::kRc) : w(wire::Mode::kIrn, three_rows(), type) {}
  bool is_full() { return !w.a.device.open_path({stranger(999)}); }
  TwoDevices w;
};
struct DatagramPaths : Paths {
  DatagramPaths() : Paths(QpType::kUd) {}
};

// A peer that begins again may offer another share of its buffer. While bytes are on their way, or wait, the
// sums must stay what they are.
TEST_F(Paths, TakeANewCreditWhileNothingIsOnItsWay) {
  Device& d = w.a.device;
  const PathAttr wide{.peer = w.b.address, .credit = {1U << 20U}};
  const PathAttr narrow{.peer = w.b.address, .credit = {8192}};
  const PathId path = *d.open_path(wide);
  const auto sent_at_once = [&] {
    w.post(w.request(WrOpcode::kWrite, 0, 60'000, 0));
    while (!d.poll_transmit(w.now, {64, 65'000}).empty()) {
    }
    return d.path_in_flight(path).n;
  };
  EXPECT_GT(sent_at_once(), 20'000U);
  EXPECT_EQ(*d.open_path(narrow), path);  // too late for these
  d.check_invariants();
  EXPECT_GT(sent_at_once(), 20'000U);
  w.run();
  ASSERT_EQ(d.path_in_flight(path).n, 0U);
  EXPECT_EQ(*d.open_path(narrow), path);
  EXPECT_LE(sent_at_once(), 8192U);
  w.run();
  EXPECT_EQ(*d.open_path({.peer = w.b.address}), path);  // one that offers nothing changes nothing
  EXPECT_LE(sent_at_once(), 8192U);
  w.run();
  d.check_invariants();
}

TEST_F(Paths, ServeAnyNumberOfPeersOneAfterAnother) {
  for (int n = 0; n < 500; ++n) {
    const Qpn q = connect(w.a, n);
    ASSERT_NE(q, kNoQpn) << n;
    if (n % 3 == 0) {
      QpAttr reset;
      ASSERT_TRUE(w.a.step(q, reset, QpState::kReset, 0));
    } else {
      ASSERT_TRUE(w.a.device.destroy_qp(q).has_value());
    }
    if (n % 100 == 0) w.a.device.check_invariants();
  }
  w.post(w.request(WrOpcode::kWrite, 0, 5000, 0));
  w.run();
  ASSERT_EQ(w.a.completions().size(), 1U);
  EXPECT_TRUE(std::equal(w.a.bytes().begin(), w.a.bytes().begin() + 5000, w.b.bytes().begin()));
}

TEST_F(Paths, AreKeptByConnectedAndByFailedQueuePairs) {
  const Qpn one = connect(w.a, 1);
  const Qpn two = connect(w.a, 2);
  ASSERT_NE(two, kNoQpn);
  EXPECT_TRUE(is_full());
  QpAttr a;
  ASSERT_TRUE(w.a.step(one, a, QpState::kErr, 0));
  EXPECT_TRUE(is_full());
  ASSERT_TRUE(w.a.device.destroy_qp(one).has_value());
  EXPECT_FALSE(is_full());
}

// Traffic class and hop limit belong to the path. A burst has one path, so all its packets have the same.
TEST_F(Paths, DifferByTrafficClass) {
  const PathId path = *w.a.device.open_path({.peer = stranger(1)});
  const PathId other = *w.a.device.open_path({.peer = stranger(1), .traffic_class = 0xB8});
  EXPECT_NE(other, path);
  EXPECT_EQ(*w.a.device.open_path({.peer = stranger(1), .traffic_class = 0xB8}), other);
}

TEST_F(Paths, DifferByHopLimit) {
  const PathId path = *w.a.device.open_path({.peer = stranger(1)});
  EXPECT_NE(*w.a.device.open_path({.peer = stranger(1), .hop_limit = 1}), path);
}

// The same peer again gives the same path, until others needed its row.
TEST_F(Paths, OfOnePeerAreOne) {
  const PathId path = *w.a.device.open_path({stranger(1)});
  EXPECT_EQ(*w.a.device.open_path({stranger(1)}), path);
  for (int n = 2; n < 6; ++n) EXPECT_EQ(connect(w.a, n) != kNoQpn, n < 4);
  EXPECT_FALSE(w.a.device.open_path({stranger(1)}).has_value());
}

TEST_F(DatagramPaths, AreKeptByAddressHandles) {
  const AhId one = *w.a.device.create_ah(w.a.pd, *w.a.device.open_path({stranger(1)}));
  ASSERT_TRUE(w.a.device.create_ah(w.a.pd, *w.a.device.open_path({stranger(2)})).has_value());
  EXPECT_TRUE(is_full());
  ASSERT_TRUE(w.a.device.destroy_ah(one).has_value());
  EXPECT_FALSE(is_full());
}

// A request that was posted needs its address handle no more, and still goes where the handle said.
TEST_F(DatagramPaths, AreKeptByDatagramsThatWerePosted) {
  const AhId handle = *w.a.device.create_ah(w.a.pd, *w.a.device.open_path({stranger(1)}));
  ASSERT_TRUE(w.a.device.create_ah(w.a.pd, *w.a.device.open_path({stranger(2)})).has_value());
  SendWr wr = w.request(WrOpcode::kSend, 0, 100, 0);
  wr.ah = handle;
  w.post(wr);
  ASSERT_TRUE(w.a.device.destroy_ah(handle).has_value());
  EXPECT_TRUE(is_full());
  const wire::Burst burst = w.a.device.poll_transmit(w.now, {});
  ASSERT_EQ(burst.packets.size(), 1U);
  EXPECT_EQ(w.a.device.path(burst.path).peer, stranger(1));
  w.run();
  EXPECT_FALSE(is_full());
}

// Its bytes count as in flight for a while after it left.
TEST_F(DatagramPaths, AreKeptByBytesOnTheirWay) {
  DeviceConfig c = three_rows();
  c.path_credit = {65536};
  TwoDevices bounded(wire::Mode::kIrn, c, QpType::kUd);
  Device& d = bounded.a.device;
  const AhId handle = *d.create_ah(bounded.a.pd, *d.open_path({stranger(1)}));
  ASSERT_TRUE(d.create_ah(bounded.a.pd, *d.open_path({stranger(2)})).has_value());
  SendWr wr = bounded.request(WrOpcode::kSend, 0, 100, 0);
  wr.ah = handle;
  bounded.post(wr);
  ASSERT_EQ(d.poll_transmit(bounded.now, {}).packets.size(), 1U);
  ASSERT_TRUE(d.destroy_ah(handle).has_value());
  EXPECT_EQ(d.open_path({stranger(3)}).error(), Errc::kNoMemory);
  bounded.run();
  EXPECT_TRUE(d.open_path({stranger(3)}).has_value());
}

}  // namespace
}  // namespace weft
