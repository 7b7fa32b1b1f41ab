// Device::on_packets: every received packet's first checks, then on to the responder or requester
// (docs/protocol/reliable.md#checks-of-the-responder, check 0). What fails is dropped in silence, counted.
#pragma once
#include <algorithm>

#include "core/transport/congestion.h"
#include "core/transport/device.h"
#include "core/transport/engine.h"
#include "core/transport/rc/acknowledge.h"
#include "core/transport/rc/failure.h"
#include "core/transport/rc/opcodes.h"
#include "core/transport/rc/responder.h"
#include "core/transport/rc/response_in.h"
#include "core/transport/uc/responder.h"
#include "core/transport/ud/responder.h"

namespace weft {

template <Sink S>
void receive_packet(Engine& e, QueuePair& q, Time now, std::uint32_t index, const wire::RxPacket& p,
                    const RcOpcode& op, S& sink) {
  const wire::Header& h = p.header;
  if (!q.receives()) return e.counters.add(Counter::drop_state);
  if ((h.pkey & 0x7FFFU) != 0x7FFFU) return e.counters.add(Counter::drop_pkey);
  if (q.type == QpType::kUd) return ud_on_packet(e, q, index, p, sink);
  if (e.path_of(q).attr.peer != p.source) return e.counters.add(Counter::drop_source);
  if (q.type == QpType::kUc) return uc_on_packet(e, q, index, p, sink);
  const auto mode = static_cast<std::uint8_t>(h.mode);
  const bool congestion = (p.tos & wire::kEcnMask) == wire::kEcnCe;
  switch (op.kind) {
    case RcKind::kSend:
    case RcKind::kWrite:
    case RcKind::kRead:
    case RcKind::kAtomic: {
      const bool pins = q.rx_mode != mode || mode == kUnpinned;
      if (pins) {
        if (q.rx_mode != kUnpinned || !mode_known(h.mode)) return e.counters.add(Counter::drop_mode);
        // The requester's first packet fixes the half-connection's mode (docs/protocol/modes.md#pinning).
        if (expand(h.psn, q.requests.expected) < q.requests.expected)
          return e.counters.add(Counter::drop_stale);
        q.rx_mode = mode;
      }
      e.established(q);
      if ((q.rx_flags & kReceiveStopped) != 0) return e.counters.add(Counter::drop_state);
      if (congestion) congestion_experienced(e, q, now);
      const Seq expected = q.requests.expected;
      rc_on_request(e, q, index, p, op, congestion, sink);
      // One that was not accepted fixes nothing: it may be a former peer's.
      if (pins && q.requests.expected == expected && q.requests.held == 0) q.rx_mode = kUnpinned;
      break;
    }
    case RcKind::kResponse:
      if (mode != q.tx_mode || !q.sends()) return e.counters.add(Counter::drop_mode);
      if (congestion) congestion_experienced(e, q, now);
      rc_on_response(e, q, index, p, op, congestion, now, sink);
      break;
    case RcKind::kAck:
      if (mode != q.tx_mode) return e.counters.add(Counter::drop_mode);
      rc_on_acknowledge(e, q, h, now);
      break;
    case RcKind::kReadAck:
      if (mode != q.rx_mode || !q.rx_dialect().response_stream) return e.counters.add(Counter::drop_mode);
      rc_on_read_acknowledge(e, q, h, now);
      break;
    case RcKind::kUnknown:
      if (h.opcode == wire::kCnp) return congestion_notified(e, q, now);
      e.counters.add(Counter::drop_opcode);
      break;
  }
}

template <Sink S>
void Device::on_packets(Time now, std::span<const wire::RxPacket> packets, S& sink) {
  if (packets.empty()) return;
  Engine& e = *engine_;
  e.counters.add(Counter::rx_packets, packets.size());
  // Many misses at a time: how far ahead of the packet that is being received its successors' are asked for.
  constexpr std::size_t kAhead = 16;
  const std::size_t ahead = std::min(kAhead, packets.size() - 1);
  // The queue pair that has received and is not reconciled yet, and whether it was brought things only.
  QueuePair* concerned = nullptr;
  bool only_brought = true;
  const auto reconcile = [&] {
    if (concerned == nullptr) return;
    only_brought ? e.reconcile_brought(*concerned) : e.reconcile(*concerned);
  };
  for (std::size_t i = 0; i < packets.size() + ahead; ++i) {
    if (i < packets.size()) {
      if (const QueuePair* q = e.peek(packets[i].header.dest_qp); q != nullptr) {
        __builtin_prefetch(q, 1);
        __builtin_prefetch(&q->served, 1);
        __builtin_prefetch(&q->requests_out, 1);
      }
    }
    if (i < ahead) continue;
    const wire::RxPacket& p = packets[i - ahead];
    QueuePair* q = e.find(p.header.dest_qp);
    if (q == nullptr) {
      e.counters.add(Counter::drop_no_qp);
      continue;
    }
    if (q != concerned) {
      reconcile();
      concerned = q->type == QpType::kUd ? nullptr : q;  // a datagram changes nothing of what may be sent
      only_brought = true;
    }
    const RcOpcode& op = rc_opcode(p.header.opcode);
    only_brought = only_brought && rc_brings(op.kind);
    receive_packet(e, *q, now, static_cast<std::uint32_t>(i - ahead), p, op, sink);
  }
  reconcile();
  if (e.overrun) fail_overrun(e);  // before the packets are acknowledged
}

}  // namespace weft
