#include "channel_bench/plain_cm.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "channel_tools/session.h"

namespace weft::bench {
namespace {

using tools::now_ns;

constexpr int kResolveMs = 2000;
constexpr int kAnswerMs = 10'000;

Error last(const char* what) { return {std::string(what) + ": " + std::strerror(errno)}; }

sockaddr_in address_of(const std::string& text, std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  inet_pton(AF_INET, text.c_str(), &at.sin_addr);
  return at;
}

// A channel of events and what is open on it.
class Ids {
 public:
  Ids() : events_(rdma_create_event_channel()) {
    if (events_ != nullptr) fcntl(events_->fd, F_SETFL, fcntl(events_->fd, F_GETFL) | O_NONBLOCK);
  }
  ~Ids() {
    while (!open_.empty()) close(open_.begin()->first);
    if (events_ != nullptr) rdma_destroy_event_channel(events_);
  }
  Ids(const Ids&) = delete;
  Ids& operator=(const Ids&) = delete;

  rdma_event_channel* events() const { return events_; }

  rdma_cm_id* make() {
    rdma_cm_id* id = nullptr;
    if (events_ == nullptr || rdma_create_id(events_, &id, nullptr, RDMA_PS_TCP) != 0) return nullptr;
    open_[id] = nullptr;
    return id;
  }
  void keep(rdma_cm_id* id) { open_[id] = nullptr; }

  // A queue pair with a completion queue, as small as a channel's of the storm.
  bool give_queue_pair(rdma_cm_id* id) {
    constexpr std::uint32_t kEntries = 16;
    ibv_cq* const cq = ibv_create_cq(id->verbs, 2 * kEntries, nullptr, nullptr, 0);
    if (cq == nullptr) return false;
    open_[id] = cq;
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = {kEntries, kEntries, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    return rdma_create_qp(id, nullptr, &init) == 0;
  }
  void close(rdma_cm_id* id) {
    const auto it = open_.find(id);
    if (it == open_.end()) return;
    ibv_cq* const cq = it->second;
    open_.erase(it);
    if (id->qp != nullptr) {
      rdma_disconnect(id);
      rdma_destroy_qp(id);
    }
    if (cq != nullptr) ibv_destroy_cq(cq);
    rdma_destroy_id(id);
  }

  // The next event within so long; nullptr: there is none.
  rdma_cm_event* next(int ms) const {
    rdma_cm_event* e = nullptr;
    if (rdma_get_cm_event(events_, &e) == 0) return e;
    pollfd look{events_->fd, POLLIN, 0};
    if (::poll(&look, 1, ms) <= 0) return nullptr;
    return rdma_get_cm_event(events_, &e) == 0 ? e : nullptr;
  }
  // The event that a step leads to.
  bool await(rdma_cm_event_type wanted, int ms) const {
    rdma_cm_event* const e = next(ms);
    if (e == nullptr) return false;
    const bool here = e->event == wanted;
    rdma_ack_cm_event(e);
    return here;
  }

 private:
  rdma_event_channel* events_;
  std::map<rdma_cm_id*, ibv_cq*> open_;
};

rdma_conn_param terms() {
  rdma_conn_param p{};
  p.responder_resources = p.initiator_depth = 1;
  p.retry_count = p.rnr_retry_count = 7;
  return p;
}

}  // namespace

void accept_plain(const std::function<void(Result<void>)>& ready, const std::function<bool()>& called) {
  Ids ids;
  rdma_cm_id* const listener = ids.make();
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(kPlainService);
  if (listener == nullptr || rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&any)) != 0 ||
      rdma_listen(listener, 1024) != 0)
    return ready(tl::unexpected(last("the plain service")));
  ready({});
  while (!called()) {
    rdma_cm_event* const e = ids.next(0);
    if (e == nullptr) continue;
    rdma_cm_id* const id = e->id;
    const rdma_cm_event_type what = e->event;
    rdma_ack_cm_event(e);
    if (what == RDMA_CM_EVENT_CONNECT_REQUEST) {
      ids.keep(id);
      rdma_conn_param p = terms();
      if (!ids.give_queue_pair(id) || rdma_accept(id, &p) != 0) ids.close(id);
    } else if (what == RDMA_CM_EVENT_DISCONNECTED) {
      ids.close(id);
    }
  }
}

Result<std::vector<double>> connect_plain(const std::string& address, std::uint32_t count) {
  Ids ids;
  std::vector<double> us;
  sockaddr_in to = address_of(address, kPlainService);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t began = now_ns();
    rdma_cm_id* const id = ids.make();
    if (id == nullptr) return tl::unexpected(last("an identifier of librdmacm"));
    if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), kResolveMs) != 0 ||
        !ids.await(RDMA_CM_EVENT_ADDR_RESOLVED, kAnswerMs))
      return tl::unexpected(last("the far end's address"));
    if (rdma_resolve_route(id, kResolveMs) != 0 || !ids.await(RDMA_CM_EVENT_ROUTE_RESOLVED, kAnswerMs))
      return tl::unexpected(last("the route"));
    if (!ids.give_queue_pair(id)) return tl::unexpected(last("a queue pair"));
    rdma_conn_param p = terms();
    if (rdma_connect(id, &p) != 0 || !ids.await(RDMA_CM_EVENT_ESTABLISHED, kAnswerMs))
      return fail("connection " + std::to_string(i + 1) + " of " + std::to_string(count) +
                  " of a plain program was not made");
    us.push_back(static_cast<double>(now_ns() - began) / 1e3);
  }
  return us;
}

Result<std::vector<double>> connect_tcp(const std::string& address, std::uint32_t count) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = address_of(address, 0);
  socklen_t length = sizeof at;
  std::vector<double> us;
  bool well = listener >= 0 && bind(listener, reinterpret_cast<sockaddr*>(&at), length) == 0 &&
              ::listen(listener, 16) == 0 &&
              getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length) == 0;
  for (std::uint32_t i = 0; well && i < count; ++i) {
    const std::uint64_t began = now_ns();
    const int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    well = one >= 0 && ::connect(one, reinterpret_cast<sockaddr*>(&at), length) == 0;
    const int other = well ? accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) : -1;
    well = well && other >= 0;
    us.push_back(static_cast<double>(now_ns() - began) / 1e3);
    if (one >= 0) close(one);
    if (other >= 0) close(other);
  }
  const Error why = last("TCP");
  if (listener >= 0) close(listener);
  if (!well) return tl::unexpected(why);
  return us;
}

}  // namespace weft::bench
