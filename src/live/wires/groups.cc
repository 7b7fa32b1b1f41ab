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
    case ENETUNREACH:    // it is led to no groups,
    case ENODEV:         // no interface has the address,
    case EADDRNOTAVAIL:  // or it takes no groups
    case EPERM:
    case EACCES:
      return Errc::kUnsupported;
    case EMFILE:
    case ENFILE:
      return Errc::kNoDescriptor;
    default:
      return Errc::kNoMemory;
  }
}

// By the interface that has our address.
bool add_membership(int fd, const wire::Address& group, const WireFacts& facts) {
  if (!wire::is_v4_mapped(group)) {
    ipv6_mreq m{};
    m.ipv6mr_multiaddr = to_sockaddr(group, 0).v6.sin6_addr;
    m.ipv6mr_interface = facts.interface;
    return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof m) == 0;
  }
  ip_mreqn m{};
  m.imr_multiaddr = to_sockaddr(group, 0).v4.sin_addr;
  m.imr_address = to_sockaddr(facts.own.first, 0).v4.sin_addr;
  m.imr_ifindex = static_cast<int>(facts.interface);
  return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m) == 0;
}

// Whether the kernel has a way to the group by our interface. Over IPv6 it has none by the loopback
// interface, but for one that somebody has made; and who joins a group expects to hear itself.
bool leads_there(int fd, const wire::Address& group, const WireFacts& facts) {
  if (wire::is_v4_mapped(group)) return true;
  set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(facts.interface));
  const SocketAddress to = to_sockaddr(group, facts.port, facts.interface);
  return connect(fd, to.generic(), to.size()) == 0;
}

void show(int fd, const FamilyOptions& of) {
  set_option(fd, of.level, of.show_traffic_class, 1);
  set_option(fd, of.level, of.show_hop_limit, 1);
}

// Of what the group is sent, only what comes by our interface.
void take_no_others(int fd, const FamilyOptions& of) {
  constexpr int kIpv6MulticastAll = 29;  // IPV6_MULTICAST_ALL, which glibc's headers lack
  const bool v4 = of.family == AF_INET;
  set_option(fd, of.level, v4 ? IP_MULTICAST_ALL : kIpv6MulticastAll, 0);
  if (v4) return;
  set_option(fd, of.level, IPV6_V6ONLY, 1);
  set_option(fd, SOL_UDP, UDP_NO_CHECK6_RX, 1);
}

}  // namespace

struct Groups::Buffers {
  std::unique_ptr<std::uint8_t[]> bytes{new std::uint8_t[kSlots * kSlotBytes]};
  std::array<mmsghdr, kSlots> messages{};
  std::array<iovec, kSlots> iovecs{};
  std::array<SocketAddress, kSlots> sources{};
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
  if (groups->epoll_ < 0) return fail(reason());
  return groups;
}

Groups::Groups(const WireFacts& facts, std::uint32_t receive_buffer)
    : facts_(facts), receive_buffer_(receive_buffer), buffers_(std::make_unique<Buffers>()) {}

Groups::~Groups() {
  for (const Member& m : members_) close(m.fd);
  if (epoll_ >= 0) close(epoll_);
}

Outcome<int> Groups::open_socket(const wire::Address& group) const {
  const FamilyOptions& of = options_of(group);
  if (const int probe = socket(of.family, SOCK_DGRAM | SOCK_CLOEXEC, 0); probe >= 0) {
    const bool leads = leads_there(probe, group, facts_);
    const Errc why = reason();
    close(probe);
    if (!leads) return fail(why);
  }
  const int fd = socket(of.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fail(reason());
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);  // other processes join, too
  set_option(fd, SOL_UDP, UDP_GRO, 1);
  take_no_others(fd, of);
  enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF, receive_buffer_);
  if (headers_) show(fd, of);
  const SocketAddress at = to_sockaddr(group, facts_.port, facts_.interface);
  epoll_event readable{};
  readable.events = EPOLLIN;
  readable.data.fd = fd;
  if (bind(fd, at.generic(), at.size()) == 0 && add_membership(fd, group, facts_) &&
      epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &readable) == 0)
    return fd;
  const Errc why = reason();
  close(fd);
  return fail(why);
}

Outcome<void> Groups::join(const wire::Address& group) {
  if (!wire::is_group(group) || !facts_.own.reach(group)) return fail(Errc::kInvalid);
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
  for (const Member& m : members_) show(m.fd, options_of(m.group));
}

void Groups::abandon(int nowhere) {
  for (const Member& m : members_) dup3(nowhere, m.fd, O_CLOEXEC);
  dup3(nowhere, epoll_, O_CLOEXEC);
}

}  // namespace weft::live
