// Event channels: what the manager told, turned into the events of rdma_get_cm_event(3), and the library's
// own step before the program sees one.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "live/rdmacm/edge.h"
#include "live/rdmacm/host.h"
#include "live/rdmacm/id.h"
#include "live/rdmacm/sockaddrs.h"

namespace weft::live::rdmacm {
namespace {

// Only private data that a message has room for is there; the rest of the field is zero.
void show_private(const cm::CmEvent& told, const void*& data, std::uint8_t& length) {
  data = told.private_length != 0 ? told.private_data.data() : nullptr;
  length = static_cast<std::uint8_t>(std::min<std::uint32_t>(told.private_length, UINT8_MAX));
}

rdma_conn_param connection_of(const cm::CmEvent& told) {
  const cm::ConnInfo& i = told.info;
  rdma_conn_param p{};
  show_private(told, p.private_data, p.private_data_len);
  p.responder_resources = i.responder_resources;
  p.initiator_depth = i.initiator_depth;
  p.flow_control = i.flow_control ? 1 : 0;
  p.retry_count = i.retry_count;
  p.rnr_retry_count = i.rnr_retry;
  p.srq = i.srq ? 1 : 0;
  p.qp_num = i.peer_qpn.v;
  return p;
}

rdma_ud_param datagrams_of(const cm::CmEvent& told) {
  rdma_ud_param p{};
  show_private(told, p.private_data, p.private_data_len);
  p.ah_attr.is_global = 1;
  p.ah_attr.port_num = 1;
  p.ah_attr.grh.hop_limit = 64;
  p.ah_attr.grh.sgid_index = host()->facts.own.index_of(host()->facts.own.towards(told.info.peer));
  const auto& peer = told.info.peer.bytes;
  std::copy(peer.begin(), peer.end(), p.ah_attr.grh.dgid.raw);
  p.qp_num = told.info.peer_qpn.v;
  p.qkey = told.info.qkey;
  return p;
}

// The library's step, in the program's thread. False: the program is not told.
bool step(Happening& h) {
  CmId& id = *h.id;
  switch (h.type) {
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      if (id.base.qp == nullptr) return true;  // the program establishes it
      if (const int failed = take_up(id); failed != 0) {
        h.type = RDMA_CM_EVENT_CONNECT_ERROR;
        h.status = -failed;
      } else {
        h.type = RDMA_CM_EVENT_ESTABLISHED;
        id.stage = Stage::kConnected;
      }
      return true;
    case RDMA_CM_EVENT_ESTABLISHED:
      if (!is_datagram(id)) id.stage = Stage::kConnected;
      return true;
    case RDMA_CM_EVENT_REJECTED:
      static_cast<void>(fail_queue_pair(id));
      return true;
    default:
      return true;
  }
}

void fill(EventHandle& e) {
  Happening& h = e.from;
  if (h.fresh != nullptr && h.fresh->base.pd == nullptr) h.fresh->base.pd = host()->default_domain();
  e.base.id = h.fresh != nullptr ? &h.fresh->base : &h.id->base;
  e.base.listen_id = h.fresh != nullptr ? &h.id->base : nullptr;
  e.base.event = h.type;
  e.base.status = h.status;
  if (is_datagram(*h.id)) {
    e.base.param.ud = datagrams_of(h.told);
    if (h.type == RDMA_CM_EVENT_MULTICAST_JOIN || h.type == RDMA_CM_EVENT_MULTICAST_ERROR) {
      e.base.param.ud.private_data = h.context;
      e.base.param.ud.ah_attr.grh.traffic_class = h.id->tos;
    }
  } else {
    e.base.param.conn = connection_of(h.told);
  }
}

// A request that its peer withdrew before the program saw it is as if it had never been; otherwise a peer
// that asks and withdraws for ever would fill the channel. True: the identifier is gone.
bool forget_unseen(CmId& id, cm::CmEventKind kind) {
  if (kind != cm::CmEventKind::kRejected && kind != cm::CmEventKind::kUnreachable) return false;
  if (id.asks) return false;
  Happening unseen;
  if (!id.channel().queue->withdraw_one([&](const Happening& e) { return e.fresh == &id; }, unseen))
    return false;
  delete &id;
  return true;
}

constexpr const char* kNames[] = {
    "RDMA_CM_EVENT_ADDR_RESOLVED",  "RDMA_CM_EVENT_ADDR_ERROR",      "RDMA_CM_EVENT_ROUTE_RESOLVED",
    "RDMA_CM_EVENT_ROUTE_ERROR",    "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
    "RDMA_CM_EVENT_CONNECT_ERROR",  "RDMA_CM_EVENT_UNREACHABLE",     "RDMA_CM_EVENT_REJECTED",
    "RDMA_CM_EVENT_ESTABLISHED",    "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
    "RDMA_CM_EVENT_MULTICAST_JOIN", "RDMA_CM_EVENT_MULTICAST_ERROR", "RDMA_CM_EVENT_ADDR_CHANGE",
    "RDMA_CM_EVENT_TIMEWAIT_EXIT"};

}  // namespace

OwnedChannel new_channel() {
  auto channel = std::make_shared<Channel>();
  channel->queue = WaitQueue<Happening>::open();
  if (channel->queue == nullptr) return nullptr;
  channel->base.fd = channel->queue->descriptor();
  return OwnedChannel(host()->channels.enter(std::move(channel)));
}

void CloseChannel::operator()(Channel* channel) const { host()->channels.remove(channel); }

int next_event(Channel& channel, rdma_cm_event*& out) {
  auto e = std::make_unique<EventHandle>();
  for (;;) {
    if (!channel.queue->take(e->from, [](const Happening& h) { ++h.id->taken; })) return errno;
    if (step(e->from)) break;
    channel.queue->acknowledge(e->from.id->taken, 1);
  }
  fill(*e);
  out = &e.release()->base;
  return 0;
}

void acknowledge(rdma_cm_event* event) {
  const std::unique_ptr<EventHandle> e(reinterpret_cast<EventHandle*>(event));
  CmId& id = *e->from.id;
  id.channel().queue->acknowledge(id.taken, 1);
}

// --- what the manager tells ----------------------------------------------------------------------------

void CmId::tell(Happening happening) {
  happening.id = this;
  channel().queue->push(std::move(happening));
}

// A new identifier, in the listener's channel, with the request's addresses. Without memory the request is
// turned away.
ConnectionSink* CmId::Sink::requested(const cm::CmEvent& event) {
  try {
    auto fresh = std::make_unique<CmId>();
    fresh->base.verbs = host()->verbs;
    fresh->base.channel = id.base.channel;
    fresh->base.context = id.base.context;
    fresh->base.ps = id.base.ps;
    fresh->base.qp_type = id.base.qp_type;
    fresh->base.port_num = 1;
    fresh->stage = Stage::kRequested;
    fresh->conn = event.conn;
    fresh->tos = event.info.tos;
    fresh->responder_resources = event.info.responder_resources;
    fresh->initiator_depth = event.info.initiator_depth;
    const sa_family_t family = id.base.route.addr.src_addr.sa_family;
    write_endpoint({event.info.local, event.info.local_port}, family, fresh->base.route.addr.src_storage,
                   host()->interface);
    write_endpoint({event.info.peer, event.info.peer_port}, family, fresh->base.route.addr.dst_storage,
                   host()->interface);
    show_route(*fresh, event.info.local, event.info.peer);
    Happening h;
    h.type = RDMA_CM_EVENT_CONNECT_REQUEST;
    h.fresh = fresh.get();
    h.told = event;
    id.tell(std::move(h));
    return &fresh.release()->sink;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void CmId::Sink::happened(const cm::CmEvent& event) {
  using cm::CmEventKind;
  if (forget_unseen(id, event.kind)) return;
  Happening h;
  h.told = event;
  switch (event.kind) {
    case CmEventKind::kConnectResponse:
      h.type = RDMA_CM_EVENT_CONNECT_RESPONSE;
      break;
    case CmEventKind::kEstablished:
      if (id.asks) return;  // it knows: it is the one that completed it
      h.type = RDMA_CM_EVENT_ESTABLISHED;
      break;
    case CmEventKind::kRejected:
      h.type = RDMA_CM_EVENT_REJECTED;
      h.status = event.reason;
      break;
    case CmEventKind::kUnreachable:
      h.type = RDMA_CM_EVENT_UNREACHABLE;
      h.status = -ETIMEDOUT;
      break;
    case CmEventKind::kDisconnected:
      h.type = RDMA_CM_EVENT_DISCONNECTED;
      break;
    case CmEventKind::kTimewaitExit:
      h.type = RDMA_CM_EVENT_TIMEWAIT_EXIT;
      break;
    case CmEventKind::kResolved:
      h.type = RDMA_CM_EVENT_ESTABLISHED;
      break;
    case CmEventKind::kRefused:
      h.type = RDMA_CM_EVENT_UNREACHABLE;
      h.status = event.reason;
      break;
    default:
      return;
  }
  id.tell(std::move(h));
}

}  // namespace weft::live::rdmacm

using namespace weft::live::rdmacm;

WEFT_EXPORT rdma_event_channel* rdma_create_event_channel() {
  return pointer_at_edge([]() -> rdma_event_channel* {
    if (host() == nullptr) return nullptr;
    auto channel = new_channel();
    return channel == nullptr ? nullptr : &channel.release()->base;
  });
}

WEFT_EXPORT void rdma_destroy_event_channel(rdma_event_channel* channel) {
  if (channel != nullptr) CloseChannel()(reinterpret_cast<Channel*>(channel));
}

WEFT_EXPORT int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  return at_edge([&] {
    if (channel == nullptr || event == nullptr || host() == nullptr) return EINVAL;
    const auto kept = host()->channels.find(reinterpret_cast<Channel*>(channel));
    // Destroyed a moment ago: so waits a thread that came a moment before.
    while (kept == nullptr) pause();
    return next_event(*kept, *event);
  });
}

WEFT_EXPORT int rdma_ack_cm_event(rdma_cm_event* event) {
  return at_edge([&] {
    if (event == nullptr) return EINVAL;
    acknowledge(event);
    return 0;
  });
}

WEFT_EXPORT const char* rdma_event_str(rdma_cm_event_type event) {
  const auto index = weft::live::abi::raw(event);
  return index < std::size(kNames) ? kNames[index] : "UNKNOWN EVENT";
}
