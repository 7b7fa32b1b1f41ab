// What arrives at the detailed NIC, and its timers.
#include <algorithm>

#include "core/transport/by_queue_pair.h"
#include "sim/nic/detailed_nic.h"
#include "sim/nic/operation.h"

namespace weft::sim {
namespace {

// The requester takes answers, the responder requests (csRNA §4.4).
StoreChannel channel_of(std::uint8_t opcode) {
  const RcKind kind = rc_opcode(opcode).kind;
  const bool answer = kind == RcKind::kResponse || kind == RcKind::kAck || kind == RcKind::kReadAck;
  return answer || opcode == wire::kCnp ? StoreChannel::kRequester : StoreChannel::kResponder;
}

}  // namespace

void DetailedNic::arrive(const Transit& t, std::uint32_t /*link*/) {
  if (t.is_pfc()) [[unlikely]] {
    endpoint_.egress().pause(t.traffic_class, t.kind == Transit::Kind::kPause);
    pump_mac();
    return;
  }
  if (endpoint_.ends_service(t)) return;
  if (receive_bytes_ + t.bytes > design_.buffers.receive.n) return endpoint_.refuse(t);
  receive_bytes_ += t.bytes;
  if (pause_class_ != kNoClass) pause();
  counts_.arrivals_inside.enter(now());
  ++counts_.packets_in;
  const wire::Header& h = endpoint_.fabric().packets.at(t.packet).rx.header;
  later(receive_.pass(now(), width(t.bytes)), begin(Step::kReceived, h.dest_qp, t));
}

// Half full: stop. A quarter: go on.
void DetailedNic::pause() {
  const std::uint64_t level = design_.buffers.receive.n / (pausing_ ? 4 : 2);
  if (pausing_ == (receive_bytes_ > level)) return;
  pausing_ = !pausing_;
  endpoint_.egress().send_pfc(pause_class_, pausing_);
}

void DetailedNic::received(std::uint32_t j) {
  Job& job = jobs_[j];
  counts_.stalls.receive += now() - job.since;
  const Packet& p = endpoint_.fabric().packets.at(job.transit.packet);
  if (p.corrupt) return deliver(j);  // its checksum is wrong: it is nobody's
  if (!in_window(j)) return request(j, channel_of(p.rx.header.opcode));
  job.windowed = true;
  process(j);
}

// Of a queue pair that is gone, too: it has nothing to say.
bool DetailedNic::is_reliable(Qpn qpn) {
  const QueuePair* q = device().engine().find(qpn);
  return q == nullptr || q->type == QpType::kRc;
}

// What has been sent and not been acknowledged, without what is still on its way out. Datagrams are not
// answered.
void DetailedNic::note_in_flight(Qpn qpn) {
  const QueuePair* q = device().engine().find(qpn);
  const auto sent = q == nullptr || q->type != QpType::kRc
                        ? 0U
                        : static_cast<std::uint32_t>(q->requests_out.max - q->requests_out.una);
  window_.in_flight(row_of(qpn), sent - std::min(sent, state_of(qpn).leaving));
}

// What waits ahead of a gap, each packet in the place of a full one.
void DetailedNic::note_ahead(Qpn qpn) {
  if (!reorder_.there()) return;
  const Engine& e = device().engine();
  const QueuePair* q = e.find(qpn);
  const std::uint32_t packets =
      q == nullptr ? 0U : std::uint32_t{q->requests.held} + e.cold(*q).responses.held;
  reorder_.waiting(row_of(qpn), packets == 0 ? 0 : std::uint64_t{packets} * q->mtu);
}

// A packet ahead of a gap needs room in the reordering buffers; every other goes to memory (SRNIC §3.2.2).
bool DetailedNic::has_room_ahead(const wire::RxPacket& packet) {
  const Engine& e = device().engine();
  const QueuePair* q = reorder_.there() ? e.find(packet.header.dest_qp) : nullptr;
  if (q == nullptr) return true;
  const RcKind kind = rc_opcode(packet.header.opcode).kind;
  if (kind == RcKind::kUnknown || kind == RcKind::kAck || kind == RcKind::kReadAck) return true;
  const bool response = kind == RcKind::kResponse;
  if (response && !q->tx_dialect().response_stream) return true;
  const Seq expected = response ? e.cold(*q).responses.expected : q->requests.expected;
  return expand(packet.header.psn, expected) <= expected ||
         reorder_.has_room(row_of(packet.header.dest_qp), q->mtu);
}

// ACKs and responses of what is in the send window; what is the slow path's needs the context.
bool DetailedNic::in_window(std::uint32_t j) {
  const Job& job = jobs_[j];
  const RcKind kind = rc_opcode(endpoint_.fabric().packets.at(job.transit.packet).rx.header.opcode).kind;
  const bool answer = kind == RcKind::kAck || kind == RcKind::kResponse;
  return answer && window_.has(row_of(job.qpn)) && !is_slow(j);
}

// The context is granted, or need not be.
void DetailedNic::process(std::uint32_t j) {
  Job& job = jobs_[j];
  if (job.slow) return deliver(j);  // it has its receive, and its place in line
  job.since = now();
  const Packet& p = endpoint_.fabric().packets.at(job.transit.packet);
  Time at = now();
  if (takes_receive(operation(p.rx.header.opcode))) {
    at = receive_here(state_of(job.qpn), job.qpn);
  }
  if (p.rx.header.syndrome == wire::kSyndromeNakSequence &&
      channel_of(p.rx.header.opcode) == StoreChannel::kRequester)
    at = at + design_.recovery.nak_delay;
  QueuePairState& q = state_of(job.qpn);
  at = q.in_order = std::max(q.in_order, at);
  job.step = Step::kDeliver;
  at == now() ? deliver(j) : later(at, j);
}

// When the receive that a message takes is on the chip: a queue pair's own cache is filled by one fetch, the
// shared one (SRNIC §4.3.2) holds the next receive of the queue pairs that were used last.
Time DetailedNic::receive_here(QueuePairState& q, Qpn qpn) {
  const WqeDesign& w = design_.wqe;
  const bool shared = receive_cache_ != nullptr && receive_cache_->look_up(qpn.v);
  if (q.receives != 0 || shared) {
    if (q.receives != 0) --q.receives;
    ++counts_.receives_cached;
    if (!shared) return now();
    // The next one is fetched in its place, and nobody waits for it.
    ++counts_.receives_fetched;
    pcie_.read(now(), Dma::kReceiveWqe, w.receive_bytes);
    return now();
  }
  const std::uint32_t n = std::max(w.receive_cache, 1U) + (receive_cache_ != nullptr ? 1U : 0U);
  counts_.receives_fetched += n;
  if (w.receive_cache != 0) q.receives = w.receive_cache - 1;
  return pcie_.read(now(), Dma::kReceiveWqe, std::uint64_t{n} * w.receive_bytes);
}

void DetailedNic::deliver(std::uint32_t j) {
  if (jobs_[j].absorbed) {
    const Qpn qpn = jobs_[j].qpn;
    end(j);
    return give_back(qpn);
  }
  if (jobs_[j].granted && !jobs_[j].slow && is_slow(j)) return to_software(j);
  const Job job = jobs_[j];
  counts_.stalls.receive_wqe += now() - job.since;
  SlowPackets& q = slow_packets(j);
  if (job.slow) leave_slow(q, j);
  end(j);
  to_device(job);
  if (!job.granted && !job.windowed) return;
  // Software has seen everything up to here. With the range that the NIC noted meanwhile, what follows
  // without a gap does not wait for software to see it, too (SRNIC §4.4.2, Figure 8).
  while (job.slow && design_.recovery.range_exit && q.first != kNone) {
    const std::uint32_t next = q.first;
    if (!device().continues(endpoint_.fabric().packets.at(jobs_[next].transit.packet).rx)) break;
    leave_slow(q, next);
    jobs_[next].absorbed = true;
    to_device(jobs_[next]);
  }
  after_device(job.qpn, written_, job.granted);
}

void DetailedNic::to_device(const Job& job) {
  const std::uint64_t before = endpoint_.counters().bytes_placed;
  const Transit t = job.transit;
  const Qpn qpn = job.qpn;
  const Time entered = job.entered;
  const Packet& packet = endpoint_.fabric().packets.at(t.packet);
  if (packet.corrupt || has_room_ahead(packet.rx)) {
    endpoint_.deliver(t);
    note_ahead(qpn);
  } else {
    ++counts_.reorder_overflows;
    endpoint_.refuse(t);
  }
  receive_bytes_ -= t.bytes;
  if (pausing_) pause();
  counts_.arrivals_inside.leave(entered, now());
  const std::uint64_t placed = endpoint_.counters().bytes_placed - before;
  if (placed == 0) return;
  // Where it goes is translated before it is written: of a WRITE by the address that it names.
  const Placement& p = endpoint_.last_placement();
  const Time known = translated(p.region, p.offset, p.length);
  written_ = pcie_.write(now(), Dma::kPayloadWrite, placed, known) - pcie_.design().one_way();
}

void DetailedNic::leave_slow(SlowPackets& q, std::uint32_t j) {
  CHECK(q.first == j);
  q.first = jobs_[j].next;
  if (q.first == kNone) q.last = kNone;
  jobs_[j].next = kNone;
}

DetailedNic::SlowPackets& DetailedNic::slow_packets(std::uint32_t j) {
  const Packet& p = endpoint_.fabric().packets.at(jobs_[j].transit.packet);
  const bool answer = channel_of(p.rx.header.opcode) == StoreChannel::kRequester;
  return state_of(jobs_[j].qpn).slow[answer ? 1 : 0];
}

// Behind a gap everything goes to software, until it has seen that nothing is missing.
bool DetailedNic::is_slow(std::uint32_t j) {
  if (design_.recovery.event_bytes == 0) return false;
  return slow_packets(j).first != kNone ||
         !device().continues(endpoint_.fabric().packets.at(jobs_[j].transit.packet).rx);
}

// The Device was called for this queue pair. Its context is granted, unless the send window made do.
void DetailedNic::after_device(Qpn qpn, Time earliest, bool granted) {
  note_in_flight(qpn);
  note_ahead(qpn);
  send_control(qpn);
  complete_later(earliest);
  if (granted) give_back(qpn);
  pump_turns();
  watch_timers();
}

// --- the slow path (SRNIC §4.4.2) ---

// Only what happened crosses PCIe, not the packet. Software takes one event after the other.
void DetailedNic::to_software(std::uint32_t j) {
  Job& job = jobs_[j];
  ++counts_.events;
  job.slow = true;
  job.next = kNone;
  job.step = Step::kSoftware;
  SlowPackets& q = slow_packets(j);
  (q.last == kNone ? q.first : jobs_[q.last].next) = j;
  q.last = j;
  job.since = now();
  const Time told = pcie_.write(now(), Dma::kEvent, design_.recovery.event_bytes);
  const Time answered = software_.pass(told);
  later(pcie_.doorbell(now(), Dma::kEvent, design_.recovery.event_bytes, answered), j);
  give_back(job.qpn);
}

void DetailedNic::from_software(std::uint32_t j) {
  Job& job = jobs_[j];
  if (job.absorbed) return end(j);
  counts_.stalls.software += now() - job.since;
  job.step = Step::kReceived;
  job.granted = false;
  request(j, channel_of(endpoint_.fabric().packets.at(job.transit.packet).rx.header.opcode));
}

// --- timers ---

// Every queue pair whose time-out is due asks for its context, and none waits for another's.
void DetailedNic::watch_timers() {
  for (Qpn qpn = pick_timer(device(), now()); qpn != kNoQpn; qpn = pick_timer(device(), now())) {
    QueuePairState& q = state_of(qpn);
    if (q.timer_asked) continue;  // what is due then fires then
    q.timer_asked = true;
    request(begin(Step::kTimer, qpn), StoreChannel::kRequester);
  }
  const Time due = device().next_deadline();
  if (due != kNever) ask(due);
}

void DetailedNic::timer(std::uint32_t j) {
  const Qpn qpn = jobs_[j].qpn;
  end(j);
  state_of(qpn).timer_asked = false;
  fire_timer(device(), qpn, now());
  after_device(qpn, now(), true);
}

}  // namespace weft::sim
