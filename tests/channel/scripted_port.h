// A port without a device: a test or a fuzzer says what the network and the peer do, word for word. What the
// program posts waits until it is completed here; what it asks of connections is written down.
//
// It keeps the promises of a device and no others: completions of a queue pair come in the order of its
// posts, one that fails completes everything that was posted, and nothing of a connection comes before the
// queue pair is up or after it was hung up.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/verbs/port.h"

namespace weft::channel_test {

class ScriptedPort : public VerbsPort {
 public:
  struct Send {
    std::uint64_t wr_id;
    WrOpcode opcode;
    bool signaled;
    std::uint32_t imm;
    std::uint64_t local;
    std::uint32_t length;
  };
  struct Receive {
    std::uint64_t wr_id;
    std::uint64_t local;
    std::uint32_t length;
  };
  struct QueuePair {
    QpState state = QpState::kReset;
    std::deque<Send> sends;
    std::deque<Receive> receives;
    bool shares = false;  // it takes from `shared` instead
  };
  enum class Stage { kAsking, kAsked, kAnswered, kOpen, kOver };
  struct Connection {
    Stage stage = Stage::kAsking;
    Qpn qpn = kNoQpn;
    ConnectData said;  // by the program, when it asked, answered or refused
  };

  explicit ScriptedPort(std::uint64_t most_memory = UINT64_MAX) : most_(most_memory) {}

  // --- what the test says ---
  ConnectionId ask(const wire::Address& peer, std::uint16_t service, const ConnectData& data) {
    PortEvent e;
    e.kind = PortEventKind::kConnectRequest;
    e.connection = {static_cast<std::uint32_t>(connections.size())};
    e.peer = peer;
    e.service = service;
    e.data = data;
    connections.push_back({Stage::kAsked, kNoQpn, {}});
    events_.push_back(e);
    return e.connection;
  }
  // The other end confirms, answers, refuses, hangs up: whatever of it can be now.
  void confirm(ConnectionId id, const ConnectData& data) {
    Connection& c = connections[id.v];
    if (c.stage != Stage::kAsking && c.stage != Stage::kAnswered) return;
    qps[c.qpn].state = QpState::kRts;
    c.stage = Stage::kOpen;
    happens(PortEventKind::kEstablished, id, data);
  }
  void refuse(ConnectionId id, const ConnectData& data) {
    Connection& c = connections[id.v];
    if (c.stage != Stage::kAsking && c.stage != Stage::kAnswered) return;
    fail(c.qpn);
    c.stage = Stage::kOver;
    happens(PortEventKind::kRejected, id, data);
  }
  void hang_up(ConnectionId id) {
    Connection& c = connections[id.v];
    if (c.stage != Stage::kOpen) return;
    fail(c.qpn);
    c.stage = Stage::kOver;
    happens(PortEventKind::kDisconnected, id, {});
  }
  // A SEND of the peer. False: there is no receive for it, or it does not fit, so that the sender is told.
  bool frame(Qpn qpn, std::uint32_t imm, std::span<const std::uint8_t> bytes,
             WcOpcode opcode = WcOpcode::kReceive, std::uint8_t flags = kWcWithImm) {
    QueuePair& q = qps[qpn];
    std::deque<Receive>& receives = q.shares ? shared : q.receives;
    if (q.state != QpState::kRts || receives.empty() || receives.front().length < bytes.size()) return false;
    Completion c;
    c.wr_id = receives.front().wr_id;
    c.opcode = opcode;
    c.flags = flags;
    c.imm = imm;
    c.byte_len = static_cast<std::uint32_t>(bytes.size());
    c.qpn = qpn;
    if (!bytes.empty()) std::memcpy(at(receives.front().local), bytes.data(), bytes.size());
    receives.pop_front();
    done_.push_back(c);
    return true;
  }
  // The oldest request is done; a READ brings these bytes, again and again.
  bool complete(Qpn qpn, std::uint8_t fill = 0) {
    QueuePair& q = qps[qpn];
    if (q.state != QpState::kRts || q.sends.empty()) return false;
    const Send s = q.sends.front();
    q.sends.pop_front();
    if (s.opcode == WrOpcode::kRead) std::memset(at(s.local), fill, s.length);
    Completion c;
    c.wr_id = s.wr_id;
    c.qpn = qpn;
    c.opcode = s.opcode == WrOpcode::kRead ? WcOpcode::kRead : WcOpcode::kSend;
    if (s.signaled) done_.push_back(c);
    return true;
  }
  void fail(Qpn qpn) {
    const auto it = qps.find(qpn);
    if (it == qps.end()) return;
    QueuePair& q = it->second;
    Completion c;
    c.qpn = qpn;
    for (const Send& s : q.sends) {
      c.wr_id = s.wr_id;
      c.status = q.sends.front().wr_id == s.wr_id ? WcStatus::kRetryExceeded : WcStatus::kFlushed;
      done_.push_back(c);
    }
    for (const Receive& r : q.receives) {
      c.wr_id = r.wr_id;
      c.status = WcStatus::kFlushed;
      done_.push_back(c);
    }
    q.sends.clear();
    q.receives.clear();
    if (q.shares && q.state != QpState::kErr) {
      PortEvent e;
      e.kind = PortEventKind::kLastReceive;
      e.qpn = qpn;
      events_.push_back(e);
    }
    q.state = QpState::kErr;
  }
  std::map<Qpn, QueuePair> qps;
  std::deque<Receive> shared;
  std::vector<Connection> connections;  // by ConnectionId

  // --- what the program asks ---
  PortFacts facts() const override { return {wire::Address::v4(10, 0, 0, 1), false, 64}; }
  Outcome<PortMemory> allocate(std::uint64_t length, std::uint8_t, MemoryKind) override {
    if (length > most_ - used_) return weft::fail(Errc::kNoMemory);
    used_ += length;
    const Key key{next_key_++};
    auto& bytes = memory_[key];
    bytes.reset(static_cast<std::uint8_t*>(std::aligned_alloc(4096, (length + 4095) / 4096 * 4096)));
    lengths_[key] = length;
    return PortMemory{key, key, reinterpret_cast<std::uint64_t>(bytes.get()), length, {bytes.get(), length}};
  }
  Outcome<PortMemory> adopt(std::span<std::uint8_t> bytes, std::uint8_t) override {
    const Key key{next_key_++};
    lengths_[key] = 0;
    return PortMemory{key, key, reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size(), bytes};
  }
  Outcome<void> release(Key key) override {
    used_ -= lengths_[key];
    memory_.erase(key);
    return {};
  }
  Outcome<CqId> create_cq(std::uint32_t) override { return CqId{0}; }
  Outcome<void> destroy_cq(CqId) override { return {}; }
  Outcome<SrqId> create_srq(std::uint32_t) override { return SrqId{0}; }
  Outcome<void> destroy_srq(SrqId) override {
    shared.clear();
    return {};
  }
  Outcome<Qpn> create_qp(const PortQueuePair& wanted) override {
    const Qpn q{next_qpn_++};
    qps[q] = {};
    qps[q].shares = wanted.srq != kNoSrq;
    return q;
  }
  Outcome<void> prepare(Qpn q) override {
    qps[q].state = QpState::kInit;
    return {};
  }
  Outcome<Qpn> recycle(Qpn q) override {
    const bool shares = qps[q].shares;
    qps[q] = {};
    qps[q].shares = shares;
    return q;
  }
  Outcome<void> destroy_qp(Qpn q) override {
    qps.erase(q);
    return {};
  }
  Outcome<QpState> state(Qpn q) const override { return qps.at(q).state; }
  Outcome<void> listen(std::uint16_t) override { return {}; }
  Outcome<ConnectionId> connect(const wire::Address&, std::uint16_t, Qpn qpn, const ConnectTerms&,
                                const ConnectData& data) override {
    connections.push_back({Stage::kAsking, qpn, data});
    return ConnectionId{static_cast<std::uint32_t>(connections.size() - 1)};
  }
  Outcome<void> accept(ConnectionId id, Qpn qpn, const ConnectTerms&, const ConnectData& data) override {
    Connection& c = connections[id.v];
    if (c.stage != Stage::kAsked) return weft::fail(Errc::kNotFound);
    c = {Stage::kAnswered, qpn, data};
    qps[qpn].state = QpState::kRts;  // the peer's first frame may come before it confirms
    return {};
  }
  Outcome<void> reject(ConnectionId id, const ConnectData& why) override {
    Connection& c = connections[id.v];
    if (c.stage != Stage::kAsked) return weft::fail(Errc::kNotFound);
    c = {Stage::kOver, kNoQpn, why};
    return {};
  }
  Outcome<void> disconnect(ConnectionId id) override {
    Connection& c = connections[id.v];
    if (c.stage == Stage::kOver || c.stage == Stage::kAsked) return weft::fail(Errc::kNotFound);
    c.stage = Stage::kOver;
    fail(c.qpn);
    return {};
  }
  Posted post_send(Qpn qpn, std::span<const SendWr> list) override {
    QueuePair& q = qps[qpn];
    for (const SendWr& wr : list) {
      const Sge s = wr.sges.empty() ? Sge{} : wr.sges[0];
      q.sends.push_back({wr.wr_id, wr.opcode, (wr.flags & kSendSignaled) != 0, wr.imm, s.address, s.length});
    }
    if (q.state == QpState::kErr) fail(qpn);
    return {list.size(), {}};
  }
  Posted post_recv(Qpn qpn, std::span<const RecvWr> list) override {
    QueuePair& q = qps[qpn];
    for (const RecvWr& wr : list) q.receives.push_back({wr.wr_id, wr.sges[0].address, wr.sges[0].length});
    if (q.state == QpState::kErr) fail(qpn);
    return {list.size(), {}};
  }
  Posted post_shared(SrqId, std::span<const RecvWr> list) override {
    for (const RecvWr& wr : list) shared.push_back({wr.wr_id, wr.sges[0].address, wr.sges[0].length});
    return {list.size(), {}};
  }
  void ring() override {}
  std::uint32_t poll(CqId, std::span<Completion> out) override {
    std::uint32_t n = 0;
    for (; n < out.size() && !done_.empty(); done_.pop_front()) out[n++] = done_.front();
    return n;
  }
  Outcome<void> arm(CqId, bool) override { return {}; }
  bool poll_event(PortEvent& out) override {
    if (events_.empty()) return false;
    out = events_.front();
    events_.pop_front();
    return true;
  }
  std::uint64_t registered() const { return used_; }

 private:
  struct Free {
    void operator()(std::uint8_t* p) const { std::free(p); }
  };
  static std::uint8_t* at(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); }
  void happens(PortEventKind kind, ConnectionId id, const ConnectData& data) {
    PortEvent e;
    e.kind = kind;
    e.connection = id;
    e.qpn = connections[id.v].qpn;
    e.data = data;
    events_.push_back(e);
  }

  std::uint64_t most_;
  std::uint64_t used_ = 0;
  std::uint32_t next_key_ = 1;
  std::uint32_t next_qpn_ = 1;
  std::map<Key, std::unique_ptr<std::uint8_t, Free>> memory_;
  std::map<Key, std::uint64_t> lengths_;
  std::deque<Completion> done_;
  std::deque<PortEvent> events_;
};

}  // namespace weft::channel_test
