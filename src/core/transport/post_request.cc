// Posting a request, for every service. Everything that identifies it on the wire is fixed here: sequence
// numbers, receive and READ serial numbers, message number. Sending is then a walk over the ring.
#include "core/transport/post_request.h"

#include <algorithm>

#include "core/transport/engine.h"
#include "core/transport/rc/acknowledge.h"
#include "core/transport/rc/opcodes.h"
#include "core/transport/ud/requester.h"

namespace weft {
namespace {

std::uint64_t length_of(const SendWr& wr) {
  std::uint64_t length = 0;
  for (const Sge& s : wr.sges) length += s.length;
  return length;
}

}  // namespace

Outcome<void> check_request(const Engine& e, const QueuePair& q, const SendWr& wr, std::uint32_t ahead) {
  const ColdQueuePair& c = e.cold(q);
  const bool flushing = q.state == QpState::kErr || q.state == QpState::kSqe;
  if (!q.sends() && !flushing) return fail(Errc::kInvalid);
  if (static_cast<std::uint16_t>(q.sq_tail - q.sq_head) + (flushing ? 0 : ahead) > c.sq_mask)
    return fail(Errc::kNoMemory);
  switch (wr.opcode) {
    case WrOpcode::kWrite:
    case WrOpcode::kWriteImm:
    case WrOpcode::kSend:
    case WrOpcode::kSendImm:
    case WrOpcode::kRead:
    case WrOpcode::kCompareSwap:
    case WrOpcode::kFetchAdd:
    case WrOpcode::kSendInvalidate:
    case WrOpcode::kLocalInvalidate:
    case WrOpcode::kBindWindow:
      break;
    default:
      return fail(Errc::kUnsupported);
  }
  if (!service_offers(q.type, wr.opcode)) return fail(Errc::kInvalid);
  if (wr.sges.size() > c.init.caps.max_send_sge) return fail(Errc::kInvalid);
  const std::uint64_t length = length_of(wr);
  const bool in_line = (wr.flags & kSendInline) != 0;
  if (length > (1ULL << 31U) || (in_line && (length > c.init.caps.max_inline || has_response(wr.opcode))))
    return fail(Errc::kInvalid);
  if (is_local(wr.opcode) && !wr.sges.empty()) return fail(Errc::kInvalid);
  if (is_atomic(wr.opcode) && length != 8) return fail(Errc::kInvalid);
  if ((wr.flags & kSendAtomicWrite) != 0 &&
      (wr.opcode != WrOpcode::kWrite || q.type != QpType::kRc || length != 8 || wr.remote_address % 8 != 0))
    return fail(Errc::kInvalid);
  if (q.type == QpType::kUd) return ud_check_address(e, q, wr);
  return {};
}

Outcome<std::uint32_t> post_request(Engine& e, QueuePair& q, const SendWr& wr) {
  if (auto taken = check_request(e, q, wr, 0); !taken) return fail(taken.error());
  ColdQueuePair& c = e.cold(q);
  const bool flushing = !q.sends();
  const bool read = has_response(wr.opcode);
  const bool local = is_local(wr.opcode);
  const bool in_line = (wr.flags & kSendInline) != 0;
  if (is_atomic(wr.opcode)) c.sq_operands[q.sq_tail & c.sq_mask] = {wr.compare_or_add, wr.swap};

  SendWqe& w = e.send_wqe(c, q.sq_tail);
  w = {};
  w.wr_id = wr.wr_id;
  w.remote_address = wr.remote_address;
  w.length = static_cast<std::uint32_t>(length_of(wr));
  w.rkey = wr.rkey;
  w.imm = wr.imm;
  w.opcode = wr.opcode;
  w.flags = wr.flags;
  w.sge_count = static_cast<std::uint8_t>(wr.sges.size());
  if (wr.opcode == WrOpcode::kBindWindow) {
    w.rkey = wr.bind.window;
    w.imm = wr.bind.region.v;
    w.remote_address = wr.bind.address;
    c.sq_operands[q.sq_tail & c.sq_mask] = {wr.bind.length, wr.bind.access};
  }
  if (q.type == QpType::kUd) ud_address(e, wr, w);
  if (!in_line) {
    std::copy(wr.sges.begin(), wr.sges.end(),
              &c.sq_sges[static_cast<std::size_t>(q.sq_tail & c.sq_mask) * c.init.caps.max_send_sge]);
  }
  if (flushing) {
    Completion done;
    done.wr_id = w.wr_id;
    done.status = WcStatus::kFlushed;
    done.qpn = q.qpn;
    e.complete(c.init.send_cq, done, false);
    return q.sq_tail & c.sq_mask;
  }
  const std::uint32_t packets = q.type == QpType::kUd ? 1 : Engine::packets_for(w.length, q.mtu);
  w.packets = local ? 0 : read && q.tx_dialect().response_stream ? 1 : packets;
  w.first = c.post_seq;
  w.charged_before = c.post_charged;
  c.post_seq += w.packets;
  if (read) {
    w.sn = c.post_read_sn++;
    w.first_response = c.post_response;
    c.post_response += packets;
  } else if (!local && q.type == QpType::kRc) {
    c.post_charged += e.charge(w.length, q.mtu, w.packets);
    if (wr.opcode != WrOpcode::kWrite) w.sn = c.post_recv_sn++;
  }
  if (c.sq_msn != nullptr && !local) c.sq_msn[q.sq_tail & c.sq_mask] = ++c.post_msn;
  const std::uint32_t slot = q.sq_tail & c.sq_mask;
  ++q.sq_tail;
  if (local) rc_complete_requests(e, q, {});
  return slot;
}

}  // namespace weft
