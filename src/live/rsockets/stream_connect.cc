// The way to an open connection: what the program asks, and what the connection manager tells, step by step.
// No step waits; the calls that do sleep until the last one was taken.
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "live/rsockets/stream.h"

namespace weft::live::rsockets {
namespace {

int own_errno() { return errno != 0 ? errno : EINVAL; }

bool speaks(const sockaddr* address, socklen_t length) {
  if (address == nullptr || length < sizeof(sa_family_t)) return false;
  return (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) ||
         (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6));
}

// IPv4, under either of its names.
bool is_ipv4(const sockaddr* address) {
  if (address->sa_family != AF_INET6) return address->sa_family == AF_INET;
  sockaddr_in6 in{};
  std::memcpy(&in, address, sizeof in);
  return IN6_IS_ADDR_V4MAPPED(&in.sin6_addr);
}

std::optional<Offer> offer_of(const rdma_cm_event& event) {
  return read_offer(event.param.conn.private_data, event.param.conn.private_data_len);
}

// No end of a stream makes READs; a peer that cannot receive is asked again for ever (rnr_retry 7), as its
// program may be busy with something else.
rdma_conn_param terms(const std::uint8_t (&offer)[kOfferBytes]) {
  rdma_conn_param p{};
  p.private_data = offer;
  p.private_data_len = kOfferBytes;
  p.flow_control = 1;
  p.retry_count = 7;
  p.rnr_retry_count = 7;
  return p;
}

void turn_away(rdma_cm_id* request) {
  rdma_reject(request, nullptr, 0);
  rdma_destroy_id(request);
}

// The port space of streams refuses with 8 where nobody listens, and with others where somebody said no.
int reason_of(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_REJECTED:
      return ECONNREFUSED;
    case RDMA_CM_EVENT_UNREACHABLE:
      return ETIMEDOUT;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return EHOSTUNREACH;
    default:
      return event.status < 0 ? -event.status : ECONNABORTED;
  }
}

}  // namespace

int Stream::bind(const sockaddr* address, socklen_t length) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kFresh || !speaks(address, length)) return -EINVAL;
  if (rdma_bind_addr(handle_.id(), const_cast<sockaddr*>(address)) != 0) return -own_errno();
  state_ = State::kBound;
  return 0;
}

int Stream::listen(int backlog) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kListening) return 0;
  if (state_ != State::kFresh && state_ != State::kBound) return -EINVAL;
  if (rdma_listen(handle_.id(), backlog) != 0) return -own_errno();
  state_ = State::kListening;
  return 0;
}

bool Stream::refuses(const sockaddr* peer) const { return v6_only_ && family_ == AF_INET6 && is_ipv4(peer); }

// --- the end that asks ---

int Stream::connect(const sockaddr* address, socklen_t length) {
  std::unique_lock lock(mutex_);
  if (!speaks(address, length)) return -EINVAL;
  if (state_ == State::kOpen || state_ == State::kAccepting) return -EISCONN;
  if (state_ == State::kConnecting && !waits(0)) {
    look(true);
    return state_ == State::kConnecting ? -EINPROGRESS
           : state_ == State::kOpen     ? 0
                                        : -std::exchange(error_, 0);
  }
  if (state_ == State::kOver && error_ != 0) return -std::exchange(error_, 0);
  if (state_ == State::kFresh || state_ == State::kBound) {
    if (refuses(address)) return -ENETUNREACH;
    if (rdma_resolve_addr(handle_.id(), nullptr, const_cast<sockaddr*>(address), 2000) != 0)
      return -own_errno();
    state_ = State::kConnecting;
  }
  if (state_ != State::kConnecting) return -EINVAL;
  const int failed = await(lock, waits(0), [&] { return state_ != State::kConnecting; });
  if (failed == EAGAIN) return -EINPROGRESS;
  if (failed != 0) return -failed;
  return state_ == State::kOpen ? 0 : -std::exchange(error_, 0);
}

void Stream::take_events() {
  while (rdma_cm_event* const event = handle_.next()) {
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      rdma_cm_id* const request = event->id;
      rdma_ack_cm_event(event);
      turn_away(request);  // only a listener that was shut looks here
      continue;
    }
    happened(*event);
    rdma_ack_cm_event(event);
    bell_.ring();
  }
}

void Stream::happened(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return go_on(rdma_resolve_route(handle_.id(), 2000) == 0 ? 0 : own_errno());
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return go_on(ask_peer());
    case RDMA_CM_EVENT_ESTABLISHED:
      if (state_ == State::kConnecting) begin(offer_of(event));
      if (state_ == State::kAccepting) state_ = State::kOpen;
      return;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      return;
    case RDMA_CM_EVENT_DISCONNECTED:
      // What the peer said before has arrived before: it waits for that to be acknowledged.
      if (link_ != nullptr) take_completions();
      return lose(ECONNRESET);
    default:
      return lose(reason_of(event));
  }
}

void Stream::go_on(int failed) {
  if (failed != 0) lose(failed);
}

int Stream::ask_peer() {
  try {
    link_ = std::make_unique<Link>(handle_.id(), sizes_);
  } catch (const std::system_error& e) {
    return e.code().value();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  std::uint8_t offer[kOfferBytes];
  write_offer(link_->offer(), offer);
  rdma_conn_param p = terms(offer);
  return rdma_connect(handle_.id(), &p) == 0 ? 0 : own_errno();
}

void Stream::begin(const std::optional<Offer>& peer) {
  if (!peer) return lose(EPROTO);
  peer_ = *peer;
  inbox_.emplace(sizes_.receive_bytes, sizes_.receives);
  outbox_.emplace(sizes_.send_bytes, sizes_.sends - kControlSlots);
  outbox_->begin(peer_);
  maps_.resize(sizes_.maps);
  if (state_ == State::kConnecting) state_ = State::kOpen;
}

// --- the end that waits ---

int Stream::admit(const Offer& peer) {
  try {
    link_ = std::make_unique<Link>(handle_.id(), sizes_);
    begin(peer);
  } catch (const std::system_error& e) {
    return e.code().value();
  }
  std::uint8_t offer[kOfferBytes];
  write_offer(link_->offer(), offer);
  rdma_conn_param p = terms(offer);
  return rdma_accept(handle_.id(), &p) == 0 ? 0 : own_errno();
}

// A request that is none of ours, or whose peer has gone, is the peer's affair: the next one is taken.
int Stream::accept(std::shared_ptr<Socket>& out, Where& from) {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (state_ != State::kListening) return -EINVAL;
    rdma_cm_event* event = nullptr;
    const auto came = [&] {
      return state_ != State::kListening || event != nullptr || (event = handle_.next()) != nullptr;
    };
    if (const int failed = await(lock, waits(0), came); failed != 0) return -failed;
    if (event == nullptr) return -EINVAL;
    const bool asks = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    rdma_cm_id* const request = event->id;
    const std::optional<Offer> peer = asks ? offer_of(*event) : std::nullopt;
    rdma_ack_cm_event(event);
    if (!asks) continue;
    if (!peer || refuses(rdma_get_peer_addr(request))) {
      turn_away(request);
      continue;
    }
    std::shared_ptr<Stream> fresh;
    try {
      fresh.reset(new Stream(*this, request));
    } catch (...) {
      turn_away(request);
      throw;
    }
    lock.unlock();
    if (const int failed = fresh->admit(*peer); failed == ENOMEM || failed == EMFILE || failed == ENFILE) {
      return -failed;
    } else if (failed != 0) {
      continue;
    }
    fresh->peer_name(from);
    out = std::move(fresh);
    return 0;
  }
}

// --- names ---

namespace {

int copy_name(const sockaddr* from, sa_family_t family, Where& out) {
  sa_family_t f = from->sa_family;
  if (f != AF_INET && f != AF_INET6) f = family;
  out.length = f == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&out.address, from, out.length);
  out.address.ss_family = f;
  return 0;
}

}  // namespace

int Stream::own_name(Where& out) {
  const std::lock_guard lock(mutex_);
  return copy_name(rdma_get_local_addr(handle_.id()), family_, out);
}

int Stream::peer_name(Where& out) {
  const std::lock_guard lock(mutex_);
  if (link_ == nullptr) return -ENOTCONN;
  return copy_name(rdma_get_peer_addr(handle_.id()), family_, out);
}

}  // namespace weft::live::rsockets
