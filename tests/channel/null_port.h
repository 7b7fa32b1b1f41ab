// Two ports with nothing between them: what one posted is complete at both when either is polled next. For
// what the middleware itself costs and asks for; it moves payloads and nothing else of a network.
//
// A post writes a request down. The rest is a device's work, which no program waits for: it is done when
// somebody polls, for many requests at a time, each step for all of them before the next, so that their cache
// misses overlap as a device's reads do. (What a real post looks at, its queue pair and the end of its ring,
// is the port's cost and not the middleware's: here it would only hide among the middleware's own misses.)
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/verbs/port.h"

namespace weft::channel_test {

// `Base` is VerbsPort, or what is derived from it and asks for more (run_to_complete_test.cc).
template <class Base>
class NullPortOver : public Base {
 public:
  using typename Base::Posted;
  void meet(NullPortOver& other) {
    other_ = &other;
    other.other_ = this;
  }
  PortFacts facts() const override { return {wire::Address::v4(127, 0, 0, 1), false, 0}; }
  Outcome<PortMemory> allocate(std::uint64_t length, std::uint8_t, MemoryKind) override {
    auto* at = static_cast<std::uint8_t*>(std::aligned_alloc(4096, (length + 4095) / 4096 * 4096));
    if (at == nullptr) return fail(Errc::kNoMemory);
    memory_.emplace_back(at, std::free);
    const Key key{static_cast<std::uint32_t>(memory_.size())};
    return PortMemory{key, key, reinterpret_cast<std::uint64_t>(at), length, {at, length}};
  }
  Outcome<PortMemory> adopt(std::span<std::uint8_t> bytes, std::uint8_t) override {
    memory_.emplace_back(bytes.data(), [](void*) {});
    const Key key{static_cast<std::uint32_t>(memory_.size())};
    return PortMemory{key, key, reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size(), bytes};
  }
  Outcome<void> release(Key key) override {
    memory_[key.v - 1].reset();
    return {};
  }
  Outcome<CqId> create_cq(std::uint32_t entries) override {
    ring_.resize(std::bit_ceil(entries));
    return CqId{0};
  }
  Outcome<void> destroy_cq(CqId) override { return {}; }
  // The shared queue is one ring more, from which the queue pairs of this port draw.
  Outcome<SrqId> create_srq(std::uint32_t entries) override {
    shared_.resize(std::bit_ceil(entries));
    return SrqId{0};
  }
  Outcome<void> destroy_srq(SrqId) override { return {}; }
  Outcome<Qpn> create_qp(const PortQueuePair& wanted) override {
    room_ = std::max(room_, std::bit_ceil(wanted.caps.max_recv_wr));
    CHECK(qps_.empty() || receives_.size() == qps_.size() * room_);  // all have as many
    qps_.push_back({});
    receives_.resize(qps_.size() * room_);
    return Qpn{static_cast<std::uint32_t>(qps_.size() - 1)};
  }
  Outcome<void> prepare(Qpn) override { return {}; }
  Outcome<Qpn> recycle(Qpn q) override {
    qps_[q.v] = {};
    return q;
  }
  Outcome<void> destroy_qp(Qpn) override { return {}; }
  Outcome<QpState> state(Qpn) const override { return QpState::kRts; }
  Outcome<void> listen(std::uint16_t) override { return {}; }
  Outcome<ConnectionId> connect(const wire::Address&, std::uint16_t, Qpn qpn, const ConnectTerms&,
                                const ConnectData& data) override {
    PortEvent e;
    e.kind = PortEventKind::kConnectRequest;
    e.connection = {qpn.v};
    e.peer = facts().address;
    e.data = data;
    other_->events_.push_back(e);
    return ConnectionId{qpn.v};
  }
  Outcome<void> accept(ConnectionId id, Qpn qpn, const ConnectTerms&, const ConnectData& data) override {
    qps_[qpn.v].peer = id.v;
    other_->qps_[id.v].peer = qpn.v;
    PortEvent e;
    e.kind = PortEventKind::kEstablished;
    e.connection = id;
    events_.push_back(e);
    e.data = data;
    other_->events_.push_back(e);
    return {};
  }
  Outcome<void> reject(ConnectionId, const ConnectData&) override { return {}; }
  Outcome<void> disconnect(ConnectionId) override { return {}; }
  Posted post_send(Qpn qpn, std::span<const SendWr> list) override {
    sends_ += list.size();
    for (const SendWr& wr : list) {
      CHECK(wr.sges.size() <= kMostSges);
      if (posted_ == requests_.size()) requests_.resize(std::max<std::size_t>(64, 2 * posted_));
      Request& r = requests_[posted_++];
      r.id = wr.wr_id;
      r.remote_address = wr.remote_address;
      r.qpn = qpn.v;
      r.imm = wr.imm;
      r.opcode = wr.opcode;
      r.flags = wr.flags;
      r.count = static_cast<std::uint16_t>(wr.sges.size());
      std::copy(wr.sges.begin(), wr.sges.end(), r.sges.begin());
    }
    return {list.size(), {}};
  }
  Posted post_recv(Qpn qpn, std::span<const RecvWr> list) override {
    for (const RecvWr& wr : list) receive(qpn.v, qps_[qpn.v].tail++) = {wr.wr_id, wr.sges[0].address};
    return {list.size(), {}};
  }
  Posted post_shared(SrqId, std::span<const RecvWr> list) override {
    for (const RecvWr& wr : list) {
      CHECK(shared_tail_ - shared_head_ < shared_.size());
      shared_[shared_tail_++ & (shared_.size() - 1)] = {wr.wr_id, wr.sges[0].address};
    }
    return {list.size(), {}};
  }
  void ring() override {}
  std::uint64_t sends() const { return sends_; }
  std::uint32_t poll(CqId, std::span<Completion> out) override {
    carry();
    if (other_ != nullptr) other_->carry();
    std::uint32_t n = 0;
    for (; n < out.size() && head_ != tail_; ++n) out[n] = ring_[head_++ & (ring_.size() - 1)];
    return n;
  }
  Outcome<void> arm(CqId, bool) override { return {}; }
  bool poll_event(PortEvent& out) override {
    if (events_.empty()) return false;
    out = events_.front();
    events_.pop_front();
    return true;
  }

 private:
  struct Receive {
    std::uint64_t id;
    std::uint64_t address;
  };
  struct QueuePair {  // little, so that many of them are few cache lines
    std::uint32_t head = 0;
    std::uint32_t tail = 0;
    std::uint32_t peer = 0;
  };
  static constexpr std::size_t kMostSges = 5;
  static constexpr std::size_t kTogether = 32;  // requests that a device has in hand
  static constexpr std::size_t kFewQps = 16;    // so many lie in the cache by themselves
  struct Request {
    std::uint64_t id = 0;
    std::uint64_t remote_address = 0;
    std::uint32_t qpn = 0;
    std::uint32_t imm = 0;
    WrOpcode opcode{};
    std::uint8_t flags = 0;
    std::uint16_t count = 0;
    std::array<Sge, kMostSges> sges;
    std::span<const Sge> list() const { return {sges.data(), count}; }
  };
  // What a device does: finds the receive, moves the bytes, tells both.
  void carry() {
    for (std::size_t from = 0; from < posted_; from += kTogether) {
      const auto some =
          std::span<const Request>(requests_).subspan(from, std::min(kTogether, posted_ - from));
      if (qps_.size() > kFewQps && other_->shared_.empty()) look_ahead(some);
      for (const Request& r : some) carry(r);
    }
    posted_ = 0;
  }
  void look_ahead(std::span<const Request> some) {
    NullPortOver& other = *other_;
    const auto next = [&](const Request& r) -> const Receive& {
      const std::uint32_t peer = qps_[r.qpn].peer;
      return other.receive(peer, other.qps_[peer].head);
    };
    for (const Request& r : some) __builtin_prefetch(&qps_[r.qpn]);
    for (const Request& r : some) __builtin_prefetch(&other.qps_[qps_[r.qpn].peer], 1);
    for (const Request& r : some) __builtin_prefetch(&next(r));
    for (const Request& r : some) {
      const std::uint64_t to = next(r).address;
      if (r.count == 0) continue;
      __builtin_prefetch(reinterpret_cast<const void*>(to), 1);
      __builtin_prefetch(reinterpret_cast<const void*>(r.sges[0].address));
    }
  }
  void carry(const Request& r) {
    if (r.opcode == WrOpcode::kSendImm) {
      NullPortOver& other = *other_;
      const std::uint32_t peer = qps_[r.qpn].peer;
      const Receive& to = other.next_receive(peer);
      Completion& c = other.push(to.id, WcOpcode::kReceive, kWcWithImm);
      c.qpn = {peer};
      c.imm = r.imm;
      for (const Sge& s : r.list()) {
        std::memcpy(reinterpret_cast<void*>(to.address + c.byte_len),
                    reinterpret_cast<const void*>(s.address), s.length);
        c.byte_len += s.length;
      }
    }
    const bool read = r.opcode == WrOpcode::kRead;
    if (read) {
      std::memcpy(reinterpret_cast<void*>(r.sges[0].address), reinterpret_cast<const void*>(r.remote_address),
                  r.sges[0].length);
    }
    if ((r.flags & kSendSignaled) != 0) push(r.id, read ? WcOpcode::kRead : WcOpcode::kSend, 0);
  }
  const Receive& next_receive(std::uint32_t qpn) {
    if (!shared_.empty()) {
      CHECK(shared_head_ != shared_tail_);
      return shared_[shared_head_++ & (shared_.size() - 1)];
    }
    QueuePair& q = qps_[qpn];
    CHECK(q.head != q.tail);
    return receive(qpn, q.head++);
  }
  Receive& receive(std::uint32_t qpn, std::uint32_t number) {
    return receives_[std::size_t{qpn} * room_ + (number & (room_ - 1))];
  }
  // In its place: what is put together and then copied whole waits for its own stores.
  Completion& push(std::uint64_t id, WcOpcode opcode, std::uint8_t flags) {
    CHECK(tail_ - head_ < ring_.size());
    Completion& c = ring_[tail_++ & (ring_.size() - 1)];
    c = {};
    c.wr_id = id;
    c.opcode = opcode;
    c.flags = flags;
    return c;
  }

  NullPortOver* other_ = nullptr;
  std::vector<std::unique_ptr<std::uint8_t, void (*)(void*)>> memory_;
  std::vector<QueuePair> qps_;
  std::vector<Receive> receives_;  // `room_` of each queue pair
  std::uint32_t room_ = 1;
  std::vector<Receive> shared_;
  std::uint64_t shared_head_ = 0;
  std::uint64_t shared_tail_ = 0;
  std::vector<Completion> ring_;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t sends_ = 0;
  std::vector<Request> requests_;
  std::size_t posted_ = 0;  // of these, and not carried
  std::deque<PortEvent> events_;
};

using NullPort = NullPortOver<VerbsPort>;

}  // namespace weft::channel_test
