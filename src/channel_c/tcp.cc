#include "channel_c/tcp.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace weft::channel {
namespace {

constexpr int kBacklog = 64;
constexpr int kMostAccepted = 16;  // in one look
constexpr std::uint64_t kListener = UINT64_MAX;

sockaddr_in socket_address(const wire::Address& a, std::uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  std::memcpy(&in.sin_addr, a.bytes.data() + 12, 4);
  return in;
}

wire::Address address_of(const sockaddr_in& in) {
  std::array<std::uint8_t, 4> b{};
  std::memcpy(b.data(), &in.sin_addr, 4);
  return wire::Address::v4(b[0], b[1], b[2], b[3]);
}

void set(int fd, int level, int option, int value) {
  (void)setsockopt(fd, level, option, &value, sizeof value);
}

bool not_now(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ENOTCONN;
}

}  // namespace

Result<std::unique_ptr<TcpPort>> TcpPort::open(const wire::Address& own) {
  std::unique_ptr<TcpPort> made(new TcpPort(own));
  made->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (made->epoll_ < 0) return fail(std::string("TCP beside the device: ") + std::strerror(errno));
  return made;
}

TcpPort::~TcpPort() {
  for (const Socket& s : sockets_)
    if (s.fd >= 0) ::close(s.fd);
  for (const int fd : {listener_, spare_, epoll_})
    if (fd >= 0) ::close(fd);
}

// --- places ---

TcpPort::Socket* TcpPort::find(StreamId stream) {
  const std::uint32_t place = stream.v & 0xFFFFU;
  if (place >= sockets_.size()) return nullptr;
  Socket& s = sockets_[place];
  return s.fd >= 0 && s.life == stream.v >> 16U ? &s : nullptr;
}

StreamId TcpPort::take_place() {
  if (free_.empty()) {
    if (sockets_.size() == kMostStreams) return {UINT32_MAX};
    free_.reserve(sockets_.size() + 1);  // giving a place back needs no memory
    sockets_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(sockets_.size() - 1));
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  return {static_cast<std::uint32_t>(sockets_[place].life) << 16U | place};
}

void TcpPort::give_place(StreamId stream) {
  Socket& s = sockets_[stream.v & 0xFFFFU];
  if (s.fd >= 0) ::close(s.fd);
  s = {-1, static_cast<std::uint16_t>(s.life + 1), false, StreamEvent::kNoTag, 0};
  free_.push_back(stream.v & 0xFFFFU);
}

bool TcpPort::adopt(StreamId place, int fd) {
  sockets_[place.v & 0xFFFFU].fd = fd;
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  epoll_event watched{};
  watched.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  watched.data.u64 = place.v;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &watched) == 0;
}

// The kernel asks a silent peer, and gives up on one that does not acknowledge.
void TcpPort::watch_over(int fd, Duration alive) const {
  set(fd, SOL_SOCKET, SO_KEEPALIVE, alive.ps != 0 ? 1 : 0);
  if (alive.ps == 0) return;
  constexpr int kTries = 3;  // a second apart
  const std::int64_t seconds = std::clamp<std::int64_t>((alive.us() + 999'999) / 1'000'000, 1, 32'767);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(seconds));
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, kTries);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(seconds + kTries) * 1000);
}

// --- beginning ---

// A program that this one becomes or starts does not inherit it.
int TcpPort::spare_descriptor() const { return fcntl(epoll_, F_DUPFD_CLOEXEC, 0); }

Outcome<void> TcpPort::listen(std::uint16_t port) {
  spare_ = spare_descriptor();
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener_ < 0) return fail(Errc::kNoMemory);
  set(listener_, SOL_SOCKET, SO_REUSEADDR, 1);
  const sockaddr_in at = socket_address(own_, port);
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      ::listen(listener_, kBacklog) != 0)
    return fail(Errc::kBusy);
  epoll_event watched{};
  watched.events = EPOLLIN;
  watched.data.u64 = kListener;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &watched) != 0) return fail(Errc::kNoMemory);
  return {};
}

Outcome<StreamId> TcpPort::connect(const wire::Address& to, std::uint16_t port, Duration alive,
                                   std::uint32_t tag) {
  const StreamId place = take_place();
  if (place.v == UINT32_MAX) return fail(Errc::kNoMemory);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    give_place(place);
    return fail(Errc::kNoMemory);
  }
  set(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  const sockaddr_in from = socket_address(own_, 0);
  const sockaddr_in peer = socket_address(to, port);
  const bool dialled =
      bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0 &&
      (::connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == 0 || errno == EINPROGRESS);
  if (!adopt(place, fd) || !dialled) {
    give_place(place);
    return fail(Errc::kNotFound);
  }
  name(place, alive, tag);
  return place;
}

// At most so many in one look. Without a descriptor left a stream is turned away, or it would ring for ever.
void TcpPort::accept_some() {
  for (int i = 0; i < kMostAccepted; ++i) {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const StreamId place = take_place();
    int fd = accept4(listener_, reinterpret_cast<sockaddr*>(&from), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && spare_ >= 0) {
      ::close(spare_);
      fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) ::close(fd);
      fd = -1;
      spare_ = spare_descriptor();
    }
    if (place.v == UINT32_MAX) {
      if (fd >= 0) ::close(fd);
      return;
    }
    if (fd < 0 || !adopt(place, fd)) {
      give_place(place);
      return;
    }
    events_.push_back({StreamEvent::Kind::kCame, place, StreamEvent::kNoTag, address_of(from)});
  }
}

void TcpPort::name(StreamId stream, Duration alive, std::uint32_t tag) {
  Socket* const s = find(stream);
  if (s == nullptr) return;
  s->tag = tag;
  watch_over(s->fd, alive);
}

// --- bytes ---

Outcome<std::size_t> TcpPort::send(StreamId stream, std::span<const std::span<const std::uint8_t>> pieces) {
  const Socket* const s = find(stream);
  if (s == nullptr) return fail(Errc::kNotFound);
  std::array<iovec, 8> list{};
  const std::size_t n = std::min(pieces.size(), list.size());
  for (std::size_t i = 0; i < n; ++i)
    list[i] = {const_cast<std::uint8_t*>(pieces[i].data()), pieces[i].size()};
  msghdr message{};
  message.msg_iov = list.data();
  message.msg_iovlen = n;
  const ssize_t sent = sendmsg(s->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  return not_now(errno) ? Outcome<std::size_t>(std::size_t{0}) : fail(Errc::kInvalid);
}

Outcome<std::size_t> TcpPort::receive(StreamId stream, std::span<std::uint8_t> into) {
  const Socket* const s = find(stream);
  if (s == nullptr) return fail(Errc::kNotFound);
  const ssize_t n = recv(s->fd, into.data(), into.size(), MSG_DONTWAIT);
  if (n > 0) return static_cast<std::size_t>(n);
  return n < 0 && not_now(errno) ? Outcome<std::size_t>(std::size_t{0}) : fail(Errc::kInvalid);
}

// --- the end ---

void TcpPort::close(StreamId stream) {
  Socket* const s = find(stream);
  if (s == nullptr || s->grave) return;
  if (shutdown(s->fd, SHUT_WR) != 0) return give_place(stream);  // it never was up, or failed
  s->grave = true;
  if (graves_.size() == kMostGraves) {
    if (find(graves_.front()) != nullptr) give_place(graves_.front());
    graves_.pop_front();
  }
  graves_.push_back(stream);
  drain(stream);
}

void TcpPort::drain(StreamId stream) {
  Socket& s = *find(stream);
  std::array<std::uint8_t, 4096> bytes;
  while (s.dropped < kMostDropped) {
    const ssize_t n = recv(s.fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0 && not_now(errno)) return;
    if (n <= 0) break;
    s.dropped += static_cast<std::size_t>(n);
  }
  give_place(stream);
  std::erase(graves_, stream);
}

// --- what happened ---

bool TcpPort::poll_event(StreamEvent& out) {
  if (events_.empty() && !told_all_) {
    std::array<epoll_event, 64> ready;
    const int n = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), 0);
    for (int i = 0; i < n; ++i) {
      const epoll_event& e = ready[static_cast<std::size_t>(i)];
      if (e.data.u64 == kListener) {
        accept_some();
        continue;
      }
      const StreamId stream{static_cast<std::uint32_t>(e.data.u64)};
      const Socket* const s = find(stream);
      if (s == nullptr) continue;
      if (s->grave) {
        drain(stream);
        continue;
      }
      if ((e.events & EPOLLOUT) != 0) events_.push_back({StreamEvent::Kind::kWritable, stream, s->tag, {}});
      if ((e.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        events_.push_back({StreamEvent::Kind::kReadable, stream, s->tag, {}});
    }
    told_all_ = true;
  }
  while (!events_.empty()) {
    out = events_.front();
    events_.pop_front();
    const Socket* const s = find(out.stream);
    if (s == nullptr || s->grave) continue;
    out.tag = s->tag;  // it may have been named since
    return true;
  }
  told_all_ = false;
  return false;
}

}  // namespace weft::channel
