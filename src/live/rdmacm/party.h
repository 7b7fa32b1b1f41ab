// Programs for the tests of this folder: they know <rdma/rdma_cma.h> and nothing of weft. Both ends live in
// one process and on its one address, so a connection goes out through the socket and comes back.
#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace weft::live::rdmacm {

// Of this process and those that it forks.
inline std::string own_address() {
  static const auto pid = static_cast<unsigned>(getpid());
  char address[32];
  std::snprintf(address, sizeof address, "127.%u.%u.78", 1 + (pid >> 8U) % 254U, pid & 0xFFU);
  return address;
}

// What the device has beside that address.
#ifndef WEFT_PARTY_MORE
#define WEFT_PARTY_MORE ""
#endif

inline sockaddr_in socket_address(std::uint16_t port, bool any = false) {
  setenv("WEFT_ADDR", (own_address() + WEFT_PARTY_MORE).c_str(), 1);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  if (!any) inet_pton(AF_INET, own_address().c_str(), &a.sin_addr);
  return a;
}

inline sockaddr* generic(sockaddr_in& a) { return reinterpret_cast<sockaddr*>(&a); }

// A channel that a test never waits on for ever.
struct Listening {
  Listening() {
    socket_address(0);
    channel = rdma_create_event_channel();
    if (channel == nullptr) std::abort();
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  }
  ~Listening() { rdma_destroy_event_channel(channel); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  // nullptr: nothing came in time.
  rdma_cm_event* next(int milliseconds = 10'000) const {
    for (;;) {
      rdma_cm_event* e = nullptr;
      if (rdma_get_cm_event(channel, &e) == 0) return e;
      pollfd p{channel->fd, POLLIN, 0};
      if (errno != EAGAIN || poll(&p, 1, milliseconds) <= 0) return nullptr;
    }
  }
  // Takes the next event, which must be this one, acknowledges it and returns a copy; its private data are
  // gone.
  rdma_cm_event expect(rdma_cm_event_type type) const {
    rdma_cm_event* const e = next();
    if (e == nullptr || e->event != type) {
      std::fprintf(stderr, "expected %s, got %s\n", rdma_event_str(type),
                   e != nullptr ? rdma_event_str(e->event) : "nothing");
      std::abort();
    }
    const rdma_cm_event copy = *e;
    rdma_ack_cm_event(e);
    return copy;
  }
  rdma_cm_id* create(rdma_port_space space = RDMA_PS_TCP, void* context = nullptr) const {
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(channel, &id, context, space) != 0) std::abort();
    return id;
  }
  rdma_event_channel* channel;
};

inline int make_queue_pair(rdma_cm_id* id, ibv_qp_type type = IBV_QPT_RC) {
  ibv_qp_init_attr init{};
  init.cap = {8, 8, 1, 1, 0};
  init.qp_type = type;
  return rdma_create_qp(id, nullptr, &init);
}

// A server and a client, up to the request that the server has not answered.
struct Pair {
  explicit Pair(std::uint16_t port, rdma_port_space space = RDMA_PS_TCP) {
    sockaddr_in at = socket_address(port);
    listener = server.create(space);
    active = client.create(space);
    if (rdma_bind_addr(listener, generic(at)) != 0 || rdma_listen(listener, 4) != 0) std::abort();
    if (rdma_resolve_addr(active, nullptr, generic(at), 1000) != 0) std::abort();
    client.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    if (rdma_resolve_route(active, 1000) != 0) std::abort();
    client.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    if (make_queue_pair(active, active->qp_type) != 0) std::abort();
  }
  ~Pair() {
    for (rdma_cm_id* id : {passive, active, listener}) {
      if (id == nullptr) continue;
      rdma_destroy_qp(id);
      rdma_destroy_id(id);
    }
  }
  void request(const std::string& word = "") {
    rdma_conn_param p{};
    p.private_data = word.data();
    p.private_data_len = static_cast<std::uint8_t>(word.size());
    p.responder_resources = p.initiator_depth = 4;
    p.retry_count = p.rnr_retry_count = 7;
    if (rdma_connect(active, &p) != 0) std::abort();
    passive = server.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
    if (make_queue_pair(passive, passive->qp_type) != 0) std::abort();
  }
  void establish() {
    request();
    if (rdma_accept(passive, nullptr) != 0) std::abort();
    client.expect(RDMA_CM_EVENT_ESTABLISHED);
    server.expect(RDMA_CM_EVENT_ESTABLISHED);
  }
  Listening server;
  Listening client;
  rdma_cm_id* listener = nullptr;
  rdma_cm_id* active = nullptr;
  rdma_cm_id* passive = nullptr;
};

}  // namespace weft::live::rdmacm
