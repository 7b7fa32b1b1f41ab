// Datagrams in (docs/protocol/unreliable.md#datagrams): anybody who knows the Q_Key may send one.
// What finds no receive, or one too small, is dropped, and the receive stays for the next.
//
//   receive buffer   0                             40
//                    | GRH: 20 zero bytes + IPv4   | payload …
//                    |      or the IPv6 header     |
#pragma once
#include <algorithm>
#include <array>
#include <cstring>

#include "core/transport/engine.h"
#include "core/transport/rc/failure.h"
#include "core/transport/rc/responder.h"
#include "core/wire/ip.h"

namespace weft {

// --- ud/responder.cc ---
// What stands where an InfiniBand network would have put its global route header.
using Grh = std::array<std::uint8_t, wire::kGrhBytes>;
Grh ud_grh(const wire::RxPacket& p, const wire::Address& destination);
// The checks before a byte is placed; counts what fails.
bool ud_accept(Engine& e, QueuePair& q, const wire::RxPacket& p);
void ud_complete(Engine& e, QueuePair& q, const wire::RxPacket& p);

template <Sink S>
Placed ud_place(Engine& e, QueuePair& q, std::uint32_t index, const wire::RxPacket& p, S& sink) {
  const ColdQueuePair& c = e.cold(q);
  const Sge* const sges = e.recv_sges(c, q.rq_head);
  const std::uint32_t count = c.rq[q.rq_head & c.rq_mask].sge_count;
  const Grh grh = ud_grh(p, p.group != nullptr ? *p.group : e.config.address);
  const Placed v =
      rc_scatter(e, c.receive_pd, sges, count, 0, wire::kGrhBytes,
                 [&](RegionId region, std::uint64_t offset, std::uint32_t from, std::uint32_t take) {
                   ValuePlacement piece{q.qpn, index, 0, 0, region, offset, 0};
                   for (; take > 0; take -= piece.length) {
                     piece.length = std::min<std::uint32_t>(take, sizeof piece.value);
                     std::memcpy(&piece.value, &grh[from], piece.length);
                     if (!sink.place_value(piece)) return false;
                     from += piece.length;
                     piece.offset += piece.length;
                   }
                   return true;
                 });
  if (v != Placed::kDone) return v;
  return rc_scatter_payload(e, q, c.receive_pd, sges, count, wire::kGrhBytes, p.payload, index, sink);
}

template <Sink S>
void ud_on_packet(Engine& e, QueuePair& q, std::uint32_t index, const wire::RxPacket& p, S& sink) {
  if (!ud_accept(e, q, p)) return;
  if (ud_place(e, q, index, p, sink) == Placed::kDone) return ud_complete(e, q, p);
  // Room enough, so it is the receive's memory that is wrong.
  rc_fail_receive(e, q, WcStatus::kLocalProtection);
  rc_enter_error(e, q);
}

}  // namespace weft
