// Judges the fields that irn and srnic add to the headers (docs/protocol/irn.md, srnic.md). They must be
// enough to place every packet, and to understand every acknowledgement, by itself.
#include "check/half_connection.h"
#include "check/opcodes.h"

namespace weft::check {

void HalfConnection::check_extension(const wire::Header& h, std::uint64_t message, Time now) {
  if (is_write(h.opcode)) {
    if (h.va != next_va_ || h.rkey != rkey_)
      bad(now, "extension", "WRITE psn %u names another address or key", h.psn.v);
    if (!srnic() && h.dma_len != left_)
      bad(now, "extension", "WRITE psn %u says %u bytes left of %u", h.psn.v, h.dma_len, left_);
  }
  const bool consumes = is_send(h.opcode) || has_imm(h.opcode);
  if (consumes && h.sn != (recv_sn_ & serial_mask()))
    bad(now, "extension", "psn %u has receive number %u, not %u", h.psn.v, h.sn, recv_sn_);
  if ((consumes || srnic()) && h.psn_offset != index_)
    bad(now, "extension", "psn %u has offset %u, not %u", h.psn.v, h.psn_offset, index_);
  if (srnic() && h.srx_msn != (message & kPsnMask))
    bad(now, "extension", "psn %u belongs to message %u, says %u", h.psn.v,
        static_cast<unsigned>(message & kPsnMask), h.srx_msn);
}

void HalfConnection::check_read_extension(const wire::Header& h, std::uint64_t message, Time now) {
  if (h.sn != (read_sn_ & serial_mask()))
    bad(now, "extension", "READ psn %u has number %u, not %u", h.psn.v, h.sn, read_sn_);
  if (srnic() && (h.srx_msn != (message & kPsnMask) || h.psn_offset != 0))
    bad(now, "extension", "READ psn %u says message %u, packet %u", h.psn.v, h.srx_msn, h.psn_offset);
}

void HalfConnection::check_response_extension(const wire::Header& h, const ReadAsked& read, Time now) {
  if (!srnic()) return;
  if (h.srx_msn != read.message || h.psn_offset != read_packet_)
    bad(now, "extension", "response psn %u says message %u, packet %u, not %u, %u", h.psn.v, h.srx_msn,
        h.psn_offset, read.message, read_packet_);
}

// The packet that an acknowledgement names has arrived, is placed if it is said to be kept, and is the one
// whose message and offset are echoed.
void HalfConnection::check_echo(Stream& s, const wire::Header& h, const Said& said, Time now) {
  const Packet* p = s.find(said.trigger);
  if (h.syndrome == wire::kSyndromeNakSequence) {
    if (said.trigger <= said.upto || p == nullptr || !p->arrived) {
      return bad(now, "ACK", "NACK of all below psn %u names psn %u, which did not arrive ahead of it",
                 said.upto.wire().v, said.trigger.wire().v);
    }
    if (said.keeps && p->placed != p->payload)
      bad(now, "ACK", "a NACK keeps psn %u, which is not placed", said.trigger.wire().v);
  } else if (said.trigger >= s.max || (p != nullptr && !p->arrived)) {
    return bad(now, "ACK", "an ACK echoes psn %u, which did not arrive", said.trigger.wire().v);
  } else if (!said.again && said.trigger >= said.upto) {
    bad(now, "ACK", "an ACK of all below psn %u echoes psn %u", said.upto.wire().v, said.trigger.wire().v);
  }
  if (!srnic() || p == nullptr) return;
  if (h.echo_msn() != p->header.srx_msn || h.echo_offset() != p->header.psn_offset) {
    bad(now, "ACK", "psn %u was packet %u of message %u, its echo says %u of %u", said.trigger.wire().v,
        p->header.psn_offset, p->header.srx_msn, h.echo_offset(), h.echo_msn());
  }
}

}  // namespace weft::check
