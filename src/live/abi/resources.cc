// Memory regions and windows, shared receive queues.
#include <cerrno>
#include <climits>

#include "live/abi/handles.h"

namespace weft::live::abi {
namespace {

// Bits a program may set without our doing anything: hints.
constexpr unsigned kIgnored = unsigned{IBV_ACCESS_HUGETLB} | unsigned{IBV_ACCESS_OPTIONAL_RANGE};
constexpr unsigned kKnown = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                            IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED;

static_assert(IBV_ACCESS_LOCAL_WRITE == int{kLocalWrite} && IBV_ACCESS_REMOTE_WRITE == int{kRemoteWrite} &&
              IBV_ACCESS_REMOTE_READ == int{kRemoteRead} && IBV_ACCESS_REMOTE_ATOMIC == int{kRemoteAtomic} &&
              IBV_ACCESS_MW_BIND == int{kMwBind} && IBV_ACCESS_ZERO_BASED == int{kZeroBased});
static_assert(IBV_REREG_MR_CHANGE_TRANSLATION == int{kChangeRange} &&
              IBV_REREG_MR_CHANGE_PD == int{kChangePd} && IBV_REREG_MR_CHANGE_ACCESS == int{kChangeAccess});

}  // namespace

ibv_mr* register_memory(ibv_pd* pd, void* memory, std::size_t length, std::uint64_t iova, unsigned access,
                        const void* lies_in) {
  access &= ~kIgnored;
  if ((access & ~kKnown) != 0) return refuse(EOPNOTSUPP);
  const PdHandle* const domain = find<PdHandle>(pd);
  if (domain == nullptr) return refuse(EINVAL);
  NewHandle<MrHandle> h(pd->context);
  const auto mr =
      engine_of(pd->context).register_mr(domain->id, memory, length, iova, static_cast<std::uint8_t>(access));
  if (!mr) return refuse(errno_of(mr.error()));
  h->lkey = mr->lkey;
  h->base.context = pd->context;
  h->base.pd = pd;
  h->base.addr = memory;
  h->base.length = length;
  h->base.handle = mr->lkey.v >> 8U;
  h->base.lkey = mr->lkey.v;
  h->base.rkey = mr->rkey.v;
  return &h.publish(h->base.handle, {pd, lies_in})->base;
}

namespace {

ibv_srq* create_srq(ibv_context* context, ibv_pd* pd, void* cookie, ibv_srq_attr& attr) {
  const PdHandle* const domain = find<PdHandle>(pd, context);
  if (domain == nullptr) return refuse(EINVAL);
  NewHandle<SrqHandle> h(context, domain->home_for(Resource::kSharedReceives));
  // The limit of creation is ignored, as libibverbs documents; modify sets it.
  const auto srq =
      engine_of(context).create_srq(domain->id, {attr.max_wr, attr.max_sge, 0}, h.get(), domain->shard);
  if (!srq) return refuse(errno_of(srq.error()));
  h->engine = *srq;
  attr.max_wr = h->engine->granted.max_wr;
  attr.max_sge = h->engine->granted.max_sge;
  h->base.context = context;
  h->base.srq_context = cookie;
  h->base.pd = pd;
  h->base.handle = h->engine->id.v;
  pthread_mutex_init(&h->base.mutex, nullptr);
  pthread_cond_init(&h->base.cond, nullptr);
  return &h.publish(h->base.handle, {pd})->base;
}

}  // namespace

namespace {
ibv_mw* new_window(ibv_pd* pd, WindowType type) {
  const PdHandle* const domain = find<PdHandle>(pd);
  if (domain == nullptr) return refuse(EINVAL);
  NewHandle<MwHandle> h(pd->context);
  const auto key = engine_of(pd->context).alloc_window(domain->id, type);
  if (!key) return refuse(errno_of(key.error()));
  h->base.context = pd->context;
  h->base.pd = pd;
  h->base.rkey = key->v;
  h->key = *key;
  h->base.handle = key->v >> 8U;
  h->base.type = type == WindowType::k1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
  return &h.publish(h->base.handle, {pd})->base;
}
}  // namespace

ibv_mw* alloc_window(ibv_pd* pd, ibv_mw_type type) {
  return at_edge([&]() -> ibv_mw* {
    switch (raw(type)) {
      case IBV_MW_TYPE_1:
        return new_window(pd, WindowType::k1);
      case IBV_MW_TYPE_2:
        return new_window(pd, WindowType::k2);
      default:
        return refuse(EINVAL);
    }
  });
}

// Type 1: the new key is ours to choose, and known as soon as the request is posted.
int bind_window(ibv_qp* qp, ibv_mw* window, ibv_mw_bind* bind) {
  ibv_send_wr wr{};
  wr.wr_id = bind->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = window;
  wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  wr.bind_mw.bind_info = bind->bind_info;
  ibv_send_wr* bad = nullptr;
  return post_send(qp, &wr, &bad);
}

int dealloc_window(ibv_mw* window) {
  return at_edge([&] {
    return destroy<MwHandle>(
        window, [](MwHandle& h) { return answer(engine_of(h.base.context).dealloc_window(h.key)); });
  });
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* init) {
  return at_edge([&]() -> ibv_srq* {
    const bool basic =
        (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || raw(init->srq_type) == IBV_SRQT_BASIC;
    if (!basic) return refuse(EOPNOTSUPP);
    if ((init->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0) return refuse(EINVAL);
    return create_srq(context, init->pd, init->srq_context, init->attr);
  });
}

}  // namespace weft::live::abi

using namespace weft;
using namespace weft::live;
using namespace weft::live::abi;

WEFT_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* memory, std::size_t length, int access) {
  return ibv_reg_mr_iova2(pd, memory, length, reinterpret_cast<std::uint64_t>(memory),
                          static_cast<unsigned>(access));
}
WEFT_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* memory, std::size_t length, std::uint64_t iova,
                                    int access) {
  return ibv_reg_mr_iova2(pd, memory, length, iova, static_cast<unsigned>(access));
}
WEFT_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* memory, std::size_t length, std::uint64_t iova,
                                     unsigned access) {
  return at_edge([&] { return register_memory(pd, memory, length, iova, access); });
}
WEFT_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
  return refuse(EOPNOTSUPP);
}
// The keys stay, so a peer that holds them reaches the region as it is now.
WEFT_EXPORT int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* memory, std::size_t length,
                             int access) {
  return at_edge([&]() -> int {
    const auto refused = [](ibv_rereg_mr_err_code how, int why) {
      errno = why;
      return how;
    };
    constexpr int kChanges =
        IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
    const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
    const bool changes_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
    const MrHandle* const h = find<MrHandle>(mr);
    const PdHandle* const domain = changes_pd && pd != nullptr ? find<PdHandle>(pd) : nullptr;
    if (h == nullptr || (flags & ~kChanges) != 0 || (moves && (memory == nullptr || length == 0)) ||
        (access != 0 && (flags & IBV_REREG_MR_CHANGE_ACCESS) == 0) ||
        (changes_pd && (domain == nullptr || pd->context != mr->context)))
      return refused(IBV_REREG_MR_ERR_INPUT, EINVAL);
    const unsigned rights = static_cast<unsigned>(access) & ~kIgnored;
    if ((rights & ~kKnown) != 0) return refused(IBV_REREG_MR_ERR_CMD, EOPNOTSUPP);
    const auto done =
        engine_of(mr->context)
            .reregister_mr(h->lkey, static_cast<std::uint8_t>(flags), changes_pd ? domain->id : PdId{},
                           memory, length, static_cast<std::uint8_t>(rights));
    if (!done) return refused(IBV_REREG_MR_ERR_CMD, errno_of(done.error()));
    if (changes_pd) {
      mr->pd = pd;
      objects().set_first_need(mr, pd);
    }
    if (moves) {
      mr->addr = memory;
      mr->length = length;
    }
    return 0;
  });
}
WEFT_EXPORT int ibv_dereg_mr(ibv_mr* mr) {
  return at_edge([&] {
    return destroy<MrHandle>(
        mr, [](MrHandle& h) { return answer(engine_of(h.base.context).deregister_mr(h.lkey)); });
  });
}

WEFT_EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  return at_edge([&] { return create_srq(pd->context, pd, init->srq_context, init->attr); });
}

WEFT_EXPORT int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  return at_edge([&] {
    const SrqHandle* const h = find<SrqHandle>(srq);
    if (h == nullptr || (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
    if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
    if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
    return answer(engine_of(srq->context).set_srq_limit(h->engine, attr->srq_limit));
  });
}

WEFT_EXPORT int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* out) {
  return at_edge([&] {
    const SrqHandle* const h = find<SrqHandle>(srq);
    if (h == nullptr) return EINVAL;
    const auto caps = engine_of(srq->context).query_srq(h->engine);
    if (caps) *out = {caps->max_wr, caps->max_sge, caps->limit};
    return answer(caps);
  });
}

WEFT_EXPORT int ibv_destroy_srq(ibv_srq* srq) {
  return at_edge([&] {
    return destroy<SrqHandle>(
        srq, [](SrqHandle& h) { return answer(engine_of(h.base.context).destroy_srq(h.engine)); });
  });
}

// --- what we do not have ---

WEFT_EXPORT int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, std::uint8_t*, std::uint16_t*) {
  return errno = EOPNOTSUPP;
}
