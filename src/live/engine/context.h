// The soft NIC as a verbs device sees it: what live/abi calls, one method per verb.
//
// A Nic (nic.h) is the process's network card: one UDP socket, one shard, one background thread, or as many
// of each as were asked for. A Context is one open device on it; several contexts may share a Nic, and each
// has its own asynchronous events. Every resource is created through a Context and belongs to it.
//
// Threads: every method may be called from any thread. A call takes the shard for as long as it
// lasts (nanoseconds; a long burst at most). poll_cq too: what is in the queue is returned, whoever is
// driving, for a program that was woken by an event polls once and then sleeps again.
//
// Several shards (docs/ARCHITECTURE.md#shards): a queue pair and a shared receive queue are in one shard.
// Domains, keys, address handles and completion queues are in all of them under one number, so any queue pair
// may use any. What makes or ends one of these takes all shards.
//
// Who drives: poll_cq moves packets on the calling thread. When nobody polls, the
// background thread does, so one-sided operations progress while the program sleeps or watches
// memory.
//
// File descriptors: those of completion channels and asynchronous events are readable exactly while an event
// waits, so that poll/epoll/O_NONBLOCK on them work as programs expect (event_queue.h).
//
// Objects: whatever a call names must belong to the Context it is called on, or it is kInvalid: a queue pair
// that uses another context's queue would be left dangling when that context closes.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/transport/terms.h"
#include "core/verbs/types.h"
#include "core/wire/packet.h"
#include "live/engine/nic.h"
#include "live/wires/addresses.h"

namespace weft::live {

// What ibv_query_device, ibv_query_port and ibv_query_gid report. Every limit is the true one.
struct Attributes {
  Addresses own;                   // the GIDs (IPv4: ::ffff:a.b.c.d), RoCE v2, port 1
  std::uint64_t guid = 0;          // derived from the first; equal addresses give equal guids
  std::optional<wire::Mode> mode;  // none: each queue pair's is what its peer speaks
  bool strict_write_order = false;
  std::uint32_t active_mtu = 1024;  // 256 … 4096: the largest that fits the interface
  std::uint32_t max_mtu = 4096;
  std::uint32_t max_qp = 0;
  std::uint32_t max_qp_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_inline = 0;
  std::uint32_t max_cq = 0;
  std::uint32_t max_cqe = 0;
  std::uint32_t max_mr = 0;
  std::uint32_t max_mw = 0;  // 0: there are no windows, for there are several shards
  std::uint64_t max_mr_size = 0;
  std::uint32_t max_pd = 0;
  std::uint32_t max_qp_rd_atomic = 0;
  std::uint32_t max_qp_init_rd_atomic = 0;
  std::uint32_t max_srq = 0;
  std::uint32_t max_ah = 0;
  std::uint32_t max_groups = 0;
  std::uint32_t max_members = 0;  // of a group
};

// An eventfd and the completion queues that report to it.
class CompletionChannel;
class Connections;
class EventQueue;

// Handles. The fields are for the caller to read; the rest is the engine's.
struct Cq {
  CqId id{};
  std::uint32_t entries = 0;  // as granted
  CompletionChannel* channel = nullptr;
  void* cookie = nullptr;            // the caller's; comes back with events
  std::atomic<bool> overran{false};  // it takes no more entries; its queue pairs have failed

 protected:
  Cq() = default;
  ~Cq() = default;
};

struct Qp {
  Qpn qpn = kNoQpn;
  QpInit granted{};        // capabilities as granted (rings are rounded up)
  void* cookie = nullptr;  // the caller's; comes back with events

 protected:
  Qp() = default;
  ~Qp() = default;
};

struct Srq {
  SrqId id{};
  SrqCaps granted{};       // rings are rounded up
  void* cookie = nullptr;  // the caller's; comes back with events

 protected:
  Srq() = default;
  ~Srq() = default;
};

struct Mr {
  Key lkey{};
  Key rkey{};
};

struct AsyncEvent {
  DeviceEventKind kind = DeviceEventKind::kQpFatal;
  Cq* cq = nullptr;    // kCompletion, kCqError
  Srq* srq = nullptr;  // kSrqLimit
  Qp* qp = nullptr;    // all others
};

class Context {
 public:
  // Fails only for lack of file descriptors.
  static Result<std::unique_ptr<Context>> open(std::shared_ptr<Nic> nic);
  ~Context();  // everything still open on it is destroyed
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Attributes& attributes() const;
  Connections connections() const;  // connections.h

  // The shard of a new thread domain: what is made for a thread is in one, and threads take turns.
  std::uint32_t shard_for_thread();

  // --- memory ---
  Outcome<PdId> alloc_pd();
  Outcome<void> dealloc_pd(PdId pd);
  // `memory` is where the bytes lie, `iova` what work requests and remote keys call its first byte.
  Outcome<Mr> register_mr(PdId pd, void* memory, std::uint64_t length, std::uint64_t iova,
                          std::uint8_t access);
  // What kChange… names takes its new value; addresses in it are `memory` again, or count from 0. The keys
  // stay.
  Outcome<void> reregister_mr(Key lkey, std::uint8_t changes, PdId pd, void* memory, std::uint64_t length,
                              std::uint8_t access);
  // When it returns, nothing touches the memory any more.
  Outcome<void> deregister_mr(Key lkey);

  // Memory windows: rights to a part of a region, bound by a work request (kBindWindow).
  Outcome<Key> alloc_window(PdId pd, WindowType type);
  Outcome<void> dealloc_window(Key key);  // any tag the window ever had

  // --- completion channels and queues ---
  Outcome<CompletionChannel*> create_channel();
  Outcome<void> destroy_channel(CompletionChannel* channel);  // kBusy while a CQ reports to it
  int channel_fd(const CompletionChannel* channel) const;
  // Reads one event: blocks unless the descriptor is O_NONBLOCK. nullptr: read failed, errno tells.
  Cq* get_cq_event(CompletionChannel* channel);
  void ack_cq_events(Cq* cq, std::uint32_t count);

  Outcome<Cq*> create_cq(std::uint32_t entries, CompletionChannel* channel, void* cookie);
  Outcome<void> resize_cq(Cq* cq, std::uint32_t entries);
  Outcome<void> destroy_cq(Cq* cq);  // waits until every event taken was acknowledged
  std::uint32_t poll_cq(Cq* cq, std::span<Completion> out);
  Outcome<void> request_notify(Cq* cq, bool solicited_only);

  // --- queue pairs ---
  // `shard`: where; none: with its shared receive queue, or else in the shard whose turn it is.
  Outcome<Qp*> create_qp(const QpInit& init, void* cookie, std::optional<std::uint32_t> shard = std::nullopt);
  // kAttrPath: the path is `to`; `attr.path` is ignored. So is `attr.mode`: the Nic's
  // configuration decides.
  Outcome<void> modify_qp(Qp* qp, const QpAttr& attr, std::uint32_t mask, const PathAttr& to = {});
  Outcome<QpAttr> query_qp(const Qp* qp);
  Outcome<void> destroy_qp(Qp* qp);  // waits until its events were acknowledged; kBusy: it is in a group

  // --- groups: datagrams to an IPv4 group go to every queue pair attached to it ---
  // kInvalid: no group, or no service of datagrams. Attached already: done.
  Outcome<void> attach(const Qp* qp, const wire::Address& group);
  Outcome<void> detach(const Qp* qp, const wire::Address& group);  // kInvalid: it is not attached
  void detach_all(const Qp* qp);

  // --- address handles (SendWr::ah) ---
  Outcome<AhId> create_ah(PdId pd, const PathAttr& path);
  Outcome<void> destroy_ah(AhId ah);

  // --- shared receive queues (QpInit::srq) ---
  // All queue pairs that draw from it are in its shard.
  Outcome<Srq*> create_srq(PdId pd, const SrqCaps& caps, void* cookie,
                           std::optional<std::uint32_t> shard = std::nullopt);
  Outcome<void> set_srq_limit(Srq* srq, std::uint32_t limit);
  Outcome<SrqCaps> query_srq(const Srq* srq);
  Outcome<void> destroy_srq(Srq* srq);  // waits until its events were acknowledged
  Outcome<void> post_srq_receive(Srq* srq, const RecvWr& wr);

  // --- asynchronous events ---
  int async_fd() const;
  bool get_async_event(AsyncEvent& out);  // as get_cq_event
  void ack_async_event(const AsyncEvent& event);

 private:
  friend class Posting;
  Context(std::shared_ptr<Nic> nic, std::unique_ptr<EventQueue> events);
  bool owns(PdId pd) const;  // these need the ownership
  bool owns(CqId cq) const;
  bool owns(Key lkey) const;  // of a region
  Nic& place_of(std::optional<std::uint32_t> shard);
  void report_to(Cq* cq, Nic& shard);
  std::uint32_t poll_in_turns(Cq* cq, std::span<Completion> out);
  Outcome<void> request_notify_in_all(Cq* cq, bool solicited_only);
  void begin_posting(Qp* qp);
  Outcome<void> check_send(const Qp* qp, const SendWr& wr, std::uint32_t ahead);
  Outcome<void> post_send(Qp* qp, const SendWr& wr);
  Outcome<void> post_receive(Qp* qp, const RecvWr& wr);
  void end_posting(Qp* qp);

  std::shared_ptr<Nic> nic_;
  std::unique_ptr<EventQueue> events_;
};

// A chain of work requests (ibv_post_send's list): holds the shard, rings the doorbell once at the
// end. Keep it as short as the chain:
//
//   Posting posting(context, qp);
//   for (...) if (auto r = posting.send(wr); !r) { *bad_wr = ...; return errno_of(r.error()); }
class Posting {
 public:
  Posting(Context& context, Qp* qp) : context_(context), qp_(qp) { context_.begin_posting(qp_); }
  ~Posting() { context_.end_posting(qp_); }
  Posting(const Posting&) = delete;
  Posting& operator=(const Posting&) = delete;
  // Whether send would take it behind `ahead` others.
  Outcome<void> check(const SendWr& wr, std::uint32_t ahead) { return context_.check_send(qp_, wr, ahead); }
  // kSendInline: the bytes are copied before it returns; keys of the pieces do not matter.
  Outcome<void> send(const SendWr& wr) { return context_.post_send(qp_, wr); }
  Outcome<void> receive(const RecvWr& wr) { return context_.post_receive(qp_, wr); }

 private:
  Context& context_;
  Qp* qp_;
};

}  // namespace weft::live
