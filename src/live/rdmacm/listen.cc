// The end that waits: listening, and taking requests one by one without a channel.
#include <cerrno>
#include <utility>

#include "live/abi/handles.h"
#include "live/rdmacm/edge.h"
#include "live/rdmacm/host.h"
#include "live/rdmacm/id.h"
#include "live/rdmacm/sockaddrs.h"

namespace weft::live::rdmacm {
namespace {

constexpr std::uint32_t kMostWaiting = 16384;  // of the device's own table of connections
constexpr std::uint32_t kUsualWaiting = 1024;  // Linux's, for programs that name none

constexpr int kMostPorts = 16;  // that are tried for a program that named none

int bind_anywhere(CmId& id) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  return bind(id, reinterpret_cast<const sockaddr*>(&any));
}

int listen_where_bound(CmId& id, int backlog) {
  if (id.stage != Stage::kBound) return EINVAL;
  const auto at = endpoint_of(&id.base.route.addr.src_addr);
  cm::ListenAttr a;
  a.space = static_cast<wire::PortSpace>(abi::raw(id.base.ps));
  a.port = id.own_port;
  a.local = at->address;
  a.backlog = backlog <= 0 ? kUsualWaiting
                           : std::min<std::uint32_t>(static_cast<std::uint32_t>(backlog), kMostWaiting);
  if (at->any()) a.local = {};
  const auto listener = host()->connections.listen(a, id.sink);
  if (!listener) return listener.error() == Errc::kBusy ? EADDRINUSE : abi::errno_of(listener.error());
  id.listener = *listener;
  id.stage = Stage::kListening;
  return 0;
}

// A program that has bound its id may have told others the port; for one that has not, any port does.
int listen(CmId& id, int backlog) {
  if (id.stage != Stage::kIdle) return listen_where_bound(id, backlog);
  for (int i = 0;; ++i) {
    if (const int failed = bind_anywhere(id); failed != 0) return failed;
    const int failed = listen_where_bound(id, backlog);
    if (failed != EADDRINUSE || i == kMostPorts) return failed;
    host()->ports.give_back(id.base.ps, std::exchange(id.own_port, std::uint16_t{0}));
    id.stage = Stage::kIdle;
  }
}

int get_request(CmId& listener, rdma_cm_id*& out) {
  if (!listener.waits() || listener.stage != Stage::kListening) return EINVAL;
  if (listener.base.event != nullptr) acknowledge(std::exchange(listener.base.event, nullptr));
  rdma_cm_event* event = nullptr;
  if (const int failed = next_event(*listener.own, event); failed != 0) return failed;
  if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
    const int status = event->status;
    acknowledge(event);
    return status < 0 ? -status : EINVAL;
  }
  CmId& id = id_of(event->id);
  int failed = 0;
  if (listener.endpoint) {
    ibv_qp_init_attr_ex init{};
    copy_init(*listener.endpoint, listener.base.pd, init);
    failed = create_queue_pair(id, init);
  }
  if (failed == 0) failed = migrate(id, nullptr);
  if (failed != 0) {
    acknowledge(event);
    rdma_destroy_ep(&id.base);
    return failed;
  }
  // The event is the new identifier's from here on: it has the private data, and is counted with the
  // listener.
  event->listen_id = nullptr;
  id.base.event = event;
  out = &id.base;
  return 0;
}

}  // namespace
}  // namespace weft::live::rdmacm

using namespace weft;
using namespace weft::live;
using namespace weft::live::rdmacm;

WEFT_EXPORT int rdma_listen(rdma_cm_id* id, int backlog) {
  return rdmacm::at_edge([&] { return rdmacm::listen(id_of(id), backlog); });
}

WEFT_EXPORT int rdma_get_request(rdma_cm_id* listener, rdma_cm_id** id) {
  return rdmacm::at_edge([&] { return get_request(id_of(listener), *id); });
}
