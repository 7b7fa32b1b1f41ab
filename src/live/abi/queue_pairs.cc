// Queue pairs: creation, attributes, states. The bits of the attribute mask are those of
// core/verbs/types.h; which of them a transition takes is core's to say.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/wire/ip.h"
#include "live/abi/handles.h"

namespace weft::live::abi {
namespace {

static_assert(IBV_QP_STATE == int{kAttrState} && IBV_QP_EN_SQD_ASYNC_NOTIFY == int{kAttrSqdNotify} &&
              IBV_QP_AV == int{kAttrPath} && IBV_QP_PATH_MTU == int{kAttrMtu} &&
              IBV_QP_MAX_DEST_RD_ATOMIC == int{kAttrMaxDestRdAtomic} && IBV_QP_DEST_QPN == int{kAttrDestQpn});
static_assert(IBV_QPT_RC == static_cast<int>(QpType::kRc) && IBV_QPT_UC == static_cast<int>(QpType::kUc) &&
              IBV_QPT_UD == static_cast<int>(QpType::kUd) && IBV_QP_QKEY == int{kAttrQkey} &&
              IBV_QPS_ERR == static_cast<int>(QpState::kErr) &&
              IBV_QPS_SQD == static_cast<int>(QpState::kSqd));

QpCaps caps_of(const ibv_qp_cap& c) {
  return {c.max_send_wr, c.max_recv_wr, c.max_send_sge, c.max_recv_sge, c.max_inline_data};
}

ibv_qp* create(ibv_context* context, ibv_pd* pd, ibv_qp_init_attr& init, std::uint64_t send_operations) {
  const unsigned type = raw(init.qp_type);
  if (type != IBV_QPT_RC && type != IBV_QPT_UC && type != IBV_QPT_UD) return refuse(EOPNOTSUPP);
  // What belongs to another context is not found here.
  const PdHandle* const domain = find<PdHandle>(pd, context);
  const CqHandle* const send_cq = find<CqHandle>(init.send_cq, context);
  const CqHandle* const recv_cq = find<CqHandle>(init.recv_cq, context);
  const SrqHandle* const srq = init.srq != nullptr ? find<SrqHandle>(init.srq, context) : nullptr;
  if (domain == nullptr || send_cq == nullptr || recv_cq == nullptr ||
      (init.srq != nullptr && srq == nullptr))
    return refuse(EINVAL);
  QpInit q;
  q.type = static_cast<QpType>(type);
  q.pd = domain->id;
  q.send_cq = send_cq->engine->id;
  q.recv_cq = recv_cq->engine->id;
  q.caps = caps_of(init.cap);
  q.signal_all = init.sq_sig_all != 0;
  if (srq != nullptr) q.srq = srq->engine->id;
  NewHandle<QpHandle> h(context, domain->home_for(Resource::kQueuePair));
  ibv_qp& b = h->base.qp_base;
  b.qp_type = static_cast<ibv_qp_type>(type);
  if (send_operations != 0) add_send_operations(*h.get());
  const auto qp = engine_of(context).create_qp(q, h.get(), domain->shard);
  if (!qp) return refuse(errno_of(qp.error()));
  h->engine = *qp;
  const QpCaps& granted = h->engine->granted.caps;
  init.cap = {granted.max_send_wr, granted.max_recv_wr, granted.max_send_sge, granted.max_recv_sge,
              granted.max_inline};
  if (init.srq != nullptr) init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
  h->init = init;
  b.context = context;
  b.qp_context = init.qp_context;
  b.pd = pd;
  b.send_cq = init.send_cq;
  b.recv_cq = init.recv_cq;
  b.srq = init.srq;
  b.handle = b.qp_num = h->engine->qpn.v;
  b.state = IBV_QPS_RESET;
  pthread_mutex_init(&b.mutex, nullptr);
  pthread_cond_init(&b.cond, nullptr);
  return &h.publish(b.handle, {pd})->base.qp_base;
}

// The operations of ibv_wr_* that each service has (ibv_create_qp_ex's send_ops_flags).
std::uint64_t operations_of(unsigned type) {
  constexpr std::uint64_t kDatagram = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  constexpr std::uint64_t kUnanswered = kDatagram | IBV_QP_EX_WITH_RDMA_WRITE |
                                        IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
                                        IBV_QP_EX_WITH_BIND_MW;
  if (type == IBV_QPT_UD) return kDatagram;
  if (type == IBV_QPT_UC) return kUnanswered;
  return kUnanswered | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
         IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE;
}

ibv_qp* create_extended(ibv_context* context, ibv_qp_init_attr_ex* init) {
  constexpr std::uint32_t kMasks =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  if ((init->comp_mask & ~kMasks) != 0) return refuse(EOPNOTSUPP);
  if ((init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && init->create_flags != 0)
    return refuse(EOPNOTSUPP);
  if ((init->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) return refuse(EINVAL);
  const std::uint64_t operations =
      (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 ? init->send_ops_flags : 0;
  if ((operations & ~operations_of(raw(init->qp_type))) != 0) return refuse(EOPNOTSUPP);
  ibv_qp_init_attr plain{};
  plain.qp_context = init->qp_context;
  plain.send_cq = init->send_cq;
  plain.recv_cq = init->recv_cq;
  plain.srq = init->srq;
  plain.cap = init->cap;
  if ((operations & IBV_QP_EX_WITH_ATOMIC_WRITE) != 0)
    plain.cap.max_inline_data = std::max(plain.cap.max_inline_data, kAtomicWriteBytes);
  std::memcpy(&plain.qp_type, &init->qp_type, sizeof plain.qp_type);  // whatever number it is
  plain.sq_sig_all = init->sq_sig_all;
  ibv_qp* const qp = create(context, init->pd, plain, operations);
  if (qp != nullptr) init->cap = plain.cap;
  return qp;
}

}  // namespace

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init) {
  return at_edge([&] { return create_extended(context, init); });
}

}  // namespace weft::live::abi

using namespace weft;
using namespace weft::live;
using namespace weft::live::abi;

WEFT_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  return at_edge([&] { return create(pd->context, pd, *init, 0); });
}

WEFT_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  QpHandle& h = handle_of<QpHandle>(qp);
  return h.sends != nullptr ? &h.base : nullptr;
}

namespace {

// False: not a state. Only what the mask names is looked at.
bool read_state(const ibv_qp_state& from, bool asked, QpState& to) {
  const unsigned state = raw(from);
  if (!asked) return true;
  if (state > IBV_QPS_ERR) return false;
  to = static_cast<QpState>(state);
  return true;
}

int modify(ibv_qp* qp, const ibv_qp_attr* from, int mask) {
  QpHandle* const h = find<QpHandle>(qp);
  if (h == nullptr) return EINVAL;
  Context& engine = engine_of(qp->context);
  QpAttr to;
  if (!read_state(from->qp_state, (mask & IBV_QP_STATE) != 0, to.state) ||
      !read_state(from->cur_qp_state, (mask & IBV_QP_CUR_STATE) != 0, to.current_state))
    return EINVAL;
  if ((mask & IBV_QP_PATH_MTU) != 0) {
    const unsigned code = raw(from->path_mtu);
    if (code < IBV_MTU_256 || code > IBV_MTU_4096) return EINVAL;
    to.mtu = 128U << code;
    if (to.mtu > engine.attributes().active_mtu) return EINVAL;
  }
  if ((mask & IBV_QP_PKEY_INDEX) != 0 && from->pkey_index != 0) return EINVAL;
  if ((mask & IBV_QP_PORT) != 0 && from->port_num != 1) return EINVAL;
  to.qkey = from->qkey;
  to.rq_psn = {from->rq_psn & kPsnMask};
  to.sq_psn = {from->sq_psn & kPsnMask};
  to.dest_qpn = {from->dest_qp_num};
  constexpr unsigned kAccess =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0)
    to.access = static_cast<std::uint8_t>(from->qp_access_flags & kAccess);
  to.max_rd_atomic = from->max_rd_atomic;
  to.max_dest_rd_atomic = from->max_dest_rd_atomic;
  to.min_rnr_timer = from->min_rnr_timer;
  to.timeout = from->timeout;
  to.retry_count = from->retry_cnt;
  to.rnr_retry = from->rnr_retry;
  to.sqd_notify = from->en_sqd_async_notify != 0;
  PathAttr path;
  if ((mask & IBV_QP_AV) != 0) {
    if (!path_of(engine.attributes().own, from->ah_attr, path) || wire::is_group(path.peer)) return EINVAL;
    to.service_level = from->ah_attr.sl;
  }
  const int failed = answer(engine.modify_qp(h->engine, to, static_cast<std::uint32_t>(mask), path));
  if (failed != 0) return failed;
  if ((mask & IBV_QP_AV) != 0) {
    const std::lock_guard lock(h->address_lock);
    h->address = from->ah_attr;
  }
  if ((mask & IBV_QP_STATE) != 0) qp->state = from->qp_state;
  return 0;
}

int query(ibv_qp* qp, ibv_qp_attr* out, ibv_qp_init_attr* init) {
  QpHandle* const h = find<QpHandle>(qp);
  if (h == nullptr) return EINVAL;
  const auto a = engine_of(qp->context).query_qp(h->engine);
  if (!a) return errno_of(a.error());
  *out = {};
  out->qp_state = out->cur_qp_state = static_cast<ibv_qp_state>(a->state);
  std::uint32_t code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && (128U << code) < a->mtu) ++code;
  out->path_mtu = static_cast<ibv_mtu>(code);
  out->path_mig_state = IBV_MIG_MIGRATED;
  out->qkey = a->qkey;
  out->rq_psn = a->rq_psn.v;
  out->sq_psn = a->sq_psn.v;
  out->dest_qp_num = a->dest_qpn.v;
  out->qp_access_flags = a->access;
  out->cap = h->init.cap;
  {
    const std::lock_guard lock(h->address_lock);
    out->ah_attr = h->address;
  }
  out->sq_draining = a->sq_draining ? 1 : 0;
  out->max_rd_atomic = a->max_rd_atomic;
  out->max_dest_rd_atomic = a->max_dest_rd_atomic;
  out->min_rnr_timer = a->min_rnr_timer;
  out->port_num = 1;
  out->timeout = a->timeout;
  out->retry_cnt = a->retry_count;
  out->rnr_retry = a->rnr_retry;
  *init = h->init;
  qp->state = out->qp_state;
  return 0;
}

}  // namespace

WEFT_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  return at_edge([&] { return modify(qp, attr, mask); });
}

// The mask is a hint at what the caller needs; everything is cheap.
WEFT_EXPORT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* out, int, ibv_qp_init_attr* init) {
  return at_edge([&] { return query(qp, out, init); });
}

WEFT_EXPORT int ibv_destroy_qp(ibv_qp* qp) {
  return at_edge([&] {
    return destroy<QpHandle>(
        qp, [](QpHandle& h) { return answer(engine_of(h.base.qp_base.context).destroy_qp(h.engine)); });
  });
}

// Whether a WRITE's bytes become visible in order. In roce they do, the last eight at once (placement.h). In
// irn and srnic they land as they arrive, unless strict order was asked for. The peer chooses the mode of its
// WRITEs, so without strict order there is nothing to promise.
WEFT_EXPORT int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode op, std::uint32_t flags) {
  static_cast<void>(op);
  static_cast<void>(flags);
  const live::Attributes& a = engine_of(qp->context).attributes();
  return a.strict_write_order ? 1 : 0;
}

// Options that peers agree on through a connection manager: none yet.
WEFT_EXPORT int ibv_query_ece(ibv_qp*, ibv_ece* out) {
  *out = {};
  return 0;
}
WEFT_EXPORT int ibv_set_ece(ibv_qp*, ibv_ece* ece) { return ece->vendor_id == 0 ? 0 : errno = EOPNOTSUPP; }
