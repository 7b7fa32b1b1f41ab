// One host of the live target: a real Nic without its background thread, the program above it, and what that
// program has to be able to rely on.
//
//   memory       live_memory.h
//   completions  of something posted, once, in its queue's order; no longer than what was posted; all of a
//                queue that has failed
//   states       an error on a reliable connection leaves its queue pair in ERR
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/verbs/ladder.h"
#include "live/engine/connections.h"
#include "live/engine/context.h"
#include "live/engine/nic_state.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/live_memory.h"
#include "tests/fuzz/live_wire.h"

namespace weft::fuzz {

// With FUZZ_TRACE in the environment a replayed finding tells what its programs did and saw.
inline const bool tells = std::getenv("FUZZ_TRACE") != nullptr;

inline constexpr std::uint32_t kQkey = 0x1234;
inline constexpr std::uint16_t kService = 7;

struct Queue {
  live::Qp* qp = nullptr;
  Qpn qpn = kNoQpn;
  QpType type = QpType::kRc;
  QpAttr attr;           // with which it was connected
  bool draws = false;    // from the shared receive queue
  bool patient = false;  // may wait for ever
  bool failed = false;   // something failed on it since it was connected
  std::deque<std::uint64_t> sends;
  std::deque<std::uint64_t> receives;
};

struct Posted {
  Queue* queue = nullptr;  // null: in the shared receive queue
  bool send = false;
  bool signaled = true;
  bool optional = false;
  std::uint64_t bytes = 0;
  std::vector<Range> opened;
};

// How big everything is.
struct Shape {
  live::Options options;
  DeviceConfig device;
  live::WireFacts facts;
};

class Host {
 public:
  // Places in memory.blocks.
  enum : std::size_t { kAll, kReadable, kLocal, kSilent, kForeign, kOdd, kWindowed, kBlocks };

  Host(const Shape& shape, const live::Clock& clock, Doors* doors) : clock_(clock) {
    auto made = std::make_unique<LinkWire>(shape.facts, doors);
    wire = made.get();
    nic = std::make_shared<live::Nic>(shape.options, std::move(made), shape.device, clock);
    context = *live::Context::open(nic);
    pd = *context->alloc_pd();
    foreign_pd = *context->alloc_pd();
    cq = *context->create_cq(512, nullptr, nullptr);
    srq = *context->create_srq(pd, {16, 2, 0}, nullptr);
    constexpr std::uint8_t kRemote = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    add_block(6000, kLocalWrite | kRemote | kMwBind, 0);
    add_block(1500, kRemoteRead, 8);
    add_block(8000, kLocalWrite, 0);
    add_block(3000, 0, 4);
    add_block(1000, kLocalWrite | kRemote, 0);
    add_block(333, kLocalWrite | kRemoteWrite | kRemoteAtomic, 3);
    add_block(2000, kLocalWrite | kMwBind, 0);
  }
  ~Host() { context->connections().end_all(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const wire::Address& address() const { return wire->facts().own.first; }
  Block& block(std::size_t i) { return *memory.blocks[i % memory.blocks.size()]; }

  void add_block(std::size_t length, std::uint8_t access, std::size_t shift) {
    const std::size_t i = memory.blocks.size();
    memory.blocks.push_back(std::make_unique<Block>(length, access, shift));
    Block& b = *memory.blocks.back();
    b.foreign = i == kForeign;
    b.iova = i == kOdd ? 0x1003 : reinterpret_cast<std::uint64_t>(b.data());
    b.mr = *context->register_mr(b.foreign ? foreign_pd : pd, b.data(), length, b.iova, access);
  }

  // --- queue pairs ---
  Queue* create(QpType type, bool draws) {
    QpInit init;
    init.type = type;
    init.pd = pd;
    init.send_cq = init.recv_cq = cq->id;
    init.caps = {16, 16, 3, 3, 64};
    if (draws) init.srq = srq->id;
    const auto qp = context->create_qp(init, nullptr);
    if (!qp) return nullptr;
    queues.push_back(std::make_unique<Queue>());
    Queue& q = *queues.back();
    q.qp = *qp;
    q.qpn = q.qp->qpn;
    q.type = type;
    q.draws = draws;
    return &q;
  }
  bool climb(Queue& q, const QpAttr& attr, const wire::Address& peer) {
    q.attr = attr;
    if ((attr.access & (kRemoteWrite | kRemoteAtomic)) != 0 && q.type != QpType::kUd) open_to_network();
    return weft::climb(q.type, attr, [&](const QpAttr& at, std::uint32_t mask) {
      return context->modify_qp(q.qp, at, mask, {.peer = peer}).has_value();
    });
  }
  QpState state(const Queue& q) const {
    if (q.qp == nullptr) return QpState::kReset;
    return context->query_qp(q.qp)->state;
  }
  bool fail(Queue& q) {
    QpAttr a;
    a.state = QpState::kErr;
    return q.qp != nullptr && context->modify_qp(q.qp, a, kAttrState).has_value();
  }
  void reset(Queue& q) {
    QpAttr a;
    if (q.qp == nullptr || !context->modify_qp(q.qp, a, kAttrState)) return;
    let_go(q);
  }
  void destroy(Queue& q) {
    if (q.qp == nullptr) return;
    context->detach_all(q.qp);
    if (!context->destroy_qp(q.qp)) return;
    q.qp = nullptr;
    let_go(q);
  }

  // --- posting ---
  bool post_send(Queue& q, SendWr wr) {
    if (q.qp == nullptr) return false;
    wr.wr_id = next_id_++;
    const bool reads = wr.opcode == WrOpcode::kRead || wr.opcode == WrOpcode::kCompareSwap ||
                       wr.opcode == WrOpcode::kFetchAdd;
    {
      live::Posting posting(*context, q.qp);
      if (!posting.send(wr)) return false;
      if (tells) tell("send", wr.wr_id, q.qpn, static_cast<unsigned>(wr.opcode), wr.sges);
      Posted& p = posted_[wr.wr_id];
      p.queue = &q;
      p.send = true;
      p.signaled = (wr.flags & kSendSignaled) != 0;
      if (reads) p.opened = memory.open_for(wr.sges);
      q.sends.push_back(wr.wr_id);
    }
    return true;
  }
  bool post_receive(Queue* q, RecvWr wr) {
    wr.wr_id = next_id_++;
    if (q != nullptr && (q->qp == nullptr || q->draws)) return false;
    Posted p;
    for (const Sge& s : wr.sges) p.bytes += s.length;
    if (q != nullptr) {
      live::Posting posting(*context, q->qp);
      if (!posting.receive(wr)) return false;
      q->receives.push_back(wr.wr_id);
    } else if (!context->post_srq_receive(srq, wr)) {
      return false;
    }
    if (tells) tell("receive", wr.wr_id, q != nullptr ? q->qpn : kNoQpn, 0, wr.sges);
    p.queue = q;
    p.opened = memory.open_for(wr.sges);
    posted_[wr.wr_id] = std::move(p);
    return true;
  }

  // --- driving ---
  bool poll() {  // true: something had completed
    Completion got[16];
    const std::uint32_t n = context->poll_cq(cq, got);
    CHECK_OP(n, <=, std::size(got));
    for (std::uint32_t i = 0; i < n; ++i) take(got[i]);
    return n != 0;
  }
  // As the background thread does.
  bool step() {
    const live::Owned owned(nic->ownership());
    const bool moved = nic->shard().step(clock_.now(), *wire, 8);
    nic->dispatch_events_owned();
    return moved;
  }
  void judge() {
    memory.check();
    nic->device().check_invariants();
  }
  Time next_deadline() { return nic->shard().next_deadline(); }
  // Something has to happen yet: a request completes, or a queue pair fails, which a responder's does when
  // its NAK has left, behind the answers that it owes.
  bool waits() const {
    for (const auto& [id, p] : posted_) {
      if (p.send && p.signaled && !p.optional && !p.queue->patient) return true;
    }
    return std::any_of(queues.begin(), queues.end(), [&](const auto& q) {
      return q->failed && q->type == QpType::kRc && state(*q) != QpState::kErr;
    });
  }
  bool is_posted(std::uint64_t id) const { return posted_.contains(id); }
  std::uint64_t last_id() const { return next_id_ - 1; }
  // Every queue pair has failed, and its completions were taken.
  void check_flushed() const {
    for (const auto& [id, p] : posted_) CHECK(p.queue == nullptr || p.optional || (p.send && !p.signaled));
  }

  Memory memory;  // outlives the context, which ends what is registered
  LinkWire* wire = nullptr;
  std::shared_ptr<live::Nic> nic;
  std::unique_ptr<live::Context> context;
  PdId pd{};
  PdId foreign_pd{};
  live::Cq* cq = nullptr;
  live::Srq* srq = nullptr;
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<AhId> handles;
  Completion last;  // completion taken

 private:
  // A queue pair lets the network write.
  void open_to_network() {
    if (std::exchange(open_, true)) return;
    for (const auto& b : memory.blocks) {
      if (!b->foreign && (b->access & (kRemoteWrite | kRemoteAtomic)) != 0) b->to_network = true;
    }
  }
  // What was posted to it is gone, and whatever that opened is closed.
  void let_go(Queue& q) {
    q.failed = false;
    for (auto& [id, p] : posted_) {
      if (p.queue != &q) continue;
      p.optional = true;
      memory.close(p.opened);
    }
  }
  void tell(const char* what, std::uint64_t id, Qpn qpn, unsigned opcode, std::span<const Sge> pieces) const {
    std::fprintf(stderr, "%u: %s %llu, opcode %u, on %x", address().bytes[15], what,
                 static_cast<unsigned long long>(id), opcode, qpn.v);
    for (const Sge& s : pieces) {
      std::size_t b = 0;
      while (b + 1 < memory.blocks.size() && memory.blocks[b]->mr.lkey != s.lkey) ++b;
      std::fprintf(stderr, ", %u at %lld of block %zu", s.length,
                   static_cast<long long>(s.address - memory.blocks[b]->iova), b);
    }
    std::fprintf(stderr, "\n");
  }
  void take(const Completion& c) {
    const auto it = posted_.find(c.wr_id);
    if (tells) {
      std::fprintf(stderr, "%u: %llu completes with %u, %u bytes, on %x\n", address().bytes[15],
                   static_cast<unsigned long long>(c.wr_id), static_cast<unsigned>(c.status), c.byte_len,
                   c.qpn.v);
    }
    CHECK(it != posted_.end());
    Posted& p = it->second;
    const bool good = c.status == WcStatus::kSuccess;
    CHECK_OP(static_cast<unsigned>(c.status), <=, static_cast<unsigned>(WcStatus::kRnrRetryExceeded));
    if (good) CHECK(p.send == (static_cast<unsigned>(c.opcode) < 128));
    if (good && c.opcode == WcOpcode::kReceive) CHECK_OP(c.byte_len, <=, p.bytes);
    Queue* q = p.queue;
    if (q != nullptr) {
      CHECK(c.qpn == q->qpn);
      std::deque<std::uint64_t>& order = p.send ? q->sends : q->receives;
      for (; order.front() != c.wr_id; order.pop_front()) {
        CHECK(order.size() > 1);
        Posted& before = posted_.at(order.front());
        CHECK(before.optional || (before.send && !before.signaled));
        memory.close(before.opened);
        posted_.erase(order.front());
      }
      order.pop_front();
      const bool old = p.optional || q->qp == nullptr;
      if (!good && !old) q->failed = true;
    }
    memory.close(p.opened);
    posted_.erase(it);
    last = c;
  }

  live::Clock clock_;
  bool open_ = false;
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, Posted> posted_;
};

}  // namespace weft::fuzz
