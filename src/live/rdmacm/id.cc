// Identifiers: made, ended, moved between channels, and their options.
#include "live/rdmacm/id.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "live/rdmacm/edge.h"
#include "live/rdmacm/host.h"

namespace weft::live::rdmacm {

CmId::CmId() = default;
CmId::~CmId() = default;

bool is_datagram(const CmId& id) { return id.base.qp_type == IBV_QPT_UD; }

namespace {

ibv_qp_type type_of(rdma_port_space space) {
  return space == RDMA_PS_UDP || space == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

bool known(unsigned space) {
  return space == RDMA_PS_TCP || space == RDMA_PS_UDP || space == RDMA_PS_IPOIB || space == RDMA_PS_IB;
}

}  // namespace

int create(rdma_event_channel* channel, void* context, rdma_port_space space, ibv_qp_type type,
           std::unique_ptr<CmId>& out) {
  if (!known(abi::raw(space))) return EPROTONOSUPPORT;
  if (host() == nullptr) return errno;
  auto id = std::make_unique<CmId>();
  if (channel == nullptr) {
    id->own = new_channel();
    if (id->own == nullptr) return errno;
    channel = &id->own->base;
  }
  id->base.channel = channel;
  id->base.context = context;
  id->base.ps = space;
  id->base.qp_type = type;
  out = std::move(id);
  return 0;
}

// Requests that the program has not seen go with their listener. The identifier's own events do, too, and
// those that it has seen must be acknowledged before (rdma_destroy_id(3)).
void destroy(CmId& id) {
  Host& h = *host();
  if (id.listener) h.connections.close(*id.listener);
  if (id.conn) h.connections.forget(*id.conn, id.sink);
  detach_groups(id);
  auto& queue = *id.channel().queue;
  const auto about = [&](const Happening& e) { return e.id == &id; };
  for (Happening unseen; queue.withdraw_one(about, unseen);) {
    if (unseen.fresh != nullptr) destroy(*unseen.fresh);
  }
  if (id.waits() && id.base.event != nullptr) acknowledge(std::exchange(id.base.event, nullptr));
  queue.retire(about, id.taken);
  if (id.own_port != 0) h.ports.give_back(id.base.ps, id.own_port);
  delete &id;
}

int complete(CmId& id) {
  if (!id.waits()) return 0;
  if (id.base.event != nullptr) acknowledge(std::exchange(id.base.event, nullptr));
  if (const int failed = next_event(*id.own, id.base.event); failed != 0) return failed;
  const rdma_cm_event& e = *id.base.event;
  if (e.event == RDMA_CM_EVENT_REJECTED) return ECONNREFUSED;
  return e.status < 0 ? -e.status : e.status;
}

namespace {
// With what is still to be told of it, and with its requests that the program has not seen.
void move(CmId& id, rdma_event_channel* to) {
  auto waiting = id.channel().queue->withdraw([&](const Happening& e) { return e.id == &id; });
  id.base.channel = to;
  for (Happening& e : waiting) {
    if (e.fresh != nullptr) move(*e.fresh, to);
    id.channel().queue->push(std::move(e));
  }
}
}  // namespace

// Events that wait move along; those that were taken must be acknowledged first, for their acknowledgement
// looks for the channel that they came from.
int migrate(CmId& id, rdma_event_channel* to) {
  OwnedChannel own;
  if (to == nullptr) {
    own = new_channel();
    if (own == nullptr) return errno;
    to = &own->base;
  }
  if (id.waits() && id.base.event != nullptr) acknowledge(std::exchange(id.base.event, nullptr));
  id.channel().queue->await_acknowledged(id.taken);
  host()->connections.quietly([&] { move(id, to); });
  id.own = std::move(own);
  return 0;
}

namespace {

template <class Value>
bool read_option(const void* from, std::size_t length, Value& to) {
  if (from == nullptr || length != sizeof to) return false;
  std::memcpy(&to, from, sizeof to);
  return true;
}

int set_option(CmId& id, int level, int name, const void* value, std::size_t length) {
  std::uint8_t byte = 0;
  int number = 0;
  if (level != RDMA_OPTION_ID) return level == RDMA_OPTION_IB ? EOPNOTSUPP : ENOSYS;
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      if (!read_option(value, length, byte)) return EINVAL;
      id.tos = byte;
      return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (!read_option(value, length, byte) || byte > 31) return EINVAL;
      id.ack_timeout = byte;
      return 0;
    case RDMA_OPTION_ID_REUSEADDR:
      if (!read_option(value, length, number)) return EINVAL;
      id.reuse_address = number != 0;
      return 0;
    case RDMA_OPTION_ID_AFONLY:  // an address that is no wildcard is of one family anyway
      return read_option(value, length, number) ? 0 : EINVAL;
    default:
      return ENOSYS;
  }
}

}  // namespace
}  // namespace weft::live::rdmacm

using namespace weft::live::rdmacm;

WEFT_EXPORT int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** out, void* context,
                               rdma_port_space space) {
  return at_edge([&] {
    std::unique_ptr<CmId> id;
    if (const int failed = create(channel, context, space, type_of(space), id); failed != 0) return failed;
    *out = &id.release()->base;
    return 0;
  });
}

WEFT_EXPORT int rdma_destroy_id(rdma_cm_id* id) {
  return at_edge([&] {
    if (id == nullptr) return EINVAL;
    destroy(id_of(id));
    return 0;
  });
}

WEFT_EXPORT int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  return at_edge([&] { return migrate(id_of(id), channel); });
}

WEFT_EXPORT int rdma_set_option(rdma_cm_id* id, int level, int name, void* value, std::size_t length) {
  return at_edge([&] { return set_option(id_of(id), level, name, value, length); });
}
