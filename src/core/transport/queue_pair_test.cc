// What the packet path touches, by offsets, and that it allocates nothing.
#include "core/transport/queue_pair.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "core/transport/two_devices.h"

namespace weft {
extern std::size_t allocations;  // counting_new_test.cc

namespace {

constexpr std::size_t kLine = 64;

const QueuePair kLaidOut;

// The cache lines of these members, first byte to last.
#define WEFT_SPAN(member) \
  { offset_of(&kLaidOut.member), sizeof(QueuePair::member) }
std::size_t offset_of(const void* member) {
  return static_cast<std::size_t>(static_cast<const char*>(member) -
                                  reinterpret_cast<const char*>(&kLaidOut));
}
struct Span {
  std::size_t offset;
  std::size_t size;
};
std::set<std::size_t> lines(std::initializer_list<Span> spans) {
  std::set<std::size_t> touched;
  for (const Span& s : spans) {
    for (std::size_t at = s.offset; at < s.offset + s.size; ++at) touched.insert(at / kLine);
  }
  return touched;
}

TEST(QueuePairLayout, HasFourCacheLines) {
  EXPECT_EQ(sizeof(QueuePair), 4 * kLine);
  EXPECT_EQ(alignof(QueuePair), kLine);
}

// On the way of an in-order SEND or WRITE packet: identity, state, mode, access, the receive stream, a WRITE
// under way, and its receive.
TEST(QueuePairLayout, ReceivedDataTouchesTwoLines) {
  EXPECT_EQ(
      lines({WEFT_SPAN(qpn),      WEFT_SPAN(path),       WEFT_SPAN(pd),          WEFT_SPAN(state),
             WEFT_SPAN(rx_mode),  WEFT_SPAN(access),     WEFT_SPAN(flags),       WEFT_SPAN(rx_flags),
             WEFT_SPAN(inbound),  WEFT_SPAN(mtu),        WEFT_SPAN(level),       WEFT_SPAN(inbound_message),
             WEFT_SPAN(requests), WEFT_SPAN(inbound_va), WEFT_SPAN(inbound_key), WEFT_SPAN(inbound_done),
             WEFT_SPAN(rq_head),  WEFT_SPAN(rq_tail),    WEFT_SPAN(recv_sn),     WEFT_SPAN(responses_owed)}),
      (std::set<std::size_t>{0, 1}));
}

// Identity and state, the send stream and its ring, and retries, timer, controller, window and pacer.
TEST(QueuePairLayout, AnAckTouchesThreeLines) {
  EXPECT_EQ(lines({WEFT_SPAN(qpn), WEFT_SPAN(path), WEFT_SPAN(state), WEFT_SPAN(tx_mode), WEFT_SPAN(flags),
                   WEFT_SPAN(rx_flags), WEFT_SPAN(controller_row), WEFT_SPAN(requests_out),
                   WEFT_SPAN(send_offset), WEFT_SPAN(sq_head), WEFT_SPAN(sq_acked), WEFT_SPAN(sq_send),
                   WEFT_SPAN(sq_tail), WEFT_SPAN(controller), WEFT_SPAN(retries), WEFT_SPAN(rnr_retries),
                   WEFT_SPAN(reads_outstanding), WEFT_SPAN(window), WEFT_SPAN(next_send)}),
            (std::set<std::size_t>{0, 2, 3}));
}

// The cold part: the ring and what a request gets from it; what is in flight, round trips, the time-out; the
// capabilities, where completions go.
TEST(QueuePairLayout, ARequestsWayTouchesThreeColdLines) {
  const ColdQueuePair c;
  EXPECT_EQ(alignof(ColdQueuePair), kLine);
  EXPECT_EQ(alignof(SendWqe), kLine);
  const auto line = [&](const auto& member) {
    const auto at = reinterpret_cast<std::uintptr_t>(&member) - reinterpret_cast<std::uintptr_t>(&c);
    EXPECT_EQ(at / kLine, (at + sizeof member - 1) / kLine);
    return at / kLine;
  };
  EXPECT_EQ((std::set{line(c.sq), line(c.sq_sges), line(c.sq_msn), line(c.sq_mask), line(c.issued_head),
                      line(c.issued_tail), line(c.post_seq), line(c.post_charged), line(c.post_recv_sn),
                      line(c.post_msn)}),
            (std::set<std::size_t>{0}));
  EXPECT_EQ((std::set{line(c.requests_account), line(c.round_trip)}), (std::set<std::size_t>{1}));
  EXPECT_EQ((std::set{line(c.attr.timeout), line(c.attr.retry_count), line(c.init.pd), line(c.init.send_cq),
                      line(c.init.caps.max_send_sge), line(c.init.caps.max_inline), line(c.init.signal_all)}),
            (std::set<std::size_t>{2}));
}

TEST(QueuePairLayout, AControllerAndItsPacerTake48Bytes) {
  EXPECT_LE(sizeof(QueuePair::controller) + sizeof(QueuePair::next_send), 48U);
  EXPECT_EQ(lines({WEFT_SPAN(controller), WEFT_SPAN(next_send)}).size(), 1U);
}

// A Device on its own: bursts are looked at and answered by hand, so that nothing but the Device runs.
struct Dialogue {
  explicit Dialogue(wire::Mode mode, const DeviceConfig& c) : w(mode, c) {}

  // Everything that `from` has to send; every `lose`-th packet is lost.
  bool carry(Side& from, Side& to) {
    NullSink sink;
    bool moved = false;
    for (int kind = 0; kind < 2; ++kind) {
      const wire::Burst burst =
          kind == 0 ? from.device.poll_transmit(w.now, {}) : from.device.poll_control(w.now);
      std::size_t n = 0;
      for (const wire::TxPacket& t : burst.packets) {
        if (lose != 0 && ++count % lose == 0) continue;
        wire::RxPacket& p = packets[n++];
        p.header = t.header;
        p.source = from.address;
        p.payload = t.payload;
        p.tos = mark && t.payload != 0 ? wire::kEcnCe : std::uint8_t{0};
      }
      to.device.on_packets(w.now, {packets.data(), n}, sink);
      moved = moved || !burst.empty();
    }
    return moved;
  }
  void exchange(const SendWr& request) {
    ASSERT_TRUE(w.a.device.post_send(w.qa, request).has_value());
    std::array<Completion, 4> done;
    for (int turn = 0; turn < 2000; ++turn) {
      w.now = w.now.after(microseconds(1));
      const bool a = carry(w.a, w.b);
      const bool b = carry(w.b, w.a);
      if (!a && !b) {
        const Time next = std::min(w.a.device.next_deadline(), w.b.device.next_deadline());
        if (next == kNever) break;
        w.now = std::max(w.now, next);
      }
      w.a.device.on_timer(w.now);
      w.b.device.on_timer(w.now);
      if (w.a.device.poll_cq(w.a.cq, done) != 0) return;
    }
    FAIL() << "it did not complete";
  }

  TwoDevices w;
  std::array<wire::RxPacket, 64> packets{};
  std::uint32_t count = 0;
  std::uint32_t lose = 0;
  bool mark = false;
};

class AllocationTest : public ::testing::TestWithParam<wire::Mode> {};

// WRITEs and READs of several packets, clean and with losses, with every controller: after the first round
// nothing is allocated any more, recovery included.
TEST_P(AllocationTest, ThePacketPathAllocatesNothing) {
  for (std::size_t row = 0; row < controllers().size(); ++row) {
    DeviceConfig c;
    c.controller = static_cast<std::uint8_t>(row);
    Dialogue d(GetParam(), c);
    const SendWr write = d.w.request(WrOpcode::kWrite, 0, 256 * 10, 0);
    const SendWr read = d.w.request(WrOpcode::kRead, 0, 256 * 10, 0);
    d.exchange(write);
    const std::size_t before = allocations;
    for (const std::uint32_t lose : {0U, 7U}) {
      d.lose = lose;
      d.mark = !d.mark;
      for (int i = 0; i < 50; ++i) d.exchange(i % 2 == 0 ? write : read);
      if (HasFailure()) return;
    }
    EXPECT_EQ(allocations, before) << controllers()[row]->name;
  }
}

// The counting counts.
TEST(Allocation, IsNoticed) {
  const std::size_t before = allocations;
  const auto p = std::make_unique<int>(1);
  EXPECT_GT(allocations, before);
}

INSTANTIATE_TEST_SUITE_P(Modes, AllocationTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
