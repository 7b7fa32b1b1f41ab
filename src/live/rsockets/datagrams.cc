// Datagrams: opening, sending and receiving.
#include "live/rsockets/datagrams.h"

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "live/rsockets/datagram_await.h"

namespace weft::live::rsockets {
namespace {

constexpr unsigned kLooksBetween = 64;  // looks at the queue pair only, between two at UDP
constexpr int kRefusedOut = MSG_OOB | MSG_FASTOPEN;
constexpr int kRefusedIn = MSG_OOB | MSG_ERRQUEUE | MSG_TRUNC;
// A peer that was not heard for longer is asked for its queue pair again.
constexpr std::chrono::seconds kSilence{1};

std::optional<sockaddr_in> ipv4(const sockaddr* address, std::size_t length) {
  if (address == nullptr || length < sizeof(sockaddr_in) || address->sa_family != AF_INET)
    return std::nullopt;
  sockaddr_in in{};
  std::memcpy(&in, address, sizeof in);
  return in;
}

sockaddr_in name_of(const Place& p) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = p.port;
  in.sin_addr.s_addr = p.address;
  return in;
}

void put(const Place& p, Where& out) {
  const sockaddr_in in = name_of(p);
  std::memcpy(&out.address, &in, sizeof in);
  out.length = sizeof in;
}

// The device's address, as it answers who asks how to reach anybody.
int own_address(in_addr& out) {
  const rdma_addrinfo hints{};
  rdma_addrinfo* found = nullptr;
  if (rdma_getaddrinfo(nullptr, "1", &hints, &found) != 0) return errno != 0 ? errno : EADDRNOTAVAIL;
  const auto own = ipv4(found->ai_src_addr, found->ai_src_len);
  rdma_freeaddrinfo(found);
  if (!own) return EADDRNOTAVAIL;
  out = own->sin_addr;
  return 0;
}

bool loopback(const in_addr& a) { return ntohl(a.s_addr) >> 24U == 127; }

// As rdma_bind_addr() has it: any address is the device's, and a loopback address is, too, where the device
// has none of its own.
void mean_own(in_addr& a, const in_addr& own) {
  if (a.s_addr == htonl(INADDR_ANY) || (loopback(a) && !loopback(own))) a = own;
}

}  // namespace

Datagrams::Datagrams() : udp_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  if (udp_ < 0) throw std::system_error(errno, std::generic_category());
}

Datagrams::~Datagrams() {
  for (auto& [place, p] : peers_) {
    if (p.handle != nullptr) ibv_destroy_ah(p.handle);
  }
  close_queue_pair();
  ::close(udp_);
}

// --- opening: by bind(), or by the first datagram ---

int Datagrams::open(const sockaddr_in& at) {
  if (handle_ != nullptr) return EINVAL;
  in_addr own{};
  if (const int failed = own_address(own); failed != 0) return failed;
  sockaddr_in name = at;
  mean_own(name.sin_addr, own);
  if (name.sin_addr.s_addr != own.s_addr) return EADDRNOTAVAIL;
  if (::bind(udp_, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) return errno;
  socklen_t length = sizeof name;
  if (getsockname(udp_, reinterpret_cast<sockaddr*>(&name), &length) != 0) return errno;
  own_ = {name.sin_addr.s_addr, name.sin_port};
  int failed = ENOMEM;
  try {
    failed = open_queue_pair(own);
  } catch (const std::system_error& e) {
    failed = e.code().value();
  }
  if (failed != 0) close_queue_pair();
  return failed;
}

void Datagrams::close_queue_pair() {
  if (handle_ != nullptr && handle_->id()->qp != nullptr) rdma_destroy_qp(handle_->id());
  in_region_.reset();
  out_region_.reset();
  completions_.reset();
  handle_.reset();
}

int Datagrams::open_queue_pair(const in_addr& own) {
  auto handle = std::make_unique<CmHandle>(RDMA_PS_UDP);
  rdma_cm_id* const id = handle->id();
  sockaddr_in name = name_of({own.s_addr, 0});
  if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&name)) != 0) return errno;
  ibv_port_attr port{};
  if (const int failed = ibv_query_port(id->verbs, 1, &port); failed != 0) return failed;
  most_ = std::min(kSlot, 128U << static_cast<unsigned>(port.active_mtu));
  auto completions = std::make_unique<Completions>(id->verbs, sizes_.sends + sizes_.receives);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_UD;
  init.send_cq = init.recv_cq = completions->queue();
  init.sq_sig_all = 1;
  init.cap = {sizes_.sends, sizes_.receives, 1, 1, 0};
  if (rdma_create_qp(id, nullptr, &init) != 0) return errno;
  handle_ = std::move(handle);
  completions_ = std::move(completions);
  in_ = std::make_unique<std::uint8_t[]>(std::size_t{sizes_.receives} * (kGrh + kSlot));
  out_ = std::make_unique<std::uint8_t[]>(std::size_t{sizes_.sends} * kSlot);
  constexpr int kOurs = IBV_ACCESS_LOCAL_WRITE;
  in_region_ = registered(id->pd, in_.get(), std::size_t{sizes_.receives} * (kGrh + kSlot), kOurs);
  out_region_ = registered(id->pd, out_.get(), std::size_t{sizes_.sends} * kSlot, kOurs);
  for (std::uint32_t i = 0; i < sizes_.sends; ++i) free_.push_back(i);
  for (std::uint32_t i = 0; i < sizes_.receives; ++i) {
    if (const int failed = post_receive(i); failed != 0) return failed;
  }
  return 0;
}

int Datagrams::post_receive(std::uint32_t slot) const {
  ibv_sge part{reinterpret_cast<std::uintptr_t>(in_.get()) + std::size_t{slot} * (kGrh + kSlot), kGrh + kSlot,
               in_region_->lkey};
  ibv_recv_wr w{};
  w.wr_id = posted(Posted::kReceive, slot);
  w.sg_list = &part;
  w.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(handle_->id()->qp, &w, &bad);
}

int Datagrams::bind(const sockaddr* address, socklen_t length) {
  const std::lock_guard lock(mutex_);
  const auto at = ipv4(address, length);
  return at ? -open(*at) : -EAFNOSUPPORT;
}

int Datagrams::connect(const sockaddr* address, socklen_t length) {
  const std::lock_guard lock(mutex_);
  if (address != nullptr && length >= sizeof(sa_family_t) && address->sa_family == AF_UNSPEC) {
    connected_.reset();
    return 0;
  }
  const auto to = ipv4(address, length);
  if (!to) return -EAFNOSUPPORT;
  if (handle_ == nullptr) {
    if (const int failed = open(name_of({})); failed != 0) return -failed;
  }
  connected_ = Place{to->sin_addr.s_addr, to->sin_port};
  return 0;
}

// --- sending ---

ssize_t Datagrams::send(const iovec* parts, std::size_t count, int flags, const Where* to) {
  std::unique_lock lock(mutex_);
  if ((flags & kRefusedOut) != 0) return -EOPNOTSUPP;
  if (write_shut_) return -EPIPE;
  std::optional<Place> where = connected_;
  if (to != nullptr && to->length != 0) {
    const auto in = ipv4(reinterpret_cast<const sockaddr*>(&to->address), to->length);
    if (!in) return -EAFNOSUPPORT;
    where = Place{in->sin_addr.s_addr, in->sin_port};
  }
  if (!where) return -EDESTADDRREQ;
  const std::size_t total = bytes_of(parts, count);
  // What the peer's UDP side has room for is the limit, whichever way it goes.
  if (total > kSlot - kUdpHeader) return -EMSGSIZE;
  if (handle_ == nullptr) {
    if (const int failed = open(name_of({})); failed != 0) return -failed;
  }
  look(true);
  const Peer* p = &peer(*where);
  if (p->handle == nullptr || total + kUdHeader > most_ || Clock::now() - p->heard > kSilence)
    return send_first(lock, *where, waits(flags), parts, count, total);
  const auto may = [&] { return !free_.empty() || write_shut_; };
  const int failed = await_within(lock, waits(flags), may, sends_within_);
  if (failed != 0) return -failed;
  if (write_shut_) return -EPIPE;
  p = &peer(*where);  // it may have changed meanwhile
  if (p->handle == nullptr) return send_first(lock, *where, waits(flags), parts, count, total);
  return send_ud(*p, parts, count, total);
}

// The kernel's buffer may have no room just now. Others may use the socket, or close it, while this waits.
ssize_t Datagrams::send_first(std::unique_lock<std::mutex>& lock, const Place& to, bool wait,
                              const iovec* parts, std::size_t count, std::size_t total) {
  constexpr int kLook = 100;  // milliseconds until it looks whether somebody has closed or shut it
  std::optional<Clock::time_point> until;
  if (sends_within_) until = Clock::now() + *sends_within_;
  for (;;) {
    const ssize_t sent = send_udp(to, UdpKind::kData, parts, count, total);
    if (sent != -EAGAIN || !wait || (until && Clock::now() >= *until)) return sent;
    int limit = kLook;
    if (until) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count();
      limit = static_cast<int>(std::clamp<std::int64_t>(left, 0, kLook));
    }
    pollfd room{udp_, POLLOUT, 0};
    lock.unlock();
    const int failed = ::poll(&room, 1, limit) < 0 ? errno : 0;
    lock.lock();
    if (failed != 0) return -failed;
    if (closed_) return -EBADF;
    if (write_shut_) return -EPIPE;
  }
}

ssize_t Datagrams::send_udp(const Place& to, UdpKind kind, const iovec* parts, std::size_t count,
                            std::size_t total) {
  std::uint8_t bytes[kSlot];
  write_udp_header({kind, handle_->id()->qp->qp_num, own_.address}, bytes);
  std::uint8_t* at = bytes + kUdpHeader;
  for (std::size_t i = 0; i < count; ++i) {
    if (parts[i].iov_len != 0) std::memcpy(at, parts[i].iov_base, parts[i].iov_len);
    at += parts[i].iov_len;
  }
  const sockaddr_in name = name_of(to);
  const ssize_t n = sendto(udp_, bytes, kUdpHeader + total, MSG_DONTWAIT | MSG_NOSIGNAL,
                           reinterpret_cast<const sockaddr*>(&name), sizeof name);
  return n < 0 ? -errno : static_cast<ssize_t>(total);
}

ssize_t Datagrams::send_ud(const Peer& to, const iovec* parts, std::size_t count, std::size_t total) {
  const std::uint32_t slot = free_.back();
  std::uint8_t* const bytes = out_.get() + std::size_t{slot} * kSlot;
  write_ud_header(own_, bytes);
  std::uint8_t* at = bytes + kUdHeader;
  for (std::size_t i = 0; i < count; ++i) {
    if (parts[i].iov_len != 0) std::memcpy(at, parts[i].iov_base, parts[i].iov_len);
    at += parts[i].iov_len;
  }
  ibv_sge part{reinterpret_cast<std::uintptr_t>(bytes), static_cast<std::uint32_t>(kUdHeader + total),
               out_region_->lkey};
  ibv_send_wr w{};
  w.wr_id = posted(Posted::kData, slot);
  w.sg_list = &part;
  w.num_sge = 1;
  w.opcode = IBV_WR_SEND;
  w.wr.ud = {to.handle, to.qpn, RDMA_UDP_QKEY};
  ibv_send_wr* bad = nullptr;
  if (const int failed = ibv_post_send(handle_->id()->qp, &w, &bad); failed != 0) return -failed;
  free_.pop_back();
  return static_cast<ssize_t>(total);
}

// --- receiving ---

ssize_t Datagrams::receive(const iovec* parts, std::size_t count, int flags, Where* from) {
  std::unique_lock lock(mutex_);
  if ((flags & kRefusedIn) != 0) return -EOPNOTSUPP;
  if (handle_ == nullptr && !read_shut_) return -EINVAL;  // nobody knows where it is
  const auto come = [&] { return !came_.empty() || read_shut_; };
  const int failed = await_within(lock, waits(flags), come, receives_within_);
  if (failed != 0) return -failed;
  if (came_.empty()) return 0;
  const Came& first = came_.front();
  const std::uint8_t* bytes = first.slot
                                  ? in_.get() + std::size_t{*first.slot} * (kGrh + kSlot) + kGrh + kUdHeader
                                  : first.bytes.data();
  std::size_t left = first.length;
  for (std::size_t i = 0; i < count && left != 0; ++i) {
    const std::size_t now = std::min(left, parts[i].iov_len);
    if (now != 0) std::memcpy(parts[i].iov_base, bytes, now);
    bytes += now;
    left -= now;
  }
  const ssize_t got = static_cast<ssize_t>(first.length - left);
  if (from != nullptr) {
    put(first.from, *from);
    from->cut = left != 0;
  }
  if ((flags & MSG_PEEK) != 0) return got;
  if (first.slot) post_receive(*first.slot);
  came_.pop_front();
  return got;
}

void Datagrams::look(bool udp) {
  if (handle_ == nullptr) return;
  take_completions();
  if (udp || ++looks_ % kLooksBetween == 0) take_udp();
}

void Datagrams::take_completions() {
  ibv_wc batch[16];
  for (int n = 0; (n = ibv_poll_cq(completions_->queue(), 16, batch)) > 0;) {
    for (int i = 0; i < n; ++i) {
      if (static_cast<Posted>(batch[i].wr_id >> 32U) == Posted::kReceive)
        arrived(batch[i]);
      else
        free_.push_back(static_cast<std::uint32_t>(batch[i].wr_id));
    }
    bell_.ring();
  }
}

void Datagrams::arrived(const ibv_wc& completion) {
  const auto slot = static_cast<std::uint32_t>(completion.wr_id);
  if (completion.status != IBV_WC_SUCCESS) return;
  const std::uint8_t* const bytes = in_.get() + std::size_t{slot} * (kGrh + kSlot) + kGrh;
  const std::size_t length = completion.byte_len - std::min<std::size_t>(completion.byte_len, kGrh);
  const auto from = read_ud_header(bytes, length);
  if (!from || !wanted(*from) || read_shut_) {
    post_receive(slot);
    return;
  }
  if (const auto it = peers_.find(*from); it != peers_.end()) it->second.heard = Clock::now();
  came_.push_back({*from, slot, static_cast<std::uint32_t>(length - kUdHeader), {}});
}

void Datagrams::take_udp() {
  // At most so many at a time: a flood of them does not keep the caller.
  constexpr int kBatch = 64;
  for (int i = 0; i < kBatch; ++i) {
    std::uint8_t bytes[kSlot];
    sockaddr_in name{};
    socklen_t length = sizeof name;
    const ssize_t n =
        recvfrom(udp_, bytes, sizeof bytes, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&name), &length);
    if (n < 0) return;
    took(bytes, static_cast<std::size_t>(n), {name.sin_addr.s_addr, name.sin_port});
    bell_.ring();
  }
}

void Datagrams::took(const std::uint8_t* bytes, std::size_t length, const Place& from) {
  const auto header = read_udp_header(bytes, length);
  if (!header || !wanted(from)) return;
  learn(from, header->qpn);
  if (header->kind != UdpKind::kData) return;
  send_udp(from, UdpKind::kAnswer, nullptr, 0, 0);
  if (read_shut_ || came_.size() >= std::size_t{sizes_.receives} * 2) return;
  const std::uint8_t* const payload = bytes + kUdpHeader;
  came_.push_back(
      {from, std::nullopt, static_cast<std::uint32_t>(length - kUdpHeader), {payload, bytes + length}});
}

void Datagrams::learn(const Place& who, std::uint32_t qpn) {
  Peer& p = peer(who);
  p.qpn = qpn;
  p.heard = Clock::now();
  if (p.handle != nullptr) return;
  ibv_ah_attr to{};
  to.is_global = 1;
  to.port_num = 1;
  to.grh.hop_limit = 64;
  to.grh.dgid.raw[10] = to.grh.dgid.raw[11] = 0xFF;
  std::memcpy(&to.grh.dgid.raw[12], &who.address, 4);
  p.handle = ibv_create_ah(handle_->id()->pd, &to);
}

// The table is bounded, because whoever sends a datagram gets a place in it. One that loses its place begins
// by UDP again.
Datagrams::Peer& Datagrams::peer(const Place& who) {
  if (peers_.size() >= kMostPeers && !peers_.contains(who)) {
    auto it = peers_.upper_bound(who);
    if (it == peers_.end()) it = peers_.begin();
    if (it->second.handle != nullptr) ibv_destroy_ah(it->second.handle);
    peers_.erase(it);
  }
  return peers_[who];
}

}  // namespace weft::live::rsockets
