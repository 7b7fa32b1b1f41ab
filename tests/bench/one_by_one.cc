// What it takes to make a connection by the connection manager when nothing else is going on: one after
// another, each closed 10 ms before the next begins, so that both NICs have gone to sleep.
//
//   weft-one-by-one serve ADDRESS
//   weft-one-by-one connect ADDRESS COUNT
//
// Both ends sleep until an event comes, as programs do. The client prints one line of JSON, in microseconds:
// the first connection of the two processes, and the median of the others; of both also the part that begins
// at rdma_connect, for what is before it asks nothing of the other end.
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/interop/reliable_pair.h"

namespace {

using Clock = std::chrono::steady_clock;
using weft::interop::place;
using weft::interop::stop;

constexpr std::uint16_t kPort = 18611;
constexpr int kPatience = 2000;  // ms
constexpr useconds_t kRest = 10'000;

double us_since(Clock::time_point t) {
  return std::chrono::duration<double, std::micro>(Clock::now() - t).count();
}

void make_queue_pair(rdma_cm_id* id) {
  ibv_qp_init_attr init{};
  init.cap = {16, 16, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  if (rdma_create_qp(id, nullptr, &init) != 0) stop("rdma_create_qp");
}

rdma_conn_param parameters() {
  rdma_conn_param p{};
  p.responder_resources = p.initiator_depth = 1;
  p.retry_count = p.rnr_retry_count = 7;
  return p;
}

int serve(const char* address) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  rdma_cm_id* listener = nullptr;
  sockaddr_in at = place(address, kPort);
  if (channel == nullptr || rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP) != 0)
    stop("rdma_create_id");
  if (rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&at)) != 0 || rdma_listen(listener, 16) != 0)
    stop("rdma_listen");
  for (;;) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel, &event) != 0) stop("rdma_get_cm_event");
    const rdma_cm_event_type what = event->event;
    rdma_cm_id* const id = event->id;
    rdma_ack_cm_event(event);
    if (what == RDMA_CM_EVENT_CONNECT_REQUEST) {
      make_queue_pair(id);
      rdma_conn_param p = parameters();
      if (rdma_accept(id, &p) != 0) stop("rdma_accept");
    }
    if (what == RDMA_CM_EVENT_DISCONNECTED) {
      rdma_disconnect(id);
      rdma_destroy_qp(id);
      rdma_destroy_id(id);
    }
  }
}

void await(rdma_event_channel* channel, rdma_cm_event_type wanted) {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel, &event) != 0) stop("rdma_get_cm_event");
  if (event->event != wanted) {
    std::fprintf(stderr, "weft-one-by-one: %s instead of %s\n", rdma_event_str(event->event),
                 rdma_event_str(wanted));
    std::exit(1);
  }
  rdma_ack_cm_event(event);
}

struct Took {
  double all, connecting;
};

Took once(rdma_event_channel* channel, sockaddr_in at) {
  const auto began = Clock::now();
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) stop("rdma_create_id");
  if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&at), kPatience) != 0)
    stop("rdma_resolve_addr");
  await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(id, kPatience) != 0) stop("rdma_resolve_route");
  await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_queue_pair(id);
  const auto asked = Clock::now();
  rdma_conn_param p = parameters();
  if (rdma_connect(id, &p) != 0) stop("rdma_connect");
  await(channel, RDMA_CM_EVENT_ESTABLISHED);
  const Took took{us_since(began), us_since(asked)};
  if (rdma_disconnect(id) != 0) stop("rdma_disconnect");
  await(channel, RDMA_CM_EVENT_DISCONNECTED);
  rdma_destroy_qp(id);
  rdma_destroy_id(id);
  return took;
}

int connect(const char* address, int count) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  if (channel == nullptr) stop("rdma_create_event_channel");
  const sockaddr_in at = place(address, kPort);
  const Took first = once(channel, at);
  std::vector<double> all, connecting;
  for (int i = 1; i < count; ++i) {
    usleep(kRest);
    const Took took = once(channel, at);
    all.push_back(took.all);
    connecting.push_back(took.connecting);
  }
  const auto median = [](std::vector<double>& v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  };
  std::printf("{\"first_us\": %.1f, \"first_connecting_us\": %.1f, \"us\": %.1f, \"connecting_us\": %.1f}\n",
              first.all, first.connecting, median(all), median(connecting));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "serve") == 0) return serve(argv[2]);
  if (argc == 4 && std::strcmp(argv[1], "connect") == 0 && std::atoi(argv[3]) > 1)
    return connect(argv[2], std::atoi(argv[3]));
  std::fprintf(
      stderr,
      "weft-one-by-one: give `serve ADDRESS` or `connect ADDRESS COUNT`, COUNT at least 2, both under weft "
      "run\n");
  return 2;
}
