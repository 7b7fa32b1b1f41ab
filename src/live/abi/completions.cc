// Completion queues, their channels, and asynchronous events.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "live/abi/handles.h"

namespace weft::live::abi {
namespace {

CqHandle& extended(ibv_cq_ex* cq) { return *reinterpret_cast<CqHandle*>(cq); }

// --- the polling functions of ibv_cq_ex ---

int next_poll(ibv_cq_ex* cq) {
  CqHandle& h = extended(cq);
  if (engine_of(cq->context).poll_cq(h.engine, {&h.current, 1}) == 0)
    return h.engine->overran.load(std::memory_order_relaxed) ? EIO : ENOENT;
  cq->status = static_cast<ibv_wc_status>(h.current.status);
  cq->wr_id = h.current.wr_id;
  return 0;
}
int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  if (attr != nullptr && attr->comp_mask != 0) return EINVAL;
  return next_poll(cq);
}
void end_poll(ibv_cq_ex*) {}
ibv_wc_opcode read_opcode(ibv_cq_ex* cq) { return static_cast<ibv_wc_opcode>(extended(cq).current.opcode); }
std::uint32_t read_vendor_err(ibv_cq_ex*) { return 0; }
std::uint32_t read_byte_len(ibv_cq_ex* cq) { return extended(cq).current.byte_len; }
__be32 read_imm_data(ibv_cq_ex* cq) { return extended(cq).current.imm; }
std::uint32_t read_qp_num(ibv_cq_ex* cq) { return extended(cq).current.qpn.v; }
std::uint32_t read_src_qp(ibv_cq_ex* cq) { return extended(cq).current.src_qp.v; }
unsigned read_wc_flags(ibv_cq_ex* cq) { return wc_flags_of(extended(cq).current.flags); }
std::uint32_t read_slid(ibv_cq_ex*) { return 0; }
std::uint8_t read_sl(ibv_cq_ex* cq) { return kind_of_frame(extended(cq).current.flags); }
std::uint8_t read_dlid_path_bits(ibv_cq_ex*) { return 0; }

// Programs read the count; the engine keeps its own.
void count_use(ibv_comp_channel* channel, int more) {
  if (channel == nullptr) return;
  pthread_mutex_lock(&channel->context->mutex);
  channel->refcnt += more;
  pthread_mutex_unlock(&channel->context->mutex);
}

// A program that counts one completion of its own at a time may still have two where an ACK is lost
// (perftest's ib_send_lat -e), and NICs that round sizes up let it.
constexpr int kFewestEntries = 2;

CqHandle* create(ibv_context* context, int entries, void* cookie, ibv_comp_channel* channel,
                 const PdHandle* domain = nullptr) {
  if (entries <= 0) return refuse(EINVAL);
  const ChannelHandle* const reports = channel != nullptr ? find<ChannelHandle>(channel, context) : nullptr;
  if (channel != nullptr && reports == nullptr) return refuse(EINVAL);
  NewHandle<CqHandle> h(context, domain != nullptr ? domain->home_for(Resource::kCompletionQueue) : Home{});
  const auto cq = engine_of(context).create_cq(static_cast<std::uint32_t>(std::max(entries, kFewestEntries)),
                                               reports != nullptr ? reports->engine : nullptr, h.get());
  if (!cq) return refuse(errno_of(cq.error()));
  h->engine = *cq;
  h->base.context = context;
  h->base.channel = channel;
  h->base.cq_context = cookie;
  h->base.handle = h->engine->id.v;
  h->base.cqe = static_cast<int>(h->engine->entries);
  pthread_mutex_init(&h->base.mutex, nullptr);
  pthread_cond_init(&h->base.cond, nullptr);
  count_use(channel, 1);
  return h.publish(h->base.handle, {domain});
}

// --- events ---

ibv_event_type type_of(DeviceEventKind kind) {
  switch (kind) {
    case DeviceEventKind::kCqError:
      return IBV_EVENT_CQ_ERR;
    case DeviceEventKind::kQpFatal:
      return IBV_EVENT_QP_FATAL;
    case DeviceEventKind::kQpRequestError:
      return IBV_EVENT_QP_REQ_ERR;
    case DeviceEventKind::kQpAccessError:
      return IBV_EVENT_QP_ACCESS_ERR;
    case DeviceEventKind::kCommEstablished:
      return IBV_EVENT_COMM_EST;
    case DeviceEventKind::kSqDrained:
      return IBV_EVENT_SQ_DRAINED;
    case DeviceEventKind::kSrqLimit:
      return IBV_EVENT_SRQ_LIMIT_REACHED;
    case DeviceEventKind::kLastWqeReached:
      return IBV_EVENT_QP_LAST_WQE_REACHED;
    case DeviceEventKind::kCompletion:
      break;
  }
  return IBV_EVENT_DEVICE_FATAL;
}

}  // namespace

namespace {
ibv_cq_ex* create_extended(ibv_context* context, ibv_cq_init_attr_ex* init) {
  constexpr std::uint64_t kReadable = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
                                      IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
                                      IBV_WC_EX_WITH_DLID_PATH_BITS;
  constexpr std::uint32_t kMasks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  // "Single threaded" promises us less work, and may be ignored.
  constexpr std::uint32_t kFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  if ((init->wc_flags & ~kReadable) != 0 || (init->comp_mask & ~kMasks) != 0 ||
      ((init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 && (init->flags & ~kFlags) != 0))
    return refuse(EOPNOTSUPP);
  if (init->comp_vector != 0 || init->cqe > INT_MAX) return refuse(EINVAL);
  const PdHandle* domain = nullptr;
  if ((init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0) {
    domain = find<PdHandle>(init->parent_domain, context);
    if (domain == nullptr || !domain->is_parent) return refuse(EINVAL);
  }
  CqHandle* const h = create(context, static_cast<int>(init->cqe), init->cq_context, init->channel, domain);
  if (h == nullptr) return nullptr;
  ibv_cq_ex& c = h->base;
  c.start_poll = start_poll;
  c.next_poll = next_poll;
  c.end_poll = end_poll;
  c.read_opcode = read_opcode;
  c.read_vendor_err = read_vendor_err;
  c.read_byte_len = read_byte_len;
  c.read_imm_data = read_imm_data;
  c.read_qp_num = read_qp_num;
  c.read_src_qp = read_src_qp;
  c.read_wc_flags = read_wc_flags;
  c.read_slid = read_slid;
  c.read_sl = read_sl;
  c.read_dlid_path_bits = read_dlid_path_bits;
  return &c;
}
}  // namespace

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* init) {
  return at_edge([&] { return create_extended(context, init); });
}

}  // namespace weft::live::abi

using namespace weft;
using namespace weft::live;
using namespace weft::live::abi;

// --- channels ---

WEFT_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return at_edge([&]() -> ibv_comp_channel* {
    NewHandle<ChannelHandle> h(context);
    const auto channel = engine_of(context).create_channel();
    if (!channel) return refuse(errno_of(channel.error()));
    h->engine = *channel;
    h->base.context = context;
    h->base.fd = engine_of(context).channel_fd(*channel);
    return &h.publish(number_of(h->base))->base;
  });
}

WEFT_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return at_edge([&] {
    return destroy<ChannelHandle>(channel, [](ChannelHandle& h) {
      return answer(engine_of(h.base.context).destroy_channel(h.engine));
    });
  });
}

WEFT_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cookie) {
  const Cq* const got = engine_of(channel->context).get_cq_event(handle_of<ChannelHandle>(channel).engine);
  if (got == nullptr) return -1;
  auto* const h = static_cast<CqHandle*>(got->cookie);
  *cq = ibv_cq_ex_to_cq(&h->base);
  *cookie = h->base.cq_context;
  return 0;
}

WEFT_EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  engine_of(cq->context).ack_cq_events(handle_of<CqHandle>(cq).engine, count);
}

// --- queues ---

WEFT_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cookie, ibv_comp_channel* channel,
                                  int vector) {
  return at_edge([&]() -> ibv_cq* {
    if (vector < 0 || vector >= context->num_comp_vectors) return refuse(EINVAL);
    CqHandle* const h = create(context, entries, cookie, channel);
    return h != nullptr ? ibv_cq_ex_to_cq(&h->base) : nullptr;
  });
}

WEFT_EXPORT int ibv_resize_cq(ibv_cq* cq, int entries) {
  return at_edge([&] {
    const CqHandle* const h = find<CqHandle>(cq);
    if (h == nullptr || entries <= 0) return EINVAL;
    const auto size = static_cast<std::uint32_t>(entries);
    const int failed = answer(engine_of(cq->context).resize_cq(h->engine, size));
    if (failed == 0) cq->cqe = static_cast<int>(h->engine->entries);
    return failed;
  });
}

WEFT_EXPORT int ibv_destroy_cq(ibv_cq* cq) {
  return at_edge([&] {
    return destroy<CqHandle>(cq, [](CqHandle& h) {
      const int failed = answer(engine_of(h.base.context).destroy_cq(h.engine));
      if (failed == 0) count_use(h.base.channel, -1);
      return failed;
    });
  });
}

// --- asynchronous events ---

WEFT_EXPORT int ibv_get_async_event(ibv_context* context, ibv_async_event* out) {
  AsyncEvent e;
  if (!engine_of(context).get_async_event(e)) return -1;
  *out = {};
  out->event_type = type_of(e.kind);
  if (e.cq != nullptr) {
    out->element.cq = reinterpret_cast<ibv_cq*>(e.cq->cookie);
  } else if (e.srq != nullptr) {
    out->element.srq = static_cast<ibv_srq*>(e.srq->cookie);
  } else {
    out->element.qp = static_cast<ibv_qp*>(e.qp->cookie);
  }
  return 0;
}

WEFT_EXPORT void ibv_ack_async_event(ibv_async_event* event) {
  AsyncEvent e;
  ibv_context* context = nullptr;
  switch (raw(event->event_type)) {
    case IBV_EVENT_CQ_ERR:
      context = event->element.cq->context;
      e.kind = DeviceEventKind::kCqError;
      e.cq = handle_of<CqHandle>(event->element.cq).engine;
      break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_SRQ_ERR:
      context = event->element.srq->context;
      e.kind = DeviceEventKind::kSrqLimit;
      e.srq = handle_of<SrqHandle>(event->element.srq).engine;
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      context = event->element.qp->context;
      e.kind = DeviceEventKind::kQpFatal;
      e.qp = handle_of<QpHandle>(event->element.qp).engine;
      break;
    default:
      return;  // not one of ours
  }
  engine_of(context).ack_async_event(e);
}
