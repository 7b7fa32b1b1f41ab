#include "verbs_port/meetings.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "verbs_port/convert.h"

namespace weft {
namespace {

constexpr std::size_t kHead = 2;
constexpr int kWaiting =
    1024;  // requests that nobody has answered: hosts with thousands of channels begin at once
constexpr int kPatience = 2000;  // milliseconds, of addresses and routes

sockaddr_in socket_address(const wire::Address& a, std::uint16_t port) {
  sockaddr_in sa{};
  sa.sin_family = AF_INET;
  sa.sin_port = htons(port);
  std::memcpy(&sa.sin_addr, &a.bytes[12], 4);
  return sa;
}
wire::Address address_of(const sockaddr* at) {
  if (at == nullptr || at->sa_family != AF_INET) return {};
  std::uint8_t b[4];
  std::memcpy(b, &reinterpret_cast<const sockaddr_in*>(at)->sin_addr, sizeof b);
  return wire::Address::v4(b[0], b[1], b[2], b[3]);
}
sockaddr* generic(sockaddr_in& a) { return reinterpret_cast<sockaddr*>(&a); }

// What a peer told. False: it is no port's.
bool read_data(const rdma_conn_param& p, ConnectData& data, std::uint8_t& mtu) {
  const auto* const bytes = static_cast<const std::uint8_t*>(p.private_data);
  if (bytes == nullptr || p.private_data_len < kHead + ConnectData::kMost) return false;
  if (bytes[0] > ConnectData::kMost || bytes[1] < IBV_MTU_256 || bytes[1] > IBV_MTU_4096) return false;
  data.size = bytes[0];
  mtu = bytes[1];
  std::copy_n(bytes + kHead, ConnectData::kMost, data.bytes.begin());
  return true;
}

}  // namespace

void Meetings::close() {
  for (Meeting& m : meetings_) end(m);
  for (rdma_cm_id* id : over_) rdma_destroy_id(id);
  for (rdma_cm_id* id : listeners_) rdma_destroy_id(id);
  over_.clear();
  listeners_.clear();
  if (channel_ != nullptr) rdma_destroy_event_channel(channel_);
  channel_ = nullptr;
}

Result<void> Meetings::open(const wire::Address& own, std::uint32_t most_mtu) {
  own_ = own;
  most_mtu_ = most_mtu;
  channel_ = rdma_create_event_channel();
  if (channel_ == nullptr) return fail(std::string("the connection manager: ") + std::strerror(errno));
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  return {};
}

Outcome<void> Meetings::listen(std::uint16_t service) {
  listeners_.reserve(listeners_.size() + 1);  // while nothing is bound that nobody would know of
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP) != 0) return fail(Errc::kNoMemory);
  sockaddr_in at = socket_address(own_, service);
  if (rdma_bind_addr(id, generic(at)) != 0 || rdma_listen(id, kWaiting) != 0) {
    const bool starved = errno == ENOMEM;
    rdma_destroy_id(id);
    return fail(starved ? Errc::kNoMemory : Errc::kBusy);
  }
  listeners_.push_back(id);
  return {};
}

Outcome<ConnectionId> Meetings::connect(const wire::Address& to, std::uint16_t service, Qpn qpn,
                                        const ConnectTerms& terms, const ConnectData& data) {
  Meeting m;
  m.service = service;
  m.qpn = qpn;
  m.terms = terms;
  m.data = data;
  if (rdma_create_id(channel_, &m.id, nullptr, RDMA_PS_TCP) != 0) return fail(Errc::kNoMemory);
  sockaddr_in from = socket_address(own_, 0);
  sockaddr_in peer = socket_address(to, service);
  if (rdma_resolve_addr(m.id, generic(from), generic(peer), kPatience) != 0) {
    const Errc why = code_of(errno);
    rdma_destroy_id(m.id);
    return fail(why);
  }
  ConnectionId id{};
  if (!add(m, id)) {
    rdma_destroy_id(m.id);
    return fail(Errc::kNoMemory);
  }
  return id;
}

Outcome<void> Meetings::accept(ConnectionId id, Qpn qpn, const ConnectTerms& terms, const ConnectData& data) {
  Meeting* const m = find(id, Stage::kAsked);
  if (m == nullptr) return fail(Errc::kNotFound);
  m->qpn = qpn;
  m->terms = terms;
  m->data = data;
  // Requests may arrive as soon as the peer has the answer.
  if (const auto up = raise(*m); !up) return up;
  std::uint8_t room[kHead + ConnectData::kMost];
  rdma_conn_param p = param_of(*m, room);
  if (rdma_accept(m->id, &p) != 0) return fail(code_of(errno));
  m->stage = Stage::kAnswered;
  return {};
}

Outcome<void> Meetings::reject(ConnectionId id, const ConnectData& why) {
  Meeting* const m = find(id, Stage::kAsked);
  if (m == nullptr) return fail(Errc::kNotFound);
  std::uint8_t room[kHead + ConnectData::kMost];
  const bool done = rdma_reject(m->id, fill(*m, why, room), sizeof room) == 0;
  const Errc error = code_of(errno);
  end(*m);
  if (!done) return fail(error);
  return {};
}

// What has begun ends, too: an attempt, or an answer that the peer has not confirmed. Its identifier goes at
// once, which tells the peer; otherwise the confirmation, or the manager's time-out, would still come and
// find the queue pair's number in another's hands. No event is held here, so nothing waits for that.
Outcome<void> Meetings::disconnect(ConnectionId id) {
  for (const Stage stage : {Stage::kAsking, Stage::kAnswered, Stage::kOpen}) {
    Meeting* const m = find(id, stage);
    if (m == nullptr) continue;
    if (stage == Stage::kOpen) rdma_disconnect(m->id);
    if (stage != Stage::kAsking) fall(m->qpn);
    end(*m);
    if (stage != Stage::kOpen) {
      rdma_destroy_id(over_.back());
      over_.pop_back();
    }
    return {};
  }
  return fail(Errc::kNotFound);
}

void Meetings::look() {
  for (rdma_cm_event* e = nullptr; rdma_get_cm_event(channel_, &e) == 0;) {
    try {
      happened(*e);
    } catch (...) {  // an event that nobody acknowledges holds its identifier for ever
      rdma_ack_cm_event(e);
      throw;
    }
    rdma_ack_cm_event(e);
    for (rdma_cm_id* id : over_) rdma_destroy_id(id);
    over_.clear();
  }
}

bool Meetings::add(Meeting m, ConnectionId& id) {
  const bool fresh = free_.empty();
  if (fresh && meetings_.size() == 1U << kPlaceBits) return false;
  try {
    const auto known = known_.try_emplace(m.id).first;
    try {
      if (fresh) meetings_.emplace_back();
    } catch (...) {
      known_.erase(known);
      throw;
    }
    id = fresh ? ConnectionId{static_cast<std::uint32_t>(meetings_.size() - 1)}
               : ConnectionId{meetings_[free_.front()].self.v + (1U << kPlaceBits)};
    known->second = id;
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (!fresh) free_.pop_front();
  m.self = id;
  meetings_[place_of(id)] = m;
  return true;
}

Meetings::Meeting* Meetings::find(ConnectionId id, Stage stage) {
  if (place_of(id) >= meetings_.size()) return nullptr;
  Meeting& m = meetings_[place_of(id)];
  return m.self == id && m.stage == stage ? &m : nullptr;
}

std::uint8_t Meetings::mtu_of(const ConnectTerms& terms) const {
  return static_cast<std::uint8_t>(verbs_mtu(std::min(terms.mtu, most_mtu_)));
}

std::uint8_t* Meetings::fill(const Meeting& m, const ConnectData& data, std::uint8_t* room) const {
  room[0] = data.size;
  room[1] = mtu_of(m.terms);
  std::copy(data.bytes.begin(), data.bytes.end(), room + kHead);
  return room;
}

rdma_conn_param Meetings::param_of(const Meeting& m, std::uint8_t* room) const {
  rdma_conn_param p{};
  p.private_data = fill(m, m.data, room);
  p.private_data_len = kHead + ConnectData::kMost;
  p.responder_resources = p.initiator_depth = m.terms.reads;
  p.retry_count = m.terms.retry_count;
  p.rnr_retry_count = m.terms.rnr_retry;
  p.qp_num = m.qpn.v;
  return p;
}

Outcome<void> Meetings::raise(Meeting& m) {
  ibv_qp* const qp = find_(m.qpn);
  if (qp == nullptr) return fail(Errc::kNotFound);
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr a{};
    int mask = 0;
    a.qp_state = state;
    if (rdma_init_qp_attr(m.id, &a, &mask) != 0) return fail(code_of(errno));
    a.qp_state = state;
    a.qp_access_flags = m.terms.access;
    a.path_mtu = static_cast<ibv_mtu>(std::min(m.peer_mtu, mtu_of(m.terms)));
    a.min_rnr_timer = m.terms.min_rnr_timer;
    a.timeout = m.terms.timeout;
    a.retry_cnt = m.terms.retry_count;
    a.rnr_retry = m.terms.rnr_retry;
    a.ah_attr.sl = m.terms.service_level;
    if (const int error = ibv_modify_qp(qp, &a, mask); error != 0) return fail(code_of(error));
  }
  return {};
}

void Meetings::fall(Qpn qpn) {
  ibv_qp* const qp = find_(qpn);
  if (qp == nullptr) return;
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

void Meetings::end(Meeting& m) {
  m.stage = Stage::kOver;
  if (m.id == nullptr) return;
  known_.erase(m.id);
  over_.push_back(m.id);
  free_.push_back(place_of(m.self));
  m.id = nullptr;
}

void Meetings::say(PortEventKind kind, ConnectionId id, const Meeting& m, const ConnectData& data) {
  PortEvent e;
  if (kind == PortEventKind::kConnectRequest) e.peer = address_of(rdma_get_peer_addr(m.id));
  e.kind = kind;
  e.connection = id;
  e.qpn = m.qpn;
  e.service = m.service;
  e.data = data;
  events_.push_back(e);
}

void Meetings::requested(const rdma_cm_event& e) {
  Meeting m;
  ConnectData data;
  m.id = e.id;
  m.stage = Stage::kAsked;
  m.service = ntohs(rdma_get_src_port(e.id));
  ConnectionId id{};
  if (!read_data(e.param.conn, data, m.peer_mtu) || !add(m, id)) {
    rdma_reject(e.id, nullptr, 0);
    over_.push_back(e.id);
    return;
  }
  say(PortEventKind::kConnectRequest, id, m, data);
}

void Meetings::happened(rdma_cm_event& e) {
  if (e.event == RDMA_CM_EVENT_CONNECT_REQUEST) return requested(e);
  const auto it = known_.find(e.id);
  if (it == known_.end()) return;  // of a connection that this end has ended
  const ConnectionId id = it->second;
  go_on(meetings_[place_of(id)], id, e);
}

void Meetings::go_on(Meeting& m, ConnectionId id, const rdma_cm_event& e) {
  std::uint8_t room[kHead + ConnectData::kMost];
  ConnectData data;
  bool well = false;
  switch (e.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      well = rdma_resolve_route(m.id, kPatience) == 0;
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: {
      rdma_conn_param p = param_of(m, room);
      well = rdma_connect(m.id, &p) == 0;
      break;
    }
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      well = read_data(e.param.conn, data, m.peer_mtu) && raise(m).has_value() && rdma_establish(m.id) == 0;
      if (!well) break;
      m.stage = Stage::kOpen;
      say(PortEventKind::kEstablished, id, m, data);
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      well = true;
      if (m.stage != Stage::kAnswered) break;
      m.stage = Stage::kOpen;
      say(PortEventKind::kEstablished, id, m);
      break;
    case RDMA_CM_EVENT_REJECTED:
      (void)read_data(e.param.conn, data, m.peer_mtu);  // the manager itself rejects, too, and says nothing
      break;
    default:
      break;
  }
  if (well) return;
  // Refused, unreachable, or hung up by the other end.
  const Stage before = m.stage;
  if (before == Stage::kOpen) rdma_disconnect(m.id);
  if (before == Stage::kOpen || before == Stage::kAnswered) fall(m.qpn);
  end(m);
  if (before == Stage::kOpen) say(PortEventKind::kDisconnected, id, m);
  if (before == Stage::kAsking || before == Stage::kAnswered) say(PortEventKind::kRejected, id, m, data);
}

}  // namespace weft
