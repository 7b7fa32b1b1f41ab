// Tests of several shards in one process: hosts with queue pairs in shards of the test's choice, over real
// sockets, and what connects them.
#pragma once
#include <poll.h>

#include <optional>
#include <thread>
#include <vector>

#include "live/engine/nic_state.h"
#include "live/engine/two_ends.h"

namespace weft::live {

inline constexpr std::uint32_t kShards = 2;

inline Options with_shards(wire::Mode mode = wire::Mode::kRoce, std::uint32_t loss = 0) {
  Options o;
  o.shards = kShards;
  o.mode = mode;
  o.impairments.loss = loss;
  o.seed = 4711;
  return o;
}

inline constexpr std::size_t kOfEachShard = 1024;  // bytes that one shard alone receives into

inline std::uint32_t slot_of(const Qp& qp) { return qp.qpn.v >> 16U; }

// A process with any number of queue pairs: queue pair i of one talks to queue pair i of the other.
struct Host : Opened {
  explicit Host(std::uint8_t n, const Options& base = with_shards()) : Opened(n, base, 1U << 20U) {
    channel = *context->create_channel();
    cq = new_cq();
  }
  Cq* new_cq(std::uint32_t entries = 1024) { return *context->create_cq(entries, channel, nullptr); }
  QpInit init(Cq* with = nullptr) const {
    QpInit i;
    i.pd = pd;
    i.send_cq = i.recv_cq = (with != nullptr ? with : cq)->id;
    i.caps = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1, .max_inline = 16};
    return i;
  }
  Qp* make(std::optional<std::uint32_t> shard = std::nullopt, Cq* with = nullptr) {
    qps.push_back(*context->create_qp(init(with), nullptr, shard));
    return qps.back();
  }
  Outcome<void> send(Qp* qp, WrOpcode opcode, std::uint64_t id, std::size_t offset, std::uint32_t length,
                     const Host* peer = nullptr, std::size_t remote = 0, std::uint8_t flags = 0) {
    const Sge sge = piece(offset, length);
    SendWr wr;
    wr.wr_id = id;
    wr.sges = {&sge, 1};
    wr.opcode = opcode;
    wr.flags = static_cast<std::uint8_t>(kSendSignaled | flags);
    if (peer != nullptr) {
      wr.remote_address = peer->address(remote);
      wr.rkey = peer->mr.rkey;
    }
    Posting posting(*context, qp);
    return posting.send(wr);
  }
  void receive(Qp* qp, std::uint64_t id, std::size_t offset, std::uint32_t length) {
    const Sge sge = piece(offset, length);
    Posting posting(*context, qp);
    CHECK(posting.receive({id, {&sge, 1}}).has_value());
  }
  // Into bytes of its shard's own: two shards that wrote to the same ones would race.
  void receive_apart(Qp* qp, std::uint64_t id, std::uint32_t length) {
    receive(qp, id, std::size_t{slot_of(*qp)} * kOfEachShard, length);
  }
  std::vector<Completion> wait(std::size_t count, Cq* on = nullptr) const {
    return Opened::wait(count, on != nullptr ? on : cq);
  }
  // Whether an event waits within this time, in milliseconds.
  bool told_within(int time) const {
    pollfd fd{context->channel_fd(channel), POLLIN, 0};
    return ::poll(&fd, 1, time) == 1;
  }
  Cq* take_event() {
    Cq* const told = context->get_cq_event(channel);
    if (told != nullptr) context->ack_cq_events(told, 1);
    return told;
  }
  // Until the queue of each shard holds so many entries, whoever drives: nothing is polled.
  bool filled(Cq* on, std::uint32_t in_each) {
    const auto end = SteadyClock::now() + kPatience;
    while (SteadyClock::now() < end) {
      std::uint32_t ready = 0;
      for (Nic* const n : nic->shards()) {
        const Owned owned(n->ownership());
        ready += n->device().completions_waiting(on->id) >= in_each ? 1 : 0;
      }
      if (ready == nic->shards().size()) return true;
      std::this_thread::yield();
    }
    return false;
  }

  CompletionChannel* channel = nullptr;
  Cq* cq = nullptr;
  std::vector<Qp*> qps;
};

inline bool connect(Host& from, Qp* qp, const Host& to, const Qp* peer) {
  QpAttr a;
  a.access = kRemoteWrite | kRemoteRead;
  a.mtu = 4096;
  a.dest_qpn = peer->qpn;
  a.max_dest_rd_atomic = a.max_rd_atomic = 16;
  a.min_rnr_timer = 1;
  return climb(qp->granted.type, a, [&](const QpAttr& at, std::uint32_t mask) {
    return from.context->modify_qp(qp, at, mask, {to.context->attributes().own.first}).has_value();
  });
}

// A pair of queue pairs, in these shards; none: whose turn it is.
inline void join(Host& a, Host& b, std::optional<std::uint32_t> at_a = std::nullopt,
                 std::optional<std::uint32_t> at_b = std::nullopt) {
  Qp* const x = a.make(at_a);
  Qp* const y = b.make(at_b);
  CHECK(connect(a, x, b, y));
  CHECK(connect(b, y, a, x));
}

}  // namespace weft::live
