// Soft NICs by hand, for tests: two ends over a wire in memory, without sockets and without the background
// thread. Nothing moves but what a call moves. A wire can lose what is sent, and never be empty.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/verbs/ladder.h"
#include "live/engine/context.h"
#include "live/engine/nic_state.h"
#include "live/engine/sizing.h"

namespace weft::live::by_hand {

class MemoryWire final : public Wire {
 public:
  explicit MemoryWire(std::uint8_t n) {
    facts_.own.first = wire::Address::v4(10, 0, 0, n);
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
  void abandon(int) override {}
  SendStatus send(const TxTrain& train) override {
    ++sent;
    traffic_class = train.ip.traffic_class;
    frames += (train.bytes.size() + train.frame_size - 1) / train.frame_size;
    if (lose != 0 && lose-- != 0) return SendStatus::kSent;
    std::size_t from = 0;
    for (; lose_frames != 0 && from < train.bytes.size(); --lose_frames) from += train.frame_size;
    const auto left = train.bytes.subspan(std::min(from, train.bytes.size()));
    if (peer == nullptr || left.empty()) return SendStatus::kSent;  // its end is closed
    peer->inbox_.push_back({{left.begin(), left.end()}, train.frame_size, facts_.own.first});
    return SendStatus::kSent;
  }
  std::span<const RxTrain> receive(Time) override {
    if (inbox_.empty() && junk == 0) return {};
    if (inbox_.empty() || (junk_first && junk != 0)) {
      if (junk != kForEver) --junk;
      current_ = {std::vector<std::uint8_t>(60'000), 60'000, {}};
      return show(true);
    }
    current_ = std::move(inbox_.front());
    inbox_.pop_front();
    return show(false);
  }
  static constexpr int kForEver = -1;
  MemoryWire* peer = nullptr;
  int sent = 0;
  std::uint64_t frames = 0;
  std::uint8_t traffic_class = 0;  // of the last train
  int lose = 0;                    // trains, from now on
  int lose_frames = 0;             // frames
  int junk = 0;                    // trains of some program's own socket that wait behind what the peer sent,
  bool junk_first = false;         // or before it

 private:
  struct Train {
    std::vector<std::uint8_t> bytes;
    std::uint32_t frame_size = 0;
    wire::Address source;
  };
  std::span<const RxTrain> show(bool stray) {
    train_ = {};
    train_.data = current_.bytes.data();
    train_.bytes = static_cast<std::uint32_t>(current_.bytes.size());
    train_.frame_size = current_.frame_size;
    train_.source = current_.source;
    train_.stray = stray;
    return {&train_, 1};
  }
  WireFacts facts_;
  std::deque<Train> inbox_;
  Train current_;
  RxTrain train_;
};

struct End {
  End(std::uint8_t n, std::optional<wire::Mode> mode, Options o = {}) : memory(1U << 20U) {
    auto made = std::make_unique<MemoryWire>(n);
    wire = made.get();
    o.mode = mode;
    o.icrc = false;
    DeviceConfig config = size_device(wire->facts(), n);
    config.controller = o.controller;
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
  void connect(Qp* qp, const End& peer, const Qp* to, std::uint32_t mtu = 4096,
               std::uint8_t traffic_class = 0, std::uint8_t timeout = 0) {
    QpAttr a;
    a.service_level = 9;
    a.access = kRemoteWrite | kRemoteRead;
    a.mtu = mtu;
    a.dest_qpn = to->qpn;
    a.max_dest_rd_atomic = a.max_rd_atomic = 8;
    a.min_rnr_timer = 1;  // 10 us
    a.timeout = timeout;
    CHECK(climb(QpType::kRc, a, [&](const QpAttr& at, std::uint32_t mask) {
      return context
          ->modify_qp(qp, at, mask,
                      {.peer = peer.context->attributes().own.first, .traffic_class = traffic_class})
          .has_value();
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
    CHECK(posting.send(w).has_value());
  }
  void receive(Qp* qp) {
    const Sge sge{address(0), 4096, mr.lkey};
    Posting posting(*context, qp);
    CHECK(posting.receive({0, {&sge, 1}}).has_value());
  }
  // Completions of one poll; `most` at a time.
  std::size_t poll(std::size_t most = 16) {
    Completion c[16];
    const std::uint32_t n = context->poll_cq(cq, {c, most});
    for (std::uint32_t i = 0; i < n; ++i) CHECK(c[i].status == WcStatus::kSuccess);
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

}  // namespace weft::live::by_hand
