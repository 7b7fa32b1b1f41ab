// What leaves the detailed NIC: turns of send queues, their packets, acknowledgements.
#include <algorithm>
#include <utility>

#include "core/transport/by_queue_pair.h"
#include "sim/nic/detailed_nic.h"
#include "sim/nic/operation.h"

namespace weft::sim {

// --- whose turn it is (SRNIC §4.3.1) ---
//
//   ready   The Device's ready queue is the schedule queue: a queue pair stands in it if it has something to
//           send and credit for it.
//   blind   The NIC goes round all queue pairs that have something to send. What the Device picks has credit;
//           a turn of any other has its context and its WQEs fetched, sends nothing, and goes to the end of
//           the line.

Qpn DetailedNic::next_turn() {
  if (!blind()) return device().pick(now());
  note_credit();
  if (active_.empty()) return kNoQpn;
  const Qpn qpn = active_.front();
  active_.pop_front();
  return qpn;
}

// Blind: takes over what the Device's ready queue holds, so that no queue pair stands in both lines.
void DetailedNic::note_credit() {
  for (Qpn qpn = device().pick(now()); qpn != kNoQpn; qpn = device().pick(now())) {
    state_of(qpn).picked = true;
    line_up(qpn);
  }
}

// Blind: it has a turn of its own under way, or waits for one.
void DetailedNic::line_up(Qpn qpn) {
  QueuePairState& q = state_of(qpn);
  if (q.in_line) return;
  q.in_line = true;
  active_.push_back(qpn);
}

// Blind: it goes round for as long as it has something to send, with credit or without.
void DetailedNic::line_up_if_active(Qpn qpn) {
  const QueuePair* q = device().engine().find(qpn);
  if (q != nullptr && q->receives() && device().engine().has_work(*q)) line_up(qpn);
}

bool DetailedNic::has_credit(Qpn qpn) {
  if (!blind()) return true;  // the Device picked it
  note_credit();
  return std::exchange(state_of(qpn).picked, false);
}

// Several turns are under way at once, or each would cost a round trip of PCIe.
void DetailedNic::pump_turns() {
  while (turns_ < design_.scheduler.turns && has_room()) {
    const Qpn qpn = next_turn();
    if (qpn == kNoQpn) return;
    ++turns_;
    ++counts_.turns;
    counts_.turns_inside.enter(now());
    const std::uint32_t j = begin(Step::kTurn, qpn);
    jobs_[j].ready = scheduler_.pass(now());
    counts_.stalls.scheduler += jobs_[j].ready - now();
    if (contexts_->queue_address(qpn, now())) {
      jobs_[j].early = true;
      fetch_wqes(j);
    }
    request(j, StoreChannel::kDescriptor);
  }
}

// READ responses need no WQE; a repair needs its own again.
void DetailedNic::fetch_wqes(std::uint32_t j) {
  Job& job = jobs_[j];
  QueuePairState& q = state_of(job.qpn);
  const SendSchedulerDesign& s = design_.scheduler;
  std::uint32_t wanted = std::min(q.unsent, s.wqes);
  if (wanted == 0 && device().next_is_retransmission(job.qpn)) wanted = 1;
  job.count = std::max(wanted, 1U);
  Time here = std::max(now(), job.ready);
  if (wanted > q.cached) {
    // A queue pair's cache is filled as far as it goes; without one, what the turn does not use is dropped.
    const std::uint32_t fetched =
        design_.wqe.send_cache != 0 ? std::min(q.unsent, design_.wqe.send_cache) : wanted;
    const std::uint32_t more = std::max(fetched, wanted) - q.cached;
    counts_.wqes_fetched += more;
    q.cached += more;
    here = pcie_.read(now(), Dma::kSendWqe, std::uint64_t{more} * design_.wqe.send_bytes, here);
  }
  later(here, j);
}

void DetailedNic::take_turn(std::uint32_t j) {
  Job& job = jobs_[j];
  if (!job.fetched) {
    job.fetched = true;
    counts_.stalls.send_wqe += now() - job.since;
    job.since = now();
  }
  if (!job.granted) return;  // early WQEs: the context is still on its way
  if (!has_room()) {
    blocked_.push_back(j);
    return;
  }
  counts_.stalls.send_buffer += now() - job.since;
  const Qpn qpn = job.qpn;
  const auto room = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(design_.buffers.transmit.n - transmit_bytes_, 4096 + 128));
  const std::uint32_t bytes = std::min(static_cast<std::uint32_t>(design_.scheduler.burst.n), room);
  const bool reliable = is_reliable(qpn);
  // The messages of UC and UD are counted by their packets.
  std::uint32_t packets = device().config().burst_packets;
  if (!reliable) packets = std::min(packets, job.count);
  wire::Burst burst;
  if (has_credit(qpn)) burst = device().transmit(qpn, now(), {packets, bytes, job.count});
  send_burst(burst);
  QueuePairState& q = state_of(qpn);
  if (design_.wqe.send_cache == 0) q.cached = 0;
  counts_.turns_inside.leave(jobs_[j].entered, now());
  end(j);
  --turns_;
  send_control(qpn);  // roce: an ACK waited for the last of older READ responses
  // A request may have failed. What nobody acknowledges is complete when its bytes have been read.
  complete_later(reliable ? now() : std::max(now(), q.data_order));
  if (blind()) {
    q.in_line = false;
    line_up_if_active(qpn);
  }
  give_back(qpn);
}

// The burst is the Device's until the next call into it.
void DetailedNic::send_burst(const wire::Burst& burst) {
  if (burst.empty()) ++counts_.empty_turns;
  std::uint32_t used = 0;
  bool resumes = false;
  for (const wire::TxPacket& p : burst.packets) {
    const RcOpcode& op = operation(p.header.opcode);
    const std::uint32_t j = begin(Step::kPayload, burst.qpn);
    Job& job = jobs_[j];
    job.transit.packet = endpoint_.make(burst, p);
    const Packet& made = endpoint_.fabric().packets.at(job.transit.packet);
    job.transit.bytes = static_cast<std::uint16_t>(made.frame);
    job.count = p.payload;
    transmit_bytes_ += made.frame;
    counts_.packets_inside.enter(now());
    ++counts_.packets_out;
    counts_.frame_bytes += made.frame;
    counts_.payload_sent += p.payload;
    if (op.kind != RcKind::kResponse) {
      ++state_of(burst.qpn).leaving;
      resumes = !ends_request(op);
      if (!resumes) ++used;
      QueuePairState& q = state_of(burst.qpn);
      if (!resumes && !p.retransmission && q.unsent != 0) {
        --q.unsent;
        if (q.cached != 0) --q.cached;
      }
    }
    Time ready = now();
    const bool in_wqe = p.payload <= design_.wqe.inline_bytes && ends_request(op);
    if (in_wqe) counts_.payload_inline += p.payload;
    if (p.payload != 0 && !in_wqe) {
      Time known = now();
      for (const wire::Segment& s : burst.segments.subspan(p.first_segment, p.segment_count))
        known = std::max(known, translated(s.region, s.offset, s.length));
      ready = pcie_.read(now(), Dma::kPayloadRead, p.payload, known);
    }
    // Data of one queue pair leaves in the order in which it was decided.
    Time& order = state_of(burst.qpn).data_order;
    order = std::max(order, ready);
    later(order, j);
  }
  counts_.wqes_used += used + (resumes ? 1U : 0U);
}

void DetailedNic::payload_here(std::uint32_t j) {
  Job& job = jobs_[j];
  counts_.stalls.payload += now() - job.since;
  job.since = now();
  job.step = Step::kMac;
  later(transmit_.pass(now(), width(job.transit.bytes)), j);
}

void DetailedNic::at_mac(std::uint32_t j) {
  Job& job = jobs_[j];
  counts_.stalls.transmit += now() - job.since;
  job.since = now();
  if (endpoint_.fabric().packets.at(job.transit.packet).control) {
    endpoint_.launch(job.transit.packet);
    counts_.packets_inside.leave(job.entered, now());
    return end(j);
  }
  mac_.push_back(j);
  pump_mac();
}

// Data waits here and not in the link's queue, so that what PFC stops stays in the NIC.
void DetailedNic::pump_mac() {
  bool sent = false;
  while (!mac_.empty() && endpoint_.line_free()) {
    const std::uint32_t j = mac_.front();
    mac_.pop_front();
    counts_.stalls.mac += now() - jobs_[j].since;
    counts_.packets_inside.leave(jobs_[j].entered, now());
    transmit_bytes_ -= jobs_[j].transit.bytes;
    left(j);
    sent = true;
  }
  if (!mac_.empty() && !endpoint_.stopped()) endpoint_.egress().await_idle();
  if (!sent) return;
  while (!blocked_.empty() && has_room()) {
    const std::uint32_t j = blocked_.front();
    blocked_.pop_front();
    take_turn(j);
  }
  pump_turns();
}

void DetailedNic::left(std::uint32_t j) {
  const Qpn qpn = jobs_[j].qpn;
  const PacketRef packet = jobs_[j].transit.packet;
  const bool request =
      rc_opcode(endpoint_.fabric().packets.at(packet).rx.header.opcode).kind != RcKind::kResponse;
  endpoint_.launch(packet);
  end(j);
  if (!request) return;
  --state_of(qpn).leaving;
  note_in_flight(qpn);
}

void DetailedNic::on_line_free(Time) { pump_mac(); }

// Everything that this queue pair owes, whatever others owe before it.
void DetailedNic::send_control(Qpn qpn) {
  for (;;) {
    const wire::Burst burst = poll_control(device(), qpn, now());
    if (burst.empty()) return;
    for (const wire::TxPacket& p : burst.packets) {
      const std::uint32_t j = begin(Step::kMac, burst.qpn);
      jobs_[j].transit.packet = endpoint_.make(burst, p);
      jobs_[j].transit.bytes =
          static_cast<std::uint16_t>(endpoint_.fabric().packets.at(jobs_[j].transit.packet).frame);
      counts_.packets_inside.enter(now());
      ++counts_.control_out;
      later(transmit_.pass(now(), width(jobs_[j].transit.bytes)), j);
    }
  }
}

}  // namespace weft::sim
