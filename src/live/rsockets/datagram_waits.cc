// Datagrams: sleeping, rpoll(), names and the end.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "live/rsockets/datagram_await.h"

namespace weft::live::rsockets {
namespace {

// What is still in the send queue goes within that time, or is lost as datagrams may be.
constexpr std::chrono::seconds kPatience{1};

}  // namespace

void Datagrams::fill(Wake& wake) const {
  wake.fds[0].fd = udp_;
  wake.fds[1].fd = completions_ != nullptr ? completions_->descriptor() : -1;
  wake.fds[2].fd = bell_.descriptor();
}

short Datagrams::what(short events) const {
  unsigned now = 0;
  if (!came_.empty() || read_shut_) now |= POLLIN;
  if (handle_ == nullptr || !free_.empty()) now |= POLLOUT;
  now &= static_cast<unsigned>(events);
  return static_cast<short>(now);
}

short Datagrams::ready(short events) {
  const std::lock_guard lock(mutex_);
  if (closed_) return POLLNVAL;
  look(false);
  if (const short now = what(events); now != 0) return now;
  look(true);
  return what(events);
}

bool Datagrams::enter(Wake& wake) {
  const std::lock_guard lock(mutex_);
  if (completions_ != nullptr) completions_->arm();
  if (!bell_.try_enter()) return false;
  fill(wake);
  return true;
}

void Datagrams::leave(const Wake&) {
  const std::lock_guard lock(mutex_);
  bell_.leave();
}

int Datagrams::own_name(Where& out) {
  out.length = sizeof(sockaddr_in);
  return getsockname(udp_, reinterpret_cast<sockaddr*>(&out.address), &out.length) == 0 ? 0 : -errno;
}

int Datagrams::peer_name(Where& out) {
  const std::lock_guard lock(mutex_);
  if (!connected_) return -ENOTCONN;
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = connected_->port;
  in.sin_addr.s_addr = connected_->address;
  std::memcpy(&out.address, &in, sizeof in);
  out.length = sizeof in;
  return 0;
}

int Datagrams::shutdown(int how) {
  const std::lock_guard lock(mutex_);
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return -EINVAL;
  if (how != SHUT_WR) read_shut_ = true;
  if (how != SHUT_RD) write_shut_ = true;
  bell_.ring();
  return 0;
}

void Datagrams::close() {
  std::unique_lock lock(mutex_);
  const auto until = Clock::now() + kPatience;
  if (handle_ != nullptr)
    await(
        lock, true, [&] { return free_.size() == sizes_.sends; }, &until);
  closed_ = true;
  bell_.ring();
}

}  // namespace weft::live::rsockets
