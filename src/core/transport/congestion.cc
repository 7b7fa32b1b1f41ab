#include "core/transport/congestion.h"

#include <algorithm>

#include "core/transport/rc/control.h"
#include "core/transport/rc/requester.h"
#include "core/wire/codec.h"

namespace weft {
namespace {

// Beside BTH and what follows it: Ethernet, IPv4, UDP, ICRC. Rates are those of links.
constexpr std::uint32_t kFrameOverhead = 14 + 20 + 8 + 4;

// The pacer wakes at whole nanoseconds, as a NIC's timer wheel has slots. In virtual time this keeps a
// queue pair that is clocked by its ACKs from waking at the very picosecond at which the next one comes.
constexpr Duration kSlot = nanoseconds(1);
Time in_slot(Time t) { return Time{(t.ps + kSlot.ps - 1) / kSlot.ps * kSlot.ps}; }

const Controller& row(const QueuePair& q) { return *controllers()[q.controller_row]; }

void apply(QueuePair& q, Time now) {
  q.window = std::max(row(q).permit(q.controller, now).window_packets, 1U);
}

// The oldest packet is not on its way: it, too, waits for its turn.
bool oldest_waits(const SendStream& s) {
  if (!s.outstanding()) return false;
  return s.nxt == s.una || (s.recovering() && s.widen(s.rtx) <= s.una && s.widen(s.lost) > s.una);
}

void put_forward(Sender& s, Duration by) {
  s.timer = s.timer.after(by);
  s.progress = s.progress.after(by);
}

}  // namespace

void congestion_start(Engine& e, QueuePair& q, std::uint8_t wanted, Time now) {
  q.controller_row = wanted == kDefaultController ? e.config.controller : wanted;
  q.next_send = Time{};
  q.window = UINT32_MAX;
  row(q).start(q.controller, {e.config.line_rate, e.config.bdp_cap, now});
  if (controlled(q)) apply(q, now);
}

void congestion_acked(Engine&, QueuePair& q, std::uint64_t packets, Duration rtt, Time now) {
  AckSample a;
  a.now = now;
  a.packets = static_cast<std::uint32_t>(std::min<std::uint64_t>(packets, UINT32_MAX));
  a.rtt = rtt;
  row(q).on_ack(q.controller, a);
  apply(q, now);
}

void congestion_lost(Engine&, QueuePair& q, Time now, bool timeout) {
  row(q).on_loss(q.controller, {now, timeout});
  apply(q, now);
}

void congestion_timed_out(Engine& e, QueuePair& q, Sender& s, Time now) {
  congestion_lost(e, q, now, true);
  if (e.pacing.contains(e.index_of(q))) put_forward(s, in_slot(q.next_send) - now);
}

std::uint64_t congestion_window(const Engine&, const QueuePair& q, const SendStream& other,
                                std::uint64_t cap) {
  if (q.window == UINT32_MAX) return cap;
  const bool requests = &other == &q.requests_out;
  // In roce the other stream's numbers are READ responses' as well, or are not acknowledged at all.
  const bool counts = (requests ? q.tx_dialect() : q.rx_dialect()).response_stream;
  const std::uint64_t taken = counts ? other.in_flight() : 0;
  return std::min<std::uint64_t>(cap, q.window > taken ? q.window - taken : 1);
}

Budget congestion_budget(Engine& e, QueuePair& q, Time now, Budget budget) {
  const Permit p = row(q).permit(q.controller, now);
  q.window = std::max(p.window_packets, 1U);
  if (p.rate.bps == 0) return budget;
  // One packet always goes.
  const auto quantum = static_cast<std::uint64_t>(e.config.pacing_quantum.ps);
  const std::uint64_t bytes = p.rate.bps / 8000 * (quantum / 1000) / 1'000'000;
  budget.bytes = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes, 1, budget.bytes));
  return budget;
}

void congestion_sent(Engine& e, QueuePair& q, Time now, wire::Burst& burst) {
  const Controller& c = row(q);
  if (!burst.empty()) {
    burst.ecn_capable = c.wants_marks;
    std::uint32_t bytes = 0;
    for (const wire::TxPacket& p : burst.packets) {
      bytes += kFrameOverhead + wire::data_packet_bytes(p.header, p.payload);
    }
    c.on_sent(q.controller, {now, bytes});
    const Permit p = c.permit(q.controller, now);
    q.window = std::max(p.window_packets, 1U);
    if (p.rate.bps != 0) {
      // Who was kept from sending, by its NIC or by having nothing to send, makes up for one quantum at most.
      q.next_send = std::max(q.next_send, now - std::max(e.config.pacing_quantum, kSlot));
      q.next_send = q.next_send.after(p.rate.time_for(Bytes{bytes}));
      if (q.type == QpType::kRc) rc_ask_in_time(e, q, burst.packets.size(), q.next_send);
    }
  }
  if (q.next_send > now && e.can_send(q)) {
    q.set(kQueued);
    pacing_wait(e, q, now);
  }
}

void pacing_wait(Engine& e, QueuePair& q, Time now) {
  e.counters.add(Counter::paced);
  const Time until = in_slot(q.next_send);
  e.pacing.at_latest(e.index_of(q), until);
  const Duration wait = until - now;
  for (Sender* s : {&q.requests_out, &q.served}) {
    if (oldest_waits(*s)) put_forward(*s, wait);
  }
}

void pacing_release(Engine& e) {
  const std::uint32_t index = e.pacing.top();
  e.pacing.remove(index);
  e.ready_queue.push(index,
                     e.qp(index).level & kServiceLevel);  // pick looks whether it still has anything to send
}

void pacing_leave(Engine& e, QueuePair& q) {
  const std::uint32_t index = e.index_of(q);
  if (!e.pacing.contains(index)) return;
  e.pacing.remove(index);
  q.clear(kQueued);
}

void congestion_experienced(Engine& e, QueuePair& q, Time now) {
  e.counters.add(Counter::rx_marked);
  if (!e.config.send_cnp) return;
  ColdQueuePair& c = e.cold(q);
  if (now < c.next_cnp) return;
  c.next_cnp = now.after(row(q).cnp_interval);
  rc_push_cnp(e, q);
}

void congestion_echoed(Engine& e, QueuePair& q, Time now) {
  e.counters.add(Counter::rx_echo);
  if (!controlled(q)) return;
  AckSample a;
  a.now = now;
  a.congestion_echo = true;
  row(q).on_ack(q.controller, a);
  apply(q, now);
}

void congestion_notified(Engine& e, QueuePair& q, Time now) {
  e.counters.add(Counter::rx_cnp);
  if (!controlled(q)) return;
  row(q).on_cnp(q.controller, now);
  apply(q, now);
}

}  // namespace weft
