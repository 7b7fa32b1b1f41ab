// Who moves packets, without sockets, threads or time: two soft NICs over a wire in memory, driven by polls
// alone. Whatever a poll receives may let something leave, and that leaves in the next poll at the latest;
// nothing waits for a timer, for there is none (timeout 0).
#include <gtest/gtest.h>

#include <deque>
#include <utility>
#include <vector>

#include "core/verbs/ladder.h"
#include "live/engine/context.h"
#include "live/engine/nic_state.h"
#include "live/engine/sizing.h"

namespace weft::live {
namespace {

class MemoryWire final : public Wire {
 public:
  explicit MemoryWire(std::uint8_t n) {
    facts_.address = wire::Address::v4(10, 0, 0, n);
    facts_.port = 4791;
    facts_.mtu = 9000;
    facts_.max_frames = 16;
    facts_.receive_buffer = 4U << 20U;
  }
  ~MemoryWire() override {
    if (peer != nullptr) peer->peer = nullptr;
  }
  MemoryWire(const MemoryWire&) = delete;
  MemoryWire& operator=(const MemoryWire&) = delete;

  const WireFacts& facts() const override { return facts_; }
  int descriptor() const override { return -1; }
  SendStatus send(const TxTrain& train) override {
    ++sent;
    if (peer == nullptr) return SendStatus::kSent;  // its end is closed
    peer->inbox_.push_back({{train.bytes.begin(), train.bytes.end()}, train.frame_size, facts_.address});
    return SendStatus::kSent;
  }
  std::span<const RxTrain> receive(Time) override {
    if (inbox_.empty()) return {};
    current_ = std::move(inbox_.front());
    inbox_.pop_front();
    train_ = {};
    train_.data = current_.bytes.data();
    train_.bytes = static_cast<std::uint32_t>(current_.bytes.size());
    train_.frame_size = current_.frame_size;
    train_.source = current_.source;
    return {&train_, 1};
  }
  MemoryWire* peer = nullptr;
  int sent = 0;

 private:
  struct Train {
    std::vector<std::uint8_t> bytes;
    std::uint32_t frame_size = 0;
    wire::Address source;
  };
  WireFacts facts_;
  std::deque<Train> inbox_;
  Train current_;
  RxTrain train_;
};

struct End {
  End(std::uint8_t n, wire::Mode mode) : memory(1U << 20U) {
    auto made = std::make_unique<MemoryWire>(n);
    wire = made.get();
    Options o;
    o.mode = mode;
    o.icrc = false;
    const DeviceConfig config = size_device(wire->facts(), n);
    nic = std::make_shared<Nic>(o, std::move(made), config);  // and never started: no background thread
    context = *Context::open(nic);
    pd = *context->alloc_pd();
    mr = *context->register_mr(pd, memory.data(), memory.size(), address(0),
                               kLocalWrite | kRemoteWrite | kRemoteRead);
    cq = *context->create_cq(256, nullptr, nullptr);
  }
  std::uint64_t address(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(memory.data()) + offset;
  }
  Qp* create(Srq* srq = nullptr) {
    QpInit init;
    init.pd = pd;
    init.send_cq = init.recv_cq = cq->id;
    init.caps = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1, .max_inline = 0};
    if (srq != nullptr) init.srq = srq->id;
    return *context->create_qp(init, nullptr);
  }
  void connect(Qp* qp, const End& peer, const Qp* to) {
    QpAttr a;
    a.access = kRemoteWrite | kRemoteRead;
    a.mtu = 4096;
    a.dest_qpn = to->qpn;
    a.max_dest_rd_atomic = a.max_rd_atomic = 8;
    a.min_rnr_timer = 1;  // 10 us
    a.timeout = 0;
    EXPECT_TRUE(climb(QpType::kRc, a, [&](const QpAttr& at, std::uint32_t mask) {
      return context->modify_qp(qp, at, mask, {peer.context->attributes().address}).has_value();
    }));
  }
  void post(Qp* qp, WrOpcode opcode, const End& peer, std::uint32_t length) {
    const Sge sge{address(0), length, mr.lkey};
    SendWr w;
    w.opcode = opcode;
    w.flags = kSendSignaled;
    w.sges = {&sge, 1};
    w.remote_address = peer.address(0);
    w.rkey = peer.mr.rkey;
    Posting posting(*context, qp);
    EXPECT_TRUE(posting.send(w).has_value());
  }
  // Completions of one poll; `most` at a time.
  std::size_t poll(std::size_t most = 16) {
    Completion c[16];
    const std::uint32_t n = context->poll_cq(cq, {c, most});
    for (std::uint32_t i = 0; i < n; ++i) EXPECT_EQ(c[i].status, WcStatus::kSuccess);
    return n;
  }

  std::vector<std::uint8_t> memory;
  MemoryWire* wire = nullptr;
  std::shared_ptr<Nic> nic;
  std::unique_ptr<Context> context;
  PdId pd{};
  Mr mr;
  Cq* cq = nullptr;
};

class DrivingTest : public ::testing::TestWithParam<wire::Mode> {
 protected:
  DrivingTest() {
    a.wire->peer = b.wire;
    b.wire->peer = a.wire;
    qa = a.create();
    qb = b.create();
    a.connect(qa, b, qb);
    b.connect(qb, a, qa);
  }
  // Both ends poll in turn until a has that many completions; how often, or nothing.
  int polls_until(std::size_t completions, std::size_t most = 16) {
    std::size_t got = 0;
    for (int i = 1; i <= 2000; ++i) {
      got += a.poll(most);
      if (got >= completions) return i;
      b.poll();
    }
    return 0;
  }
  End a{1, GetParam()};
  End b{2, GetParam()};
  Qp* qa = nullptr;
  Qp* qb = nullptr;
};

// Eight of them may be under way, and every answer makes room for the next.
TEST_P(DrivingTest, ReadsBehindTheLimitFollowWithoutATimer) {
  for (const std::size_t most : {1U, 16U}) {
    for (int i = 0; i < 24; ++i) a.post(qa, WrOpcode::kRead, b, 4096);
    EXPECT_GT(polls_until(24, most), 0) << most;
  }
}

// More than the path's credit: what an ACK frees is for whoever stands in line, another queue pair perhaps.
TEST_P(DrivingTest, WhoWaitsForThePathFollowsWithoutATimer) {
  Qp* more_a = a.create();
  Qp* more_b = b.create();
  a.connect(more_a, b, more_b);
  b.connect(more_b, a, more_a);
  for (int i = 0; i < 8; ++i) {
    a.post(qa, WrOpcode::kWrite, b, 1U << 19U);
    a.post(more_a, WrOpcode::kWrite, b, 1U << 19U);
  }
  EXPECT_GT(polls_until(16, 1), 0);
}

// Its credit goes to those in line, though nobody polls any more.
TEST_P(DrivingTest, AQueuePairThatGoesLetsOthersSend) {
  Qp* more_a = a.create();
  Qp* more_b = b.create();
  a.connect(more_a, b, more_b);
  b.connect(more_b, a, more_a);
  for (int i = 0; i < 4; ++i) a.post(qa, WrOpcode::kWrite, b, 1U << 19U);
  a.post(more_a, WrOpcode::kWrite, b, 4096);
  const int before = a.wire->sent;
  EXPECT_TRUE(a.context->destroy_qp(qa).has_value());
  EXPECT_GT(a.wire->sent, before);
  EXPECT_GT(polls_until(1), 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, DrivingTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft::live
