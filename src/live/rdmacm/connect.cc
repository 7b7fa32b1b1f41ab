// Connections from the end that asks, and what both ends do: disconnect, notify, and the queue pair's fall.
// Datagram services are looked up instead (SIDR): one question, one answer.
#include <algorithm>
#include <cerrno>
#include <new>

#include "live/abi/handles.h"
#include "live/rdmacm/edge.h"
#include "live/rdmacm/host.h"
#include "live/rdmacm/id.h"
#include "live/rdmacm/sockaddrs.h"

namespace weft::live::rdmacm {
namespace {

// The time-out code of queue pairs, 1.07 s, unless the program chooses another (RDMA_OPTION_ID_ACK_TIMEOUT):
// a peer that gets no processor for some seconds is not dead.
constexpr std::uint8_t kAckTimeout = 18;

std::span<const std::uint8_t> private_of(const rdma_conn_param* p) {
  if (p == nullptr || p->private_data == nullptr) return {};
  return {static_cast<const std::uint8_t*>(p->private_data), p->private_data_len};
}

// RDMA_MAX_RESP_RES and RDMA_MAX_INIT_DEPTH ask for whatever the device has.
std::uint8_t at_most(std::uint8_t asked, std::uint32_t limit) {
  return static_cast<std::uint8_t>(std::min<std::uint32_t>(asked, limit));
}

std::uint8_t at_most_seven(std::uint8_t count) { return std::min<std::uint8_t>(count, 7); }

// From the moment that the request leaves, the thread in rdma_get_cm_event() may take the next step: all is
// written before.
template <class Request>
int ask(CmId& id, const Request& request) {
  id.asks = true;
  id.stage = Stage::kConnecting;
  Outcome<void> done = fail(Errc::kNoMemory);
  try {
    done = request();
  } catch (const std::bad_alloc&) {  // as if it had said so: the program may try again
  }
  if (!done) {
    id.asks = false;
    id.stage = Stage::kResolved;
    return abi::errno_of(done.error());
  }
  return complete(id);
}

int look_up(CmId& id, const Endpoint& peer, const rdma_conn_param* p) {
  cm::ResolveAttr a;
  a.local = host()->facts.own.towards(peer.address);
  a.peer = peer.address;
  a.local_port = id.own_port;
  a.port = peer.port;
  a.private_data = private_of(p);
  return ask(id, [&] { return host()->connections.resolve(a, id.sink, id.conn); });
}

}  // namespace

int connect(CmId& id, const rdma_conn_param* p) {
  if (id.stage != Stage::kResolved || id.base.route.num_paths == 0) return EINVAL;
  const auto peer = endpoint_of(&id.base.route.addr.dst_addr);
  if (!peer) return EINVAL;
  if (is_datagram(id)) return look_up(id, *peer, p);
  if (id.base.qp == nullptr && p == nullptr) return EINVAL;
  const Attributes& facts = host()->facts;
  cm::ConnectAttr a;
  a.local = facts.own.towards(peer->address);
  a.peer = peer->address;
  a.space = static_cast<wire::PortSpace>(abi::raw(id.base.ps));
  a.local_port = id.own_port;
  a.port = peer->port;
  a.type = static_cast<QpType>(abi::raw(id.base.qp_type));
  a.qpn = {id.base.qp != nullptr ? id.base.qp->qp_num : p->qp_num};
  a.mtu = facts.active_mtu;
  a.responder_resources = at_most(p != nullptr ? p->responder_resources : UINT8_MAX, facts.max_qp_rd_atomic);
  a.initiator_depth = at_most(p != nullptr ? p->initiator_depth : UINT8_MAX, facts.max_qp_init_rd_atomic);
  a.retry_count = at_most_seven(p != nullptr ? p->retry_count : 7);
  a.rnr_retry = at_most_seven(p != nullptr ? p->rnr_retry_count : 7);
  a.flow_control = p != nullptr && p->flow_control != 0;
  a.srq = id.base.qp != nullptr ? id.base.qp->srq != nullptr : p->srq != 0;
  a.ack_timeout = id.ack_timeout != 0 ? id.ack_timeout : kAckTimeout;
  a.tos = id.tos;
  a.private_data = private_of(p);
  return ask(id, [&] { return host()->connections.connect(a, id.sink, id.conn); });
}

int take_up(CmId& id) {
  Connections& c = host()->connections;
  const auto done = c.complete(*id.conn, id.sink, *abi::handle_of<abi::QpHandle>(id.base.qp).engine);
  if (done) {
    show_connected(id);
    return 0;
  }
  c.forget(*id.conn, id.sink);
  id.conn.reset();
  return abi::errno_of(done.error());
}

int fail_queue_pair(CmId& id) {
  if (id.base.qp == nullptr || is_datagram(id)) return 0;
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(id.base.qp, &error, IBV_QP_STATE);
}

namespace {

int accept_datagrams(CmId& id, const rdma_conn_param* p) {
  if (id.base.qp == nullptr && p == nullptr) return EINVAL;
  cm::AnswerAttr a;
  a.qpn = {id.base.qp != nullptr ? id.base.qp->qp_num : p->qp_num};
  a.qkey = RDMA_UDP_QKEY;
  a.private_data = private_of(p);
  const auto done = host()->connections.answer(*id.conn, id.sink, a);
  if (!done) return abi::errno_of(done.error());
  id.conn.reset();
  id.stage = Stage::kConnected;
  return 0;
}

int accept(CmId& id, const rdma_conn_param* p) {
  if (id.stage != Stage::kRequested || !id.conn) return EINVAL;
  if (is_datagram(id)) return accept_datagrams(id, p);
  if (id.base.qp == nullptr && p == nullptr) return EINVAL;
  const Attributes& facts = host()->facts;
  cm::AcceptAttr a;
  a.qpn = {id.base.qp != nullptr ? id.base.qp->qp_num : p->qp_num};
  a.responder_resources =
      at_most(p != nullptr ? p->responder_resources : id.responder_resources, facts.max_qp_rd_atomic);
  a.initiator_depth =
      at_most(p != nullptr ? p->initiator_depth : id.initiator_depth, facts.max_qp_init_rd_atomic);
  a.rnr_retry = at_most_seven(p != nullptr ? p->rnr_retry_count : 7);
  a.flow_control = p != nullptr && p->flow_control != 0;
  a.srq = id.base.qp != nullptr ? id.base.qp->srq != nullptr : p->srq != 0;
  a.private_data = private_of(p);
  Qp* const engine = id.base.qp != nullptr ? abi::handle_of<abi::QpHandle>(id.base.qp).engine : nullptr;
  id.stage = Stage::kConnecting;  // before the answer leaves, as above
  const auto done = host()->connections.accept(*id.conn, id.sink, a, engine);
  if (!done) {
    id.stage = Stage::kRequested;
    return abi::errno_of(done.error());
  }
  if (engine != nullptr) show_connected(id);
  return complete(id);
}

int reject(CmId& id, const void* data, std::uint8_t length) {
  if (!id.conn) return EINVAL;
  const std::span<const std::uint8_t> bytes(static_cast<const std::uint8_t*>(data),
                                            data != nullptr ? length : std::size_t{0});
  Outcome<void> done;
  if (is_datagram(id)) {
    cm::AnswerAttr a;
    a.status = wire::kSidrRejected;
    a.private_data = bytes;
    done = host()->connections.answer(*id.conn, id.sink, a);
  } else {
    done = host()->connections.reject(*id.conn, id.sink, bytes);
  }
  if (!done) return abi::errno_of(done.error());
  id.conn.reset();
  return 0;
}

int disconnect(CmId& id) {
  if (is_datagram(id) || !id.conn) return EINVAL;
  if (id.stage != Stage::kConnected && id.stage != Stage::kConnecting) return EINVAL;
  if (const int failed = fail_queue_pair(id); failed != 0) return failed;
  const auto done = host()->connections.disconnect(*id.conn, id.sink);
  // A connection whose time wait is over is gone: there is nothing left to disconnect.
  if (!done && done.error() != Errc::kNotFound) return abi::errno_of(done.error());
  return done ? complete(id) : 0;
}

}  // namespace
}  // namespace weft::live::rdmacm

using namespace weft;
using namespace weft::live;
using namespace weft::live::rdmacm;

WEFT_EXPORT int rdma_connect(rdma_cm_id* id, rdma_conn_param* param) {
  return rdmacm::at_edge([&] { return rdmacm::connect(id_of(id), param); });
}

WEFT_EXPORT int rdma_establish(rdma_cm_id* id) {
  return rdmacm::at_edge([&] {
    CmId& i = id_of(id);
    if (i.base.qp != nullptr || !i.conn) return EINVAL;
    const auto done = host()->connections.establish(*i.conn, i.sink);
    if (done) i.stage = Stage::kConnected;
    return done ? 0 : abi::errno_of(done.error());
  });
}

WEFT_EXPORT int rdma_accept(rdma_cm_id* id, rdma_conn_param* param) {
  return rdmacm::at_edge([&] { return rdmacm::accept(id_of(id), param); });
}

WEFT_EXPORT int rdma_reject(rdma_cm_id* id, const void* data, std::uint8_t length) {
  return rdmacm::at_edge([&] { return reject(id_of(id), data, length); });
}

WEFT_EXPORT int rdma_reject_ece(rdma_cm_id* id, const void* data, std::uint8_t length) {
  return rdma_reject(id, data, length);
}

WEFT_EXPORT int rdma_disconnect(rdma_cm_id* id) {
  return rdmacm::at_edge([&] { return disconnect(id_of(id)); });
}

// Other events than this one change nothing for the manager.
WEFT_EXPORT int rdma_notify(rdma_cm_id* id, ibv_event_type event) {
  return rdmacm::at_edge([&] {
    CmId& i = id_of(id);
    if (!i.conn) return EINVAL;
    if (abi::raw(event) != IBV_EVENT_COMM_EST) return 0;
    const auto done = host()->connections.notify(*i.conn, i.sink);
    return done ? 0 : abi::errno_of(done.error());
  });
}

// What peers negotiate in the ECE words is the mode, which is the device's affair and not the program's.
WEFT_EXPORT int rdma_set_local_ece(rdma_cm_id*, ibv_ece* ece) {
  return rdmacm::at_edge([&] { return ece->vendor_id == 0 ? 0 : EOPNOTSUPP; });
}
WEFT_EXPORT int rdma_get_remote_ece(rdma_cm_id*, ibv_ece* ece) {
  *ece = {};
  return 0;
}
