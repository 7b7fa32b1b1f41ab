// Datagrams out: what a request says of its destination, and the header made of it
// (docs/protocol/unreliable.md#datagrams). The sending itself is uc/requester.cc's. A request keeps what its
// address handle said when it was posted, in the fields that only other services use, so that the handle may
// be destroyed once it is posted:
//
//   remote_address   the path         rkey   the Q_Key asked for         sn   the destination queue pair
#include "core/transport/ud/requester.h"

#include "core/transport/engine.h"
#include "core/wire/ip.h"

namespace weft {
namespace {

constexpr std::uint32_t kOwnQkey = 0x8000'0000;  // in a request: "the sending queue pair's"

}  // namespace

Outcome<void> ud_check_address(const Engine& e, const QueuePair& q, const SendWr& wr) {
  const AddressHandle* to = e.address_handles.find(wr.ah);
  if (to == nullptr || to->pd != q.pd || wr.remote_qpn > wire::kEveryMember) return fail(Errc::kInvalid);
  // A group is every member's, and a host is none.
  const bool group = wire::is_group(e.paths[to->path.v].attr.peer);
  if (group != (wr.remote_qpn == wire::kEveryMember)) return fail(Errc::kInvalid);
  return {};
}

void ud_address(const Engine& e, const SendWr& wr, SendWqe& w) {
  w.remote_address = e.address_handles.find(wr.ah)->path.v;
  w.rkey = {wr.remote_qkey};
  w.sn = wr.remote_qpn.v;
}

PathId ud_path(const SendWqe& w) { return {static_cast<std::uint32_t>(w.remote_address)}; }

void ud_header(const Engine& e, const QueuePair& q, const SendWqe& w, wire::Header& h) {
  const bool imm = w.opcode == WrOpcode::kSendImm;
  h.opcode = imm ? wire::kUdSendOnlyImm : wire::kUdSendOnly;
  h.dest_qp = {w.sn};
  h.psn = q.requests_out.nxt.wire();
  h.set_deth((w.rkey.v & kOwnQkey) != 0 ? e.cold(q).attr.qkey : w.rkey.v, q.qpn);
  if (imm) h.imm = w.imm;
  if ((w.flags & kSendSolicited) != 0) h.bits |= wire::kSolicited;
}

}  // namespace weft
