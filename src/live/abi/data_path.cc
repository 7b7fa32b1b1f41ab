// Posting and polling: what ibv_post_send, ibv_poll_cq and their like call through the context's table.
// The enumerations are equal by construction (core/verbs/types.h); asserted here.
#include <algorithm>
#include <array>
#include <cstring>

#include "live/abi/handles.h"

namespace weft::live::abi {
namespace {

static_assert(IBV_WR_RDMA_WRITE == static_cast<int>(WrOpcode::kWrite) &&
              IBV_WR_RDMA_WRITE_WITH_IMM == static_cast<int>(WrOpcode::kWriteImm) &&
              IBV_WR_SEND == static_cast<int>(WrOpcode::kSend) &&
              IBV_WR_SEND_WITH_IMM == static_cast<int>(WrOpcode::kSendImm) &&
              IBV_WR_RDMA_READ == static_cast<int>(WrOpcode::kRead) &&
              IBV_WR_ATOMIC_CMP_AND_SWP == static_cast<int>(WrOpcode::kCompareSwap) &&
              IBV_WR_ATOMIC_FETCH_AND_ADD == static_cast<int>(WrOpcode::kFetchAdd) &&
              IBV_WR_LOCAL_INV == static_cast<int>(WrOpcode::kLocalInvalidate) &&
              IBV_WR_BIND_MW == static_cast<int>(WrOpcode::kBindWindow) &&
              IBV_WR_SEND_WITH_INV == static_cast<int>(WrOpcode::kSendInvalidate));
static_assert(IBV_SEND_FENCE == int{kSendFence} && IBV_SEND_SIGNALED == int{kSendSignaled} &&
              IBV_SEND_SOLICITED == int{kSendSolicited} && IBV_SEND_INLINE == int{kSendInline});
static_assert(IBV_WC_SUCCESS == static_cast<int>(WcStatus::kSuccess) &&
              IBV_WC_LOC_PROT_ERR == static_cast<int>(WcStatus::kLocalProtection) &&
              IBV_WC_WR_FLUSH_ERR == static_cast<int>(WcStatus::kFlushed) &&
              IBV_WC_REM_ACCESS_ERR == static_cast<int>(WcStatus::kRemoteAccess) &&
              IBV_WC_RETRY_EXC_ERR == static_cast<int>(WcStatus::kRetryExceeded) &&
              IBV_WC_RNR_RETRY_EXC_ERR == static_cast<int>(WcStatus::kRnrRetryExceeded));
static_assert(IBV_WC_RDMA_READ == static_cast<int>(WcOpcode::kRead) &&
              IBV_WC_LOCAL_INV == static_cast<int>(WcOpcode::kLocalInvalidate) &&
              IBV_WC_ATOMIC_WRITE == static_cast<int>(WcOpcode::kAtomicWrite) &&
              IBV_WC_RECV == static_cast<int>(WcOpcode::kReceive) &&
              IBV_WC_RECV_RDMA_WITH_IMM == static_cast<int>(WcOpcode::kReceiveWriteImm));
static_assert(IBV_WC_WITH_IMM == int{kWcWithImm} && IBV_WC_WITH_INV == int{kWcWithInvalidate} &&
              IBV_WC_GRH == int{kWcGrh});
static_assert(sizeof(ibv_sge) == sizeof(Sge) && offsetof(ibv_sge, addr) == offsetof(Sge, address) &&
              offsetof(ibv_sge, length) == offsetof(Sge, length) &&
              offsetof(ibv_sge, lkey) == offsetof(Sge, lkey));

constexpr std::size_t kMostSges = 32;  // Attributes::max_sge
using Pieces = std::array<Sge, kMostSges>;

// No more is read than the queue was granted: what a program counts beyond that may not be there.
bool copy_pieces(const ibv_sge* from, int count, std::uint32_t granted, Pieces& to) {
  if (count < 0 || static_cast<std::size_t>(count) > std::min<std::size_t>(granted, kMostSges)) return false;
  if (count != 0)
    std::memcpy(static_cast<void*>(to.data()), from, static_cast<std::size_t>(count) * sizeof *from);
  return true;
}

// The window is the one that the program names; its key brings the tag that it is to have from now on.
Key bound_key(const ibv_send_wr& wr) {
  return {(handle_of<MwHandle>(wr.bind_mw.mw).key.v & ~0xFFU) | (wr.bind_mw.rkey & 0xFFU)};
}

// False: nothing that could be bound.
bool translate_bind(const ibv_send_wr& from, const ibv_context* context, WindowBind& to) {
  constexpr unsigned kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
  const ibv_mw* const window = from.bind_mw.mw;
  const ibv_mw_bind_info& b = from.bind_mw.bind_info;
  if (window == nullptr || window->context != context) return false;
  if ((b.mw_access_flags & ~kAccess) != 0) return false;
  if ((b.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0 && window->type == IBV_MW_TYPE_1) return false;
  to.window = bound_key(from);
  to.region = {b.mr != nullptr ? b.mr->lkey : UINT32_MAX};
  to.address = b.addr;
  to.length = b.length;
  to.access = static_cast<std::uint8_t>(b.mw_access_flags);
  return true;
}

constexpr unsigned kSendFlags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

// False: a request that does not exist here.
bool translate(const ibv_send_wr& from, const ibv_qp& qp, Pieces& pieces, SendWr& to) {
  const unsigned opcode = raw(from.opcode);
  const std::uint32_t granted = handle_of<const QpHandle>(&qp).init.cap.max_send_sge;
  const bool atomic_write = opcode == IBV_WR_ATOMIC_WRITE;
  if ((opcode > IBV_WR_SEND_WITH_INV && !atomic_write) || (from.send_flags & ~kSendFlags) != 0 ||
      !copy_pieces(from.sg_list, from.num_sge, granted, pieces))
    return false;
  to.wr_id = from.wr_id;
  to.sges = {pieces.data(), static_cast<std::size_t>(from.num_sge)};
  to.opcode = atomic_write ? WrOpcode::kWrite : static_cast<WrOpcode>(opcode);
  to.flags = static_cast<std::uint8_t>(from.send_flags);
  if (atomic_write) to.flags |= kSendAtomicWrite;
  to.imm = from.imm_data;  // or invalidate_rkey, which shares its place
  if (qp.qp_type == IBV_QPT_UD) {
    if (from.wr.ud.ah == nullptr) return false;
    to.ah = handle_of<AhHandle>(from.wr.ud.ah).id;
    to.remote_qpn = {from.wr.ud.remote_qpn};
    to.remote_qkey = from.wr.ud.remote_qkey;
    return true;
  }
  switch (opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      to.remote_address = from.wr.atomic.remote_addr;
      to.rkey = {from.wr.atomic.rkey};
      to.compare_or_add = from.wr.atomic.compare_add;
      to.swap = from.wr.atomic.swap;
      break;
    case IBV_WR_BIND_MW:
      to.sges = {};
      return translate_bind(from, qp.context, to.bind);
    case IBV_WR_LOCAL_INV:
      to.sges = {};
      break;
    default:
      to.remote_address = from.wr.rdma.remote_addr;
      to.rkey = {from.wr.rdma.rkey};
  }
  return true;
}

int post_one(Posting& posting, const ibv_qp& qp, const ibv_send_wr& wr) {
  Pieces pieces;
  SendWr to;
  if (!translate(wr, qp, pieces, to)) return EINVAL;
  const int failed = answer(posting.send(to));
  if (failed == 0 && wr.opcode == IBV_WR_BIND_MW) wr.bind_mw.mw->rkey = bound_key(wr).v;
  return failed;
}

// Packets that leave when the posting ends may change errno, so the callers set errno afterwards.
int post_each(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  Posting posting(engine_of(qp->context), handle_of<QpHandle>(qp).engine);
  for (; wr != nullptr; wr = wr->next) {
    if (const int failed = post_one(posting, *qp, *wr); failed != 0) {
      *bad = wr;
      return failed;
    }
  }
  return 0;
}

int post_each(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Posting posting(engine_of(qp->context), handle_of<QpHandle>(qp).engine);
  for (; wr != nullptr; wr = wr->next) {
    Pieces pieces;
    int failed = EINVAL;
    if (copy_pieces(wr->sg_list, wr->num_sge, handle_of<QpHandle>(qp).init.cap.max_recv_sge, pieces)) {
      failed = answer(posting.receive({wr->wr_id, {pieces.data(), static_cast<std::size_t>(wr->num_sge)}}));
    }
    if (failed != 0) {
      *bad = wr;
      return failed;
    }
  }
  return 0;
}

}  // namespace

// Requests of one posting of ibv_wr_*: if one is refused, none is executed (ibv_wr_post(3)).
int post_all_or_none(ibv_qp* qp, ibv_send_wr* list) {
  Posting posting(engine_of(qp->context), handle_of<QpHandle>(qp).engine);
  std::uint32_t ahead = 0;
  for (const ibv_send_wr* wr = list; wr != nullptr; wr = wr->next) {
    Pieces pieces;
    SendWr to;
    if (!translate(*wr, *qp, pieces, to)) return EINVAL;
    if (const int failed = answer(posting.check(to, ahead++)); failed != 0) return failed;
  }
  for (const ibv_send_wr* wr = list; wr != nullptr; wr = wr->next) {
    if (const int failed = post_one(posting, *qp, *wr); failed != 0) return failed;
  }
  return 0;
}

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  return at_edge([&] { return post_each(qp, wr, bad); });
}

int post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return at_edge([&] { return post_each(qp, wr, bad); });
}

int post_shared_receive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  for (; wr != nullptr; wr = wr->next) {
    Pieces pieces;
    int failed = EINVAL;
    if (copy_pieces(wr->sg_list, wr->num_sge, handle_of<SrqHandle>(srq).engine->granted.max_sge, pieces)) {
      failed =
          answer(engine_of(srq->context)
                     .post_srq_receive(handle_of<SrqHandle>(srq).engine,
                                       {wr->wr_id, {pieces.data(), static_cast<std::size_t>(wr->num_sge)}}));
    }
    if (failed != 0) {
      *bad = wr;
      return errno = failed;
    }
  }
  return 0;
}

int poll(ibv_cq* cq, int count, ibv_wc* out) {
  Context& engine = engine_of(cq->context);
  Cq* const queue = handle_of<CqHandle>(cq).engine;
  std::array<Completion, 32> got;
  int done = 0;
  while (done < count) {
    const auto want = std::min(static_cast<std::size_t>(count - done), got.size());
    const std::uint32_t n = engine.poll_cq(queue, {got.data(), want});
    for (std::uint32_t i = 0; i < n; ++i) {
      const Completion& c = got[i];
      ibv_wc& w = out[done++];
      w = {};
      w.wr_id = c.wr_id;
      w.status = static_cast<ibv_wc_status>(c.status);
      w.opcode = static_cast<ibv_wc_opcode>(c.opcode);
      w.byte_len = c.byte_len;
      w.imm_data = c.imm;  // or invalidated_rkey, which shares its place
      w.qp_num = c.qpn.v;
      w.src_qp = c.src_qp.v;
      w.wc_flags = wc_flags_of(c.flags);
      w.sl = kind_of_frame(c.flags);
    }
    if (n < want) break;
  }
  // The queue will never have another entry, and a program that polls for one would never stop.
  if (done == 0 && count > 0 && queue->overran.load(std::memory_order_relaxed)) return -1;
  return done;
}

int request_notify(ibv_cq* cq, int solicited_only) {
  return at_edge([&] {
    return answer(engine_of(cq->context).request_notify(handle_of<CqHandle>(cq).engine, solicited_only != 0));
  });
}

}  // namespace weft::live::abi
