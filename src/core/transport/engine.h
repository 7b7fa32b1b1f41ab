// The inside of a Device: every table, and the few operations that all protocol files share. The
// protocol itself is in rc/: one file per direction, each a set of functions over (Engine, QueuePair).
//
//   rc/responder.h        requests in: checks, placement, receive completions          (template: Sink)
//   rc/response_in.h      READ responses in: placement                                 (template: Sink)
//   rc/acknowledge.cc     ACK, NAK, READ ACK in; completion of requests
//   post_request.cc       what identifies a request, fixed when it is posted; every service
//   rc/requester.cc       requests out
//   rc/read_responder.cc  READ responses out
//   rc/control.cc         ACKs and NAKs out
//   rc/local.cc           requests that send nothing: memory windows
//   rc/timers.cc          time-outs
//   rc/failure.cc         error states and flushing
//   uc/requester.cc       messages out that nobody acknowledges
//   uc/responder.h        and in: what arrives whole                                   (template: Sink)
//   ud/requester.cc       datagrams: their destinations; sent by uc/requester.cc
//   ud/responder.h        datagrams in                                                 (template: Sink)
//
//   sender.h              what is in flight of either half, its recovery, clock and path credit
//   receiver.h            what has arrived of either half, and what an acknowledgement says of it
//   congestion.h          between queue pairs and controllers: samples, window, pacing, marks and CNPs
#pragma once
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/base/prng.h"
#include "core/transport/completion_queue.h"
#include "core/transport/config.h"
#include "core/transport/counters.h"
#include "core/transport/key_table.h"
#include "core/transport/loss/pool.h"
#include "core/transport/loss/scheme.h"
#include "core/transport/queue_pair.h"
#include "core/transport/sched/deadlines.h"
#include "core/transport/sched/paths.h"
#include "core/transport/sched/presumed.h"
#include "core/transport/sched/ready_queue.h"
#include "core/transport/shared_receive.h"
#include "core/transport/terms.h"
#include "core/transport/ud/address_handle.h"
#include "core/wire/packet.h"

namespace weft {

// A responder falls silent after so many time-outs without an ACK: the requester is gone, or it will ask
// again by its own timer.
inline constexpr std::uint8_t kResponderTries = 4;

// After two time-outs in a row the peer may be gone, and whatever is new would take path credit that comes
// back only with the next, longer one: only repairs go out until something is acknowledged.
inline bool in_doubt(const SendStream& s) { return s.backoff >= 2 && s.outstanding(); }

// What a queue pair would do with path credit.
enum class PathNeed : std::uint8_t { kNone, kTooLittle, kEnough };

// How much of the scratch burst a turn has filled.
struct Filled {
  std::uint32_t packets = 0;
  std::uint32_t segments = 0;
};

// An ACK or NAK waiting to leave.
struct ControlEntry {
  std::uint32_t qp = 0;  // index
  std::uint32_t psn = 0;
  std::uint32_t msn = 0;
  std::uint32_t sack = 0;  // irn: a NACK's trigger; srnic: the first packet missing
  std::uint32_t echo_msn = 0;
  std::uint32_t echo_offset = 0;
  std::uint8_t opcode = 0;
  std::uint8_t syndrome = 0;
  std::uint8_t ext_flags = 0;
  std::uint8_t mode = 0;
  Hole hole;               // srnic: what a NACK names
  bool coalesced = false;  // stamped when it leaves; void if the queue pair's mark was taken back
  bool congestion = false;
};

struct Engine {
  explicit Engine(const DeviceConfig& c);

  DeviceConfig config;
  Counters counters;
  Prng random;

  // --- tables ---
  KeyTable keys;
  LossPool pool;
  const LossScheme* schemes[kDialects.size()] = {};  // what each mode recovers losses with
  std::vector<std::unique_ptr<CompletionQueue>> cqs;
  std::vector<std::unique_ptr<SharedReceiveQueue>> srqs;
  std::vector<bool> pds;
  AddressHandles address_handles;
  std::vector<Path> paths;
  std::uint32_t waiting = 0;                   // queue pairs in the lines of all paths
  static constexpr std::uint32_t kChunk = 64;  // queue pairs are allocated in chunks
  std::vector<std::unique_ptr<QueuePair[]>> chunks;
  std::vector<std::unique_ptr<ColdQueuePair>> colds;
  std::vector<std::uint32_t> free_qps;
  std::uint32_t qpn_mask = 0;

  // --- queues ---
  ReadyQueue ready_queue;
  Deadlines deadlines;
  Deadlines pacing;                   // queue pairs that wait for their rate; each is marked kQueued
  std::vector<ControlEntry> control;  // ring
  std::uint32_t control_head = 0;
  std::uint32_t control_tail = 0;
  std::vector<Event> events;  // ring
  std::uint32_t event_head = 0;
  std::uint32_t event_tail = 0;
  PresumedFlights presumed;
  // The UC or UD queue pair whose last burst has not been settled yet (uc/requester.cc).
  static constexpr std::uint32_t kSettled = UINT32_MAX;
  std::uint32_t unsettled = kSettled;
  // A completion queue overran in mid-walk over a ring; the queue pairs that report to it fail afterwards.
  bool overrun = false;

  // --- scratch of the current burst ---
  std::vector<wire::TxPacket> burst_packets;
  std::vector<wire::Segment> burst_segments;

  // --- access ---
  QueuePair& qp(std::uint32_t index) { return chunks[index / kChunk][index % kChunk]; }
  std::uint32_t index_of(const QueuePair& q) const { return q.qpn.v & qpn_mask; }
  ColdQueuePair& cold(const QueuePair& q) { return *colds[index_of(q)]; }
  const ColdQueuePair& cold(const QueuePair& q) const { return *colds[index_of(q)]; }
  QueuePair* find(Qpn qpn) {
    const std::uint32_t index = qpn.v & qpn_mask;
    if (index >= colds.size() || chunks[index / kChunk] == nullptr) return nullptr;
    QueuePair& q = qp(index);
    return q.has(kInUse) && q.qpn == qpn ? &q : nullptr;
  }
  // Where a queue pair would be, without touching it: for prefetching.
  QueuePair* peek(Qpn qpn) {
    const std::uint32_t index = qpn.v & qpn_mask;
    if (index >= colds.size() || chunks[index / kChunk] == nullptr) return nullptr;
    return &qp(index);
  }
  SharedReceiveQueue* find_srq(SrqId id) { return id.v < srqs.size() ? srqs[id.v].get() : nullptr; }
  const QueuePair* find(Qpn qpn) const { return const_cast<Engine*>(this)->find(qpn); }
  Path& path_of(const QueuePair& q) { return paths[q.path.v]; }
  LossContext loss() { return {pool, counters, config.nack_threshold, config.rto == Rto::kFloored}; }
  // The two senders of a queue pair.
  Sending requests(QueuePair& q) {
    ColdQueuePair& c = cold(q);
    return {q.requests_out, c.requests_account, c.requests_silence,      tx_scheme(q),
            loss(),         path_of(q),         waits(c, q.tx_dialect())};
  }
  Sending responses(QueuePair& q) {
    ColdQueuePair& c = cold(q);
    return {q.served, c.responses_account, c.responses_silence,     rx_scheme(q),
            loss(),   path_of(q),          waits(c, q.rx_dialect())};
  }
  Waits waits(ColdQueuePair& c, const Dialect& form) const {
    return {config, c.round_trip, c.attr.timeout, form.own_timeouts};
  }
  // And its two receivers.
  Receiving received_requests(QueuePair& q) const {
    return {q.requests, rx_scheme(q), q.last_in_order(), q.rx_mode, wire::kAcknowledge, kAckQueued};
  }
  Receiving received_responses(QueuePair& q) {
    ColdQueuePair& c = cold(q);
    return {c.responses, tx_scheme(q), c.last_response, q.tx_mode, wire::kReadAcknowledge, kReadAckQueued};
  }
  const LossScheme& tx_scheme(const QueuePair& q) const { return *schemes[q.tx_mode]; }
  const LossScheme& rx_scheme(const QueuePair& q) const { return *schemes[q.rx_mode]; }
  SendWqe& send_wqe(ColdQueuePair& c, std::uint16_t slot) { return c.sq[slot & c.sq_mask]; }
  const Sge* send_sges(const ColdQueuePair& c, std::uint16_t slot) const {
    return &c.sq_sges[static_cast<std::size_t>(slot & c.sq_mask) * c.init.caps.max_send_sge];
  }
  RecvWqe& recv_wqe(ColdQueuePair& c, std::uint16_t slot) { return c.rq[slot & c.rq_mask]; }
  const Sge* recv_sges(const ColdQueuePair& c, std::uint16_t slot) const {
    return &c.rq_sges[static_cast<std::size_t>(slot & c.rq_mask) * c.init.caps.max_recv_sge];
  }
  static std::uint32_t packets_for(std::uint32_t length, std::uint32_t mtu) {
    return length == 0 ? 1U : (length + mtu - 1U) / mtu;
  }
  // Path bytes of the first k packets of a message of this length.
  std::uint64_t charge(std::uint32_t length, std::uint32_t mtu, std::uint64_t k) const {
    const std::uint64_t payload = k * mtu;
    return (payload < length ? payload : length) + k * config.path_overhead.n;
  }

  // --- shared operations ---
  // Inline, so that the entry is written where it stays.
  void complete(CqId cq, const Completion& c, bool solicited) {
    const CompletionQueue::Push pushed = cqs[cq.v]->push(c, solicited);
    if (pushed != CompletionQueue::Push::kQuiet) tell_of(pushed, cq, c.qpn);
  }
  void tell_of(CompletionQueue::Push pushed, CqId cq, Qpn qpn);
  void raise(const Event& event);
  void settle();  // what earlier calls left to the next one
  // Its first packet came before its user knew that the peer is there.
  void established(QueuePair& q) {
    if (q.state != QpState::kRtr || (q.rx_flags & kEstablished) != 0) return;
    q.rx_flags |= kEstablished;
    raise({EventKind::kCommEstablished, {}, q.qpn});
  }
  void arm(QueuePair& q, Time at) { deadlines.at_latest(index_of(q), at); }
  // Nothing is awaited any more: its entry, which would look at a queue pair long out of the caches, is void.
  void disarm_if_quiet(const QueuePair& q) {
    if (!q.requests_out.outstanding() && q.reads_outstanding == 0 && !q.served.outstanding() &&
        !q.has(kRnrWaiting))
      deadlines.forget(index_of(q));
  }
  // Every call into the Device concerns one queue pair, and ends here. Whatever the call changed of work,
  // window and credit: the queue pair stands in the ready queue if it can send, and the first of its path's
  // line has too little credit, or is called. The protocol files wake nobody.
  void reconcile(QueuePair& q) {
    if (waiting != 0 && q.path.v < paths.size()) wake_path(path_of(q));  // it may not be connected yet
    stand_ready(q);
  }
  // The same after its turn, which is over: the policy may give it the next one, too.
  void reconcile_after_turn(QueuePair& q) {
    if (!q.has(kQueued) && can_send(q)) {
      q.set(kQueued);
      const std::uint32_t level = q.level & kServiceLevel;
      ready_queue.push_again(index_of(q), level, config.level_weights[level]);
    }
    end_turn(q);
  }
  void stand_ready(QueuePair& q) {
    if (q.has(kQueued) || !can_send(q)) return;
    q.set(kQueued);
    ready_queue.push(index_of(q), q.level & kServiceLevel);
  }
  // It was destroyed between pick and transmit: it stands nowhere, and its successor may be queued.
  void forget_pick(Qpn qpn) {
    if (QueuePair* gone = peek(qpn); gone != nullptr && !gone->has(kInUse)) gone->clear(kQueued);
  }
  // Anything at all to send, window and credit aside? A few loads, for the many that have nothing.
  bool owes_responses(const QueuePair& q) const {
    return q.rx_dialect().response_stream
               ? q.served.recovering() || q.served.nxt < cold(q).response_next
               : q.responses_owed > 0;
  }
  bool has_work(const QueuePair& q) const {
    return q.sq_send != q.sq_tail || (q.rx_flags & kResendRequest) != 0 ||
           q.requests_out.recovering() || q.requests_out.probe == Probe::kDue || owes_responses(q);
  }
  bool can_send(QueuePair& q) { return has_work(q) && can_send_now(q); }
  bool can_send_now(QueuePair& q);
  void prefetch_ready();  // what the next queue pairs' turns will touch
  void wait_for_path(QueuePair& q);
  PathNeed path_need(QueuePair& q);
  void wake_path(Path& path) {
    if (path.waiting_head != UINT32_MAX) wake_line(path);
  }
  void wake_line(Path& path);
  bool in_turn(const QueuePair& q, const Path& path) const {
    return path.waiting_head == UINT32_MAX || path.called == index_of(q);
  }
  // Bytes worth a turn: a good part of a burst, so that nobody is called for every packet; of a small credit,
  // a part of that.
  bool worth_a_turn(const Path& path) const {
    return path.admits(std::min<std::uint64_t>(config.burst_bytes, path.cap) / 4);
  }
  // Its turn is over, or it will not have one.
  void end_turn(const QueuePair& q) {
    Path& path = path_of(q);
    if (path.called == index_of(q)) path.called = UINT32_MAX;
    wake_path(path);
  }
  // It wants nothing of its path any more, or will want something of another.
  void leave_path(QueuePair& q);
  bool exhausted(const QueuePair& q) const {
    return q.retries >= cold(q).attr.retry_count && (!config.never_give_up || q.retries == UINT8_MAX);
  }
  void check_invariants() const;
  void check_nobody_forgotten(QueuePair& q);
};

// --- rc/control.cc ---
void rc_schedule_ack(Engine& e, QueuePair& q, const Receiving& half, bool congestion);
void rc_ack_duplicate(Engine& e, QueuePair& q, const Receiving& half, const wire::Header& trigger,
                      bool congestion);
// A packet ahead of the expected one was placed: it is kept, and the NACK says so.
void rc_keep(Engine& e, QueuePair& q, const Receiving& half, const wire::Header& trigger, Seq seq,
             bool message_end, bool congestion);
// A packet that might have been kept, but is not: it is counted, and the NACK says so.
void rc_decline(Engine& e, QueuePair& q, const Receiving& half, Arrival why, const wire::Header& trigger,
                bool congestion);
void rc_nak(Engine& e, QueuePair& q,
            std::uint8_t syndrome);  // RNR, sequence and error NAKs at the expected number
void rc_nak_read(Engine& e, QueuePair& q, std::uint8_t syndrome,
                 Seq request);                                         // a READ being answered failed
void rc_raise_fault(Engine& e, const QueuePair& q, std::uint8_t nak);  // no receive tells of it
void rc_push_cnp(Engine& e, QueuePair& q);
void rc_repeat_ack(Engine& e, QueuePair& q);
void rc_withdraw_acks(Engine& e, QueuePair& q,
                      Seq from);  // roce: responses from here on did not leave after all
void rc_forget_control(Engine& e, const QueuePair& q);  // this life of it ends: nothing is sent any more
void rc_reads_drained(Engine& e, QueuePair& q);
void rc_answers_given_up(Engine& e, QueuePair& q);  // nobody takes the READ responses that are left
wire::Burst rc_poll_control(Engine& e, Time now);

// --- rc/acknowledge.cc ---
void rc_on_acknowledge(Engine& e, QueuePair& q, const wire::Header& h, Time now);
void rc_on_read_acknowledge(Engine& e, QueuePair& q, const wire::Header& h, Time now);
// Everything before `to` is acknowledged, as far as no unanswered READ stands in the way (roce).
// Returns false when one does: its response is missing.
bool rc_acknowledge(Engine& e, QueuePair& q, Seq to, Time now);
// Moves una to `to` unconditionally. `ours`: the numbers are of packets that we sent, not of READ responses.
void rc_advance(Engine& e, QueuePair& q, Seq to, Time now, bool ours = true);
void rc_complete_requests(Engine& e, QueuePair& q, Time now);
void rc_reads_progress(Engine& e, QueuePair& q, Seq reached,
                       Time now);  // issued READs whose responses are all here
void rc_implied_nak(Engine& e, QueuePair& q, Time now);

// --- post_request.cc ---
// Whether it would be taken behind `ahead` others that are posted before it.
Outcome<void> check_request(const Engine& e, const QueuePair& q, const SendWr& wr, std::uint32_t ahead);
Outcome<std::uint32_t> post_request(Engine& e, QueuePair& q, const SendWr& wr);

// --- rc/requester.cc ---
bool rc_requests_sendable(Engine& e, QueuePair& q);
PathNeed rc_requests_need(Engine& e, QueuePair& q);  // if it were called now
Filled rc_send_requests(Engine& e, QueuePair& q, Time now, Budget budget);
void rc_ask_in_time(Engine& e, const QueuePair& q, std::size_t packets, Time next);  // for an ACK
void rc_rewind(Engine& e, QueuePair& q);  // after nxt moved back to una: cursor and READs follow
std::uint16_t rc_slot_of(Engine& e, QueuePair& q, Seq seq);
// Appends the memory of `length` bytes from `from` of a message to the burst. False: a key does not allow it.
bool rc_gather(Engine& e, const ColdQueuePair& c, const SendWqe& w, std::uint16_t slot, std::uint32_t from,
               std::uint32_t length, std::uint32_t& count);

// --- rc/local.cc ---
void rc_run_local(Engine& e, QueuePair& q, Time now);

// --- shared_receive.cc ---
// Binds one more receive of the shared queue; false when there is none, or no room for it.
bool rc_take_shared(Engine& e, QueuePair& q);

// --- rc/read_responder.cc ---
bool rc_responses_sendable(Engine& e, QueuePair& q);
// Of what is sendable: the next packet was sent before.
bool rc_request_again(Engine& e, QueuePair& q);
bool rc_response_again(Engine& e, QueuePair& q);
PathNeed rc_responses_need(Engine& e, QueuePair& q);  // if it were called now
Filled rc_send_responses(Engine& e, QueuePair& q, Time now, Budget budget);
void rc_release_served(Engine& e, QueuePair& q);  // irn: READs whose responses are all acknowledged
ReadServed* rc_find_served(Engine& e, QueuePair& q, Seq response);

// --- rc/timers.cc ---
Time rc_deadline(Engine& e, QueuePair& q);
void rc_on_timer(Engine& e, QueuePair& q, Time now);
void rc_forgive(Engine& e, QueuePair& q, Time now, Duration stall);

// --- rc/failure.cc ---
// The request in `slot` failed with `status`; everything else is flushed.
void rc_fail(Engine& e, QueuePair& q, WcStatus status, std::uint16_t slot, Time now);
void rc_fail_in_order(Engine& e, QueuePair& q, WcStatus status, std::uint16_t slot, Time now);
void rc_enter_error(Engine& e, QueuePair& q);  // flush both queues
void fail_overrun(Engine& e);                  // queue pairs whose completion queue overran
void rc_stop_sending(Engine& e, QueuePair& q, WcStatus status, std::uint16_t slot, Time now);
void rc_release(Engine& e, QueuePair& q);  // give back blocks, path credit, timers
// UC, UD: the request at sq_send failed with `status`, those behind it are flushed: SQE.
void rc_fail_send_queue(Engine& e, QueuePair& q, WcStatus status);

// --- rc/attributes.cc ---
// SQD: every message that had begun is complete. Tells the user, if asked to.
bool rc_drained(const QueuePair& q);
void rc_check_drained(Engine& e, QueuePair& q);
Outcome<void> rc_modify(Engine& e, QueuePair& q, const QpAttr& attr, std::uint32_t mask, Time now);

// --- ud/requester.cc ---
Outcome<void> ud_check_address(const Engine& e, const QueuePair& q, const SendWr& wr);
void ud_address(const Engine& e, const SendWr& wr, SendWqe& w);
PathId ud_path(const SendWqe& w);
void ud_header(const Engine& e, const QueuePair& q, const SendWqe& w, wire::Header& h);

// --- uc/requester.cc: UC and UD ---
bool uc_sendable(Engine& e, QueuePair& q);
PathNeed uc_need(Engine& e, QueuePair& q);
Filled uc_send(Engine& e, QueuePair& q, Time now, Budget budget);
void uc_settle(Engine& e);  // what the last transmit sent has left, and is complete
void uc_gather_failed(Engine& e, QueuePair& q, WirePsn psn);
void uc_on_timer(Engine& e, QueuePair& q, Time now);
void uc_release(Engine& e, QueuePair& q);

inline void Engine::settle() {
  if (unsettled != kSettled) {  // UC, UD: what the last transmit sent has left by now
    QueuePair& q = qp(unsettled);
    uc_settle(*this);
    reconcile(q);
  }
  if (overrun) fail_overrun(*this);
}

}  // namespace weft
