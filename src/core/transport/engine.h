// The inside of a Device: its queues, and the few operations that all protocol files share. The protocol
// itself is in rc/: one file per direction, each a set of functions over (Engine, QueuePair), declared in the
// header of the same name.
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
//   rc/attributes.cc      a queue pair's ladder of states, and what each step fixes
//   uc/requester.cc       messages out that nobody acknowledges
//   uc/responder.h        and in: what arrives whole                                   (template: Sink)
//   ud/requester.cc       datagrams: their destinations; sent by uc/requester.cc
//   ud/responder.h        datagrams in                                                 (template: Sink)
//
//   device_timers.cc      what is due, of every service
//   shared_receive.cc     receives that several queue pairs draw from
//
// Where a comment begins with `irn:` it is about every dialect with a response stream.
//
//   tables.h              what a Device has, row by row: keys, queues, paths, queue pairs
//   path_line.cc          which queue pairs wait for a path's credit, and which is called
//   sender.h              what is in flight of either half, its recovery, clock and path credit
//   receiver.h            what has arrived of either half, and what an acknowledgement says of it
//   congestion.h          between queue pairs and controllers: samples, window, pacing, marks and CNPs
#pragma once
#include <vector>

#include "core/base/check.h"
#include "core/transport/rc/control_entry.h"
#include "core/transport/ring.h"
#include "core/transport/sched/deadlines.h"
#include "core/transport/sched/presumed.h"
#include "core/transport/sched/ready_queue.h"
#include "core/transport/tables.h"
#include "core/transport/terms.h"
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

struct Engine : Tables {
  explicit Engine(const DeviceConfig& c);

  // --- queues ---
  ReadyQueue ready_queue;
  Deadlines deadlines;
  Deadlines pacing;            // queue pairs that wait for their rate; each is marked kQueued
  std::uint32_t waiting = 0;   // queue pairs in the lines of all paths
  Ring<ControlEntry> control;  // ACKs, NAKs and CNPs
  Ring<DeviceEvent> events;
  PresumedFlights presumed;
  // The UC or UD queue pair whose last burst has not been settled yet (uc/requester.cc).
  static constexpr std::uint32_t kSettled = UINT32_MAX;
  std::uint32_t unsettled = kSettled;
  // A completion queue overran in mid-walk over a ring; the queue pairs that report to it fail afterwards.
  bool overrun = false;

  // --- scratch of the current burst ---
  std::vector<wire::TxPacket> burst_packets;
  std::vector<wire::Segment> burst_segments;

  // --- the halves of a queue pair ---
  LossContext loss() { return {pool, counters, config.nack_threshold, config.rto == Rto::kFloored}; }
  // The two senders of a queue pair.
  Sending requests(QueuePair& q) { return requests(q, cold(q)); }
  Sending requests(QueuePair& q, ColdQueuePair& c) {
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
  static Receiving received_requests(QueuePair& q) {
    return {q.requests, q.rx_mode, wire::kAcknowledge, kAckQueued};
  }
  Receiving received_responses(QueuePair& q) {
    return {cold(q).responses, q.tx_mode, wire::kReadAcknowledge, kReadAckQueued};
  }

  // --- shared operations ---
  // Inline, so that the entry is written where it stays.
  void complete(CqId cq, const Completion& c, bool solicited) {
    const CompletionQueue::Push pushed = cqs[cq.v]->push(c, solicited);
    if (pushed != CompletionQueue::Push::kQuiet) tell_of(pushed, cq, c.qpn);
  }
  void tell_of(CompletionQueue::Push pushed, CqId cq, Qpn qpn);
  void raise(const DeviceEvent& event);
  // What earlier calls left to the next one: what the last transmit of UC or UD sent has left by now.
  void settle() {
    if (unsettled != kSettled || overrun) settle_now();
  }
  void settle_now();
  // Its first packet came before its user knew that the peer is there.
  void established(QueuePair& q) {
    if (q.state != QpState::kRtr || (q.rx_flags & kEstablished) != 0) return;
    q.rx_flags |= kEstablished;
    raise({DeviceEventKind::kCommEstablished, {}, q.qpn});
  }
  void arm(QueuePair& q, Time at) { deadlines.at_latest(index_of(q), at); }
  // Nothing is awaited any more: its entry, which would look at a queue pair long out of the caches, is void.
  void disarm_if_quiet(const QueuePair& q) {
    if (!q.requests_out.outstanding() && q.reads_outstanding == 0 && !answers_in_flight(q) &&
        !q.has(kRnrWaiting))
      deadlines.forget(index_of(q));
  }
  // Answers of ours that are not acknowledged. Most have none, and then their cache line is not looked at.
  static bool answers_in_flight(const QueuePair& q) {
    return (q.rx_flags & kAnswers) != 0 && q.served.outstanding();
  }
  // Every call into the Device concerns one queue pair, and ends here. Whatever the call changed of work,
  // window and credit: the queue pair stands in the ready queue if it can send, and the first of its path's
  // line has too little credit, or is called. The protocol files
  // wake nobody, but for presumed flights that end and queue pairs that leave their path (`leave_path`).
  void reconcile(QueuePair& q) {
    if (waiting != 0 && q.path.v < paths.size()) wake_path(path_of(q));  // it may not be connected yet
    stand_ready(q);
  }
  // The same for a call that took nothing but SENDs and WRITEs: our own requests wait for what they waited
  // for, and their half, which is in another cache line, is not looked at.
  void reconcile_brought(QueuePair& q) {
    if (waiting != 0 && q.path.v < paths.size()) wake_path(path_of(q));
    if (!q.has(kQueued) && owes_responses(q)) stand_ready(q);
  }
  // The same for one request more: it frees nothing that another may wait for, but if its queue pair stands
  // in the line, that may want less now.
  void reconcile_posted(QueuePair& q) {
    if (q.has(kWaitingPath)) wake_path(path_of(q));
    if (q.has(kQueued) || !can_send_now(q)) return;
    q.set(kQueued);
    ready_queue.push(index_of(q), q.level & kServiceLevel);
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
    if (!q.rx_dialect().response_stream) return q.responses_owed > 0;
    return (q.rx_flags & kAnswers) != 0 && (q.served.recovering() || q.served.nxt < cold(q).response_next);
  }
  bool has_work(const QueuePair& q) const {
    return q.sq_send != q.sq_tail || (q.rx_flags & kResendRequest) != 0 || q.requests_out.recovering() ||
           q.requests_out.probe == Probe::kDue || owes_responses(q);
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
  // Its turn is over, or it will not have one: if it was called for path credit, the next in the line is.
  void end_turn(const QueuePair& q) {
    Path& path = path_of(q);
    if (path.called == index_of(q)) path.called = UINT32_MAX;
    wake_path(path);
  }
  // It wants nothing of its path any more, or will want something of another.
  void leave_path(QueuePair& q);
  void check_invariants() const;
  void check_nobody_forgotten(QueuePair& q);
};

}  // namespace weft
