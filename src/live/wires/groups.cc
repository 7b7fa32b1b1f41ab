#include "live/wires/groups.h"

#include <fcntl.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/wire/ip.h"
#include "live/wires/sockets.h"

namespace weft::live {
namespace {

constexpr std::size_t kSlotBytes = 65536;

Errc reason() {
  switch (errno) {
    case ENODEV:         // no interface has the address,
    case EADDRNOTAVAIL:  // or it takes no groups
    case EPERM:
    case EACCES:
      return Errc::kUnsupported;
    default:
      return Errc::kNoMemory;
  }
}

ip_mreqn membership(const wire::Address& group, const WireFacts& facts) {
  ip_mreqn m{};
  m.imr_multiaddr = to_sockaddr(group, 0).sin_addr;
  m.imr_address = to_sockaddr(facts.address, 0).sin_addr;
  m.imr_ifindex = static_cast<int>(facts.interface);
  return m;
}

void show(int fd) {
  set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
  set_option(fd, IPPROTO_IP, IP_RECVTTL, 1);
}

}  // namespace

struct Groups::Buffers {
  std::unique_ptr<std::uint8_t[]> bytes{new std::uint8_t[kSlots * kSlotBytes]};
  std::array<mmsghdr, kSlots> messages{};
  std::array<iovec, kSlots> iovecs{};
  std::array<sockaddr_in, kSlots> sources{};
  std::array<ReceiveControl, kSlots> controls{};
  std::array<RxTrain, kSlots> trains{};

  void prepare(std::size_t i) {
    iovecs[i] = {bytes.get() + i * kSlotBytes, kSlotBytes};
    messages[i].msg_hdr = received_into(iovecs[i], sources[i], controls[i]);
  }
};

Outcome<std::unique_ptr<Groups>> Groups::open(const WireFacts& facts, std::uint32_t receive_buffer) {
  std::unique_ptr<Groups> groups(new Groups(facts, receive_buffer));
  groups->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (groups->epoll_ < 0) return fail(Errc::kNoMemory);
  return groups;
}

Groups::Groups(const WireFacts& facts, std::uint32_t receive_buffer)
    : facts_(facts), receive_buffer_(receive_buffer), buffers_(std::make_unique<Buffers>()) {}

Groups::~Groups() {
  for (const Member& m : members_) close(m.fd);
  if (epoll_ >= 0) close(epoll_);
}

Outcome<int> Groups::open_socket(const wire::Address& group) const {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fail(Errc::kNoMemory);
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);  // other processes join, too
  set_option(fd, SOL_UDP, UDP_GRO, 1);
  // Of what the group is sent, only what comes by our interface.
  set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF, receive_buffer_);
  if (headers_) show(fd);
  const sockaddr_in at = to_sockaddr(group, facts_.port);
  const ip_mreqn m = membership(group, facts_);
  epoll_event readable{};
  readable.events = EPOLLIN;
  readable.data.fd = fd;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
      setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m) == 0 &&
      epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &readable) == 0)
    return fd;
  const Errc why = reason();
  close(fd);
  return fail(why);
}

Outcome<void> Groups::join(const wire::Address& group) {
  if (!wire::is_v4_mapped(group) || !wire::is_group(group)) return fail(Errc::kInvalid);
  if (std::any_of(members_.begin(), members_.end(), [&](const Member& m) { return m.group == group; }))
    return fail(Errc::kBusy);
  members_.reserve(members_.size() + 1);
  const auto fd = open_socket(group);
  if (!fd) return fail(fd.error());
  members_.push_back({*fd, group});
  return {};
}

void Groups::leave(const wire::Address& group) {
  std::erase_if(members_, [&](const Member& m) {
    if (m.group != group) return false;
    close(m.fd);  // which leaves the group, and the epoll descriptor
    return true;
  });
}

std::span<const RxTrain> Groups::receive() {
  epoll_event ready{};
  if (epoll_wait(epoll_, &ready, 1, 0) != 1) return {};
  for (const Member& m : members_) {
    if (m.fd == ready.data.fd) return read(m);
  }
  return {};
}

std::span<const RxTrain> Groups::read(const Member& member) {
  Buffers& b = *buffers_;
  for (std::size_t i = 0; i < kSlots; ++i) b.prepare(i);
  const int got = recvmmsg(member.fd, b.messages.data(), kSlots, MSG_DONTWAIT, nullptr);
  if (got <= 0) return {};
  const auto count = static_cast<std::size_t>(got);
  for (std::size_t i = 0; i < count; ++i) {
    b.trains[i] = train_of(b.messages[i], b.sources[i]);
    b.trains[i].group = member.group;
  }
  return {b.trains.data(), count};
}

void Groups::show_headers() {
  headers_ = true;
  for (const Member& m : members_) show(m.fd);
}

void Groups::abandon(int nowhere) {
  for (const Member& m : members_) dup3(nowhere, m.fd, O_CLOEXEC);
  dup3(nowhere, epoll_, O_CLOEXEC);
}

}  // namespace weft::live
