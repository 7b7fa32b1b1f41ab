// Tests of the soft NIC, two ends in one process: each a Nic on a loopback address of its own, with a
// registered buffer and one queue pair (End), or more of them (shard_hosts.h). Real sockets, real threads.
// What must succeed here for a test to mean anything is CHECKed.
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/base/prng.h"
#include "core/verbs/ladder.h"
#include "live/engine/context.h"

namespace weft::live {

using SteadyClock = std::chrono::steady_clock;

inline constexpr auto kPatience = std::chrono::seconds(20);

inline wire::Address host(std::uint8_t n) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  return wire::Address::v4(127, static_cast<std::uint8_t>(1U + (pid >> 8U) % 254U),
                           static_cast<std::uint8_t>(pid), n);
}

// A Nic, a context, a domain and a registered buffer, of a host of its own.
struct Opened {
  Opened(std::uint8_t n, const Options& base, std::size_t bytes) : memory(bytes) {
    Options o = base;
    if (o.wire == WireKind::kAuto)
      o.wire = WireKind::kUdp;  // the kernel takes part; shm_test.cc is without it
    o.own.first = host(n);
    auto opened = open_nic(o);
    CHECK(opened.has_value());
    nic = *opened;
    context = *Context::open(nic);
    pd = *context->alloc_pd();
    mr = *context->register_mr(pd, memory.data(), memory.size(), address(0),
                               kLocalWrite | kRemoteWrite | kRemoteRead);
  }

  std::uint64_t address(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(memory.data()) + offset;
  }
  Sge piece(std::size_t offset, std::uint32_t length) const { return {address(offset), length, mr.lkey}; }

  // Polls until `count` completions have come, or patience ends.
  std::vector<Completion> wait(std::size_t count, Cq* on) const {
    std::vector<Completion> got;
    const auto end = SteadyClock::now() + kPatience;
    while (got.size() < count && SteadyClock::now() < end) {
      Completion c[16];
      const std::uint32_t n = context->poll_cq(on, c);
      got.insert(got.end(), c, c + n);
    }
    return got;
  }

  // Outlives the context: registered memory is the Nic's to read until it is deregistered.
  std::vector<std::uint8_t> memory;
  std::shared_ptr<Nic> nic;
  std::unique_ptr<Context> context;
  PdId pd{};
  Mr mr;
};

// One end: with a queue pair, and one CQ for both directions.
struct End : Opened {
  explicit End(std::uint8_t n, const Options& base = {}, CompletionChannel** channel = nullptr)
      : Opened(n, base, 4U << 20U) {
    if (channel != nullptr) *channel = *context->create_channel();
    cq = *context->create_cq(1024, channel != nullptr ? *channel : nullptr, this);
    QpInit init;
    init.pd = pd;
    init.send_cq = init.recv_cq = cq->id;
    init.caps = {
        .max_send_wr = 128, .max_recv_wr = 128, .max_send_sge = 2, .max_recv_sge = 2, .max_inline = 64};
    qp = *context->create_qp(init, this);
  }

  void connect(const End& peer, std::uint8_t access = kRemoteWrite | kRemoteRead, std::uint8_t timeout = 14,
               std::uint8_t retries = 7) {
    QpAttr a;
    a.access = access;
    a.mtu = 4096;
    a.dest_qpn = peer.qp->qpn;
    a.rq_psn = {1000};
    a.max_dest_rd_atomic = 16;
    a.min_rnr_timer = 12;
    a.sq_psn = {1000};
    a.timeout = timeout;
    a.retry_count = retries;
    a.rnr_retry = 7;
    a.max_rd_atomic = 16;
    to_rts(a, peer.context->attributes().own.first);
  }
  // From RESET, towards a host.
  void to_rts(const QpAttr& with, const wire::Address& host) {
    CHECK(climb(QpType::kRc, with, [&](const QpAttr& a, std::uint32_t mask) {
      return context->modify_qp(qp, a, mask, {host}).has_value();
    }));
  }
  void post(WrOpcode opcode, std::uint64_t id, std::size_t offset, std::uint32_t length, const End& peer,
            std::size_t remote_offset, std::uint8_t flags = kSendSignaled) {
    const Sge sge = piece(offset, length);
    SendWr wr;
    wr.wr_id = id;
    wr.sges = {&sge, 1};
    wr.opcode = opcode;
    wr.flags = flags;
    wr.remote_address = peer.address(remote_offset);
    wr.rkey = peer.mr.rkey;
    Posting posting(*context, qp);
    CHECK(posting.send(wr).has_value());
  }
  void post_receive(std::uint64_t id, std::size_t offset, std::uint32_t length) {
    const Sge sge = piece(offset, length);
    Posting posting(*context, qp);
    CHECK(posting.receive({id, {&sge, 1}}).has_value());
  }

  std::vector<Completion> wait(std::size_t count) const { return Opened::wait(count, cq); }
  void fill(std::size_t offset, std::size_t length, std::uint64_t seed) {
    Prng prng(seed);
    for (std::size_t i = 0; i < length; ++i) memory[offset + i] = static_cast<std::uint8_t>(prng.next());
  }

  Cq* cq = nullptr;
  Qp* qp = nullptr;
};

}  // namespace weft::live
