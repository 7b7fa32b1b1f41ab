// Values of the port as libibverbs has them, and back. Enumerations are equal on both sides
// (core/verbs/types.h); an immediate is a number here and bytes in network order there.
#pragma once
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

#include "core/base/result.h"
#include "core/verbs/types.h"

namespace weft {

static_assert(int{IBV_QP_MIN_RNR_TIMER} == int{kAttrMinRnrTimer} &&
              int{IBV_QP_DEST_QPN} == int{kAttrDestQpn} && int{IBV_QP_SQ_PSN} == int{kAttrSqPsn} &&
              int{IBV_QP_MAX_DEST_RD_ATOMIC} == int{kAttrMaxDestRdAtomic});

inline Errc code_of(int error) {
  switch (error) {
    case ENOMEM:
      return Errc::kNoMemory;
    case EBUSY:
      return Errc::kBusy;
    case EOPNOTSUPP:
      return Errc::kUnsupported;
    default:
      return Errc::kInvalid;
  }
}

inline Outcome<void> answer(int error) {
  if (error != 0) return fail(code_of(error));
  return {};
}

inline ibv_mtu verbs_mtu(std::uint32_t bytes) {
  return bytes >= 4096   ? IBV_MTU_4096
         : bytes >= 2048 ? IBV_MTU_2048
         : bytes >= 1024 ? IBV_MTU_1024
         : bytes >= 512  ? IBV_MTU_512
                         : IBV_MTU_256;
}

// Its gather list is the caller's affair.
inline ibv_send_wr request_of(const SendWr& from) {
  ibv_send_wr wr{};
  wr.wr_id = from.wr_id;
  wr.opcode = static_cast<ibv_wr_opcode>(from.opcode);
  wr.send_flags = ((from.flags & kSendFence) != 0 ? unsigned{IBV_SEND_FENCE} : 0U) |
                  ((from.flags & kSendSignaled) != 0 ? unsigned{IBV_SEND_SIGNALED} : 0U) |
                  ((from.flags & kSendSolicited) != 0 ? unsigned{IBV_SEND_SOLICITED} : 0U) |
                  ((from.flags & kSendInline) != 0 ? unsigned{IBV_SEND_INLINE} : 0U);
  wr.imm_data = htonl(from.imm);
  if (from.opcode == WrOpcode::kSendInvalidate || from.opcode == WrOpcode::kLocalInvalidate)
    wr.invalidate_rkey = from.imm;
  if (from.opcode == WrOpcode::kCompareSwap || from.opcode == WrOpcode::kFetchAdd) {
    wr.wr.atomic = {from.remote_address, from.compare_or_add, from.swap, from.rkey.v};
  } else {
    wr.wr.rdma = {from.remote_address, from.rkey.v};
  }
  return wr;
}

// In place: what is put together and then copied whole waits for its own stores.
inline void fill(Completion& c, const ibv_wc& wc) {
  c.wr_id = wc.wr_id;
  c.status = static_cast<WcStatus>(wc.status);
  c.opcode = static_cast<WcOpcode>(wc.opcode);
  c.flags = static_cast<std::uint8_t>(wc.wc_flags & (kWcGrh | kWcWithImm | kWcWithInvalidate));
  c.byte_len = wc.byte_len;
  c.imm = (wc.wc_flags & IBV_WC_WITH_INV) != 0 ? wc.invalidated_rkey : ntohl(wc.imm_data);
  c.qpn = {wc.qp_num};
  c.src_qp = {wc.src_qp};
}

}  // namespace weft
