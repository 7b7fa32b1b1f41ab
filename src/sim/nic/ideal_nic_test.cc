// What the settings of the ideal NIC do to two hosts on one link (IRN §6.3): delayed repairs, larger packets.
#include "sim/nic/ideal_nic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/verbs/ladder.h"

namespace weft::sim {
namespace {

constexpr std::uint32_t kMtu = 1024;
constexpr std::uint32_t kPackets = 40;

struct Sent {
  Time at;
  bool again;
};

// Records the data that host 0 sent and the ACKs of host 1, and loses data packets of host 0 by their number.
struct Recorder final : NicObserver {
  void sent(HostId from, HostId, const wire::TxPacket& p, Time now) override {
    if (from.v == 0 && p.payload != 0) data.push_back({now, p.retransmission});
  }
  void arrived(HostId at, const wire::RxPacket& p, Time now) override {
    if (at.v == 0 && p.header.syndrome == wire::kSyndromeNakSequence && first_nack == kNever)
      first_nack = now;
  }
  std::vector<Sent> data;
  Time first_nack = kNever;
};

struct Observed {
  Recorder recorder;
  Time end{};
  int completed = 0;
  std::uint64_t bytes = 0;  // on host 0's link
};

struct Settings {
  wire::Mode mode = wire::Mode::kIrn;
  Duration delay{};
  std::uint32_t extra = 0;
  std::vector<std::uint32_t> lose = {};  // by order of sending
  bool two = false;                      // a second queue pair with as much to send
};

// Between host 0 and the wire: the n-th data packet of host 0 is lost.
struct Loser {
  IdealNic* nic = nullptr;
  Fabric* fabric = nullptr;
  std::vector<std::uint32_t> lose;
  std::uint32_t seen = 0;
  void arrive(const Transit& t, std::uint32_t link) {
    const bool data = fabric->packets.at(t.packet).rx.payload != 0;
    const bool lost = data && std::find(lose.begin(), lose.end(), seen) != lose.end();
    seen += data ? 1U : 0U;
    if (lost) return fabric->release(t.packet);
    nic->arrive(t, link);
  }
};

Observed run(const Settings& w) {
  Observed out;
  Fabric fabric;
  Exchange exchange;
  PortConfig link;
  link.rate = gigabits(40);
  link.delay = microseconds(2);
  Port there(fabric, link, Prng(1));
  Port back(fabric, link, Prng(2));
  DeviceConfig config;
  config.max_qp = 8;
  config.qpn_bits = 3;
  config.control_ring = 64;
  config.seed = 7;
  PacketMarking marking;
  marking.extra_header = w.extra;
  IdealNic a(exchange, fabric, {0}, config, there, marking, &out.recorder, SendOrder::kControlFirst, w.delay);
  IdealNic b(exchange, fabric, {1}, config, back, marking, &out.recorder, SendOrder::kControlFirst, w.delay);
  Loser loser{&b, &fabric, w.lose};
  there.connect<&Loser::arrive>(loser, 0);
  back.connect<&IdealNic::arrive>(a, 0);
  IdealNic* nics[2] = {&a, &b};
  PdId pd[2];
  CqId cq[2];
  MrInfo mr[2];
  for (int h = 0; h < 2; ++h) {
    Device& d = nics[h]->device();
    pd[h] = *d.alloc_pd();
    cq[h] = *d.create_cq(16);
    mr[h] = *d.register_mr(pd[h], 0x1000, 1U << 20U, kLocalWrite | kRemoteWrite);
  }
  for (int n = 0; n < (w.two ? 2 : 1); ++n) {
    Qpn qpn[2];
    for (int h = 0; h < 2; ++h) {
      QpInit init;
      init.pd = pd[h];
      init.send_cq = init.recv_cq = cq[h];
      qpn[h] = *nics[h]->device().create_qp(init);
    }
    for (std::uint32_t h = 0; h < 2; ++h) {
      Device& d = nics[h]->device();
      QpAttr attr;
      attr.access = kRemoteWrite;
      attr.mode = w.mode;
      attr.mtu = kMtu;
      attr.path = *d.open_path({address_of({1 - h})});
      attr.dest_qpn = qpn[1 - h];
      attr.timeout = 8;
      EXPECT_TRUE(climb(QpType::kRc, attr, [&](const QpAttr& at, std::uint32_t mask) {
        return d.modify_qp(qpn[h], at, mask, Time{});
      }));
    }
    const Sge piece{0x1000, kPackets * kMtu, mr[0].lkey};
    SendWr wr;
    wr.sges = {&piece, 1};
    wr.opcode = WrOpcode::kWrite;
    wr.flags = kSendSignaled;
    wr.remote_address = 0x1000;
    wr.rkey = mr[1].rkey;
    EXPECT_TRUE(a.post_send(qpn[0], {&wr, 1}).refused);
  }
  a.ring();
  Completion got[4];
  while (fabric.timeline.step(Time{} + milliseconds(20))) {
    const auto n = static_cast<int>(a.poll(cq[0], got));
    if (n > 0) out.end = fabric.timeline.now();
    out.completed += n;
    a.device().check_invariants();
  }
  EXPECT_EQ(fabric.packets.in_use(), 0U);
  out.bytes = there.counters().bytes;
  return out;
}

// The first repair leaves the delay after the NACK that told of the loss, and each further one the delay
// after the one before: the NIC looks ahead by one packet.
TEST(RetransmitDelay, IsBetweenFindingALossAndRepairingIt) {
  for (const wire::Mode mode : {wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic}) {
    const Observed with = run({.mode = mode, .delay = microseconds(2), .lose = {3, 5}});
    const Observed without = run({.mode = mode, .lose = {3, 5}});
    EXPECT_EQ(with.completed, 1);
    EXPECT_EQ(without.completed, 1);
    Time before = with.recorder.first_nack;
    int again = 0;
    for (const Sent& s : with.recorder.data) {
      if (!s.again) continue;
      EXPECT_GE(s.at - before, microseconds(2)) << again;
      before = s.at;
      ++again;
    }
    EXPECT_GE(again, 2);
    EXPECT_GE(with.end - without.end, microseconds(2));
    const auto first = std::find_if(with.recorder.data.begin(), with.recorder.data.end(),
                                    [](const Sent& s) { return s.again; });
    EXPECT_LE(first->at - with.recorder.first_nack, microseconds(2) + nanoseconds(300));
  }
}

// Packets that were never lost are prefetched, so a run without losses takes exactly as long.
TEST(RetransmitDelay, CostsNothingWithoutLosses) {
  EXPECT_EQ(run({.delay = microseconds(2)}).end, run({}).end);
}

// One queue pair waits for its packet; the other has the link to itself.
TEST(RetransmitDelay, IsForTheQueuePairAlone) {
  const Observed w = run({.delay = microseconds(2), .lose = {0}, .two = true});
  EXPECT_EQ(w.completed, 2);
  const auto first =
      std::find_if(w.recorder.data.begin(), w.recorder.data.end(), [](const Sent& s) { return s.again; });
  ASSERT_NE(first, w.recorder.data.end());
  int meanwhile = 0;
  for (const Sent& s : w.recorder.data)
    meanwhile += s.at > first->at - microseconds(2) && s.at < first->at ? 1 : 0;
  EXPECT_GE(meanwhile, 7);  // of 9 that fit into 2 us
}

// Sixteen bytes more on every packet with payload, and on no other.
TEST(ExtraHeader, IsOnEveryDataPacket) {
  EXPECT_EQ(run({.extra = 16}).bytes, run({}).bytes + 16U * kPackets);
}

}  // namespace
}  // namespace weft::sim
