#include "core/transport/ud/responder.h"

#include "core/wire/codec.h"

namespace weft {

Grh ud_grh(const wire::RxPacket& p, const wire::Address& destination) {
  wire::IpHeader ip{.source = p.source, .destination = destination};
  ip.udp_length = static_cast<std::uint16_t>(wire::kUdpBytes + wire::header_bytes(p.header) + p.payload +
                                             wire::pad_bytes(p.payload) + wire::kIcrcBytes);
  ip.tos = p.tos;
  ip.ttl = p.ttl;
  Grh grh;
  wire::write_grh(ip, grh);
  return grh;
}

bool ud_accept(Engine& e, QueuePair& q, const wire::RxPacket& p) {
  const auto drop = [&](Counter reason) {
    e.counters.add(reason);
    return false;
  };
  const wire::Header& h = p.header;
  if ((h.opcode != wire::kUdSendOnly && h.opcode != wire::kUdSendOnlyImm) || h.mode != wire::Mode::kRoce)
    return drop(Counter::drop_opcode);
  ColdQueuePair& c = e.cold(q);
  if (h.qkey() != c.attr.qkey) return drop(Counter::drop_qkey);
  if (p.payload > q.mtu) return drop(Counter::drop_refused);
  if (q.rq_head == q.rq_tail && !rc_take_shared(e, q)) return drop(Counter::drop_no_receive);
  std::uint64_t room = 0;
  const Sge* const sges = e.recv_sges(c, q.rq_head);
  for (std::uint32_t i = 0; i < e.recv_wqe(c, q.rq_head).sge_count; ++i) room += sges[i].length;
  if (room < wire::kGrhBytes + p.payload) return drop(Counter::drop_too_long);
  return true;
}

void ud_complete(Engine& e, QueuePair& q, const wire::RxPacket& p) {
  ColdQueuePair& c = e.cold(q);
  const wire::Header& h = p.header;
  const bool imm = h.opcode == wire::kUdSendOnlyImm;
  Completion done;
  done.wr_id = e.recv_wqe(c, q.rq_head).wr_id;
  done.opcode = WcOpcode::kReceive;
  done.flags = static_cast<std::uint8_t>(kWcGrh | (imm ? kWcWithImm : 0) |
                                         (wire::is_v4_mapped(p.source) ? 0 : kWcOverIpv6));
  done.byte_len = static_cast<std::uint32_t>(wire::kGrhBytes) + p.payload;
  done.imm = imm ? h.imm : 0;
  done.qpn = q.qpn;
  done.src_qp = h.src_qp();
  ++q.rq_head;
  e.counters.add(Counter::rx_in_order);
  e.complete(c.init.recv_cq, done, (h.bits & wire::kSolicited) != 0);
}

}  // namespace weft
