// Which packets a NIC's fast path takes: those that continue what their half-connection has, with nothing
// lost before them. Everything else is the slow path's (SRNIC §4.4.2): software in SRNIC, nobody's in the
// soft NIC.
#include "core/transport/device.h"

namespace weft {

bool Device::continues(const wire::RxPacket& packet) const {
  const Engine& e = *engine_;
  const wire::Header& h = packet.header;
  const QueuePair* q = e.find(h.dest_qp);
  if (q == nullptr || q->type != QpType::kRc) return true;
  const auto next_of = [&](const RecvStream& s) { return s.held == 0 && s.expected.wire().v == h.psn.v; };
  const bool good =
      h.syndrome == wire::kSyndromeAck && (h.ext_flags & (wire::kEcxOutOfOrder | wire::kEcxDuplicate)) == 0;
  switch (rc_opcode(h.opcode).kind) {
    case RcKind::kSend:
    case RcKind::kWrite:
    case RcKind::kRead:
    case RcKind::kAtomic:
      return next_of(q->requests);
    case RcKind::kResponse:
      return !q->tx_dialect().response_stream || next_of(e.cold(*q).responses);
    case RcKind::kAck:
      return good && !q->requests_out.recovering();
    case RcKind::kReadAck:
      return good && !q->served.recovering();
    case RcKind::kUnknown:
      return true;
  }
  return true;
}

}  // namespace weft
