// The UDP wire. One receive call fills up to kSlots trains; each slot holds the largest datagram there
// is. One message per call when they are large (the next layer reads it while it is still in the
// second-level cache), more when small ones keep coming (a call costs as much as a small datagram).
#include "live/wires/udp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/wire/ip.h"
#include "live/wires/bind_refused.h"
#include "live/wires/interfaces.h"
#include "live/wires/sockets.h"

namespace weft::live {
namespace {

constexpr std::size_t kSlots = 32;
constexpr std::size_t kSlotBytes = 65536;
constexpr std::size_t kSlotStride = kSlotBytes + 4096 + 192;  // slots start in different cache sets
constexpr std::uint32_t kLargeMessage = 16384;
// How long what others hand over may wait while a program spins on its own socket.
constexpr Duration kMailEvery = microseconds(50);
constexpr std::uint32_t kMostReads = 16;  // of the socket, by one receive()
constexpr std::uint8_t kLastSlot = 254;
constexpr std::uint32_t kGroupBuffer = 4U << 20U;
// The kernel's bound on one send, with the headers of IPv4 and UDP; IPv6's larger one leaves as much less.
constexpr std::uint32_t kLargestTrain = 65535 - wire::kIpv4Bytes - wire::kUdpBytes;
constexpr std::uint32_t kLargestTrainV6 = 65535 - wire::kIpv6Bytes - wire::kUdpBytes;

int get_option(int fd, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(fd, level, name, &value, &size) == 0 ? value : 0;
}

// The control messages of a send, aligned as the kernel wants them.
struct SendControl {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t)) + 2 * CMSG_SPACE(sizeof(int))> bytes{};
  std::size_t used = 0;

  template <typename T>
  void add(msghdr& message, int level, int type, T value) {
    auto* const c = reinterpret_cast<cmsghdr*>(bytes.data() + used);
    used += CMSG_SPACE(sizeof value);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(c), &value, sizeof value);
    message.msg_control = bytes.data();
    message.msg_controllen = used;
  }
};

// How many segments one send takes, found by sending one-byte segments from a scratch socket to
// itself; 1 when the kernel does not segment.
std::uint32_t probe_segments(const wire::Address& address, std::uint32_t interface) {
  SocketAddress self = to_sockaddr(address, 0, interface);
  const int fd = socket(self.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return 1;
  socklen_t size = self.size();
  std::uint32_t limit = 1;
  if (bind(fd, self.generic(), size) == 0 && getsockname(fd, self.generic(), &size) == 0) {
    std::array<std::uint8_t, kMostTrainFrames> bytes{};
    for (const std::size_t count : {kMostTrainFrames, kMostTrainFrames / 2}) {
      SendControl control;
      iovec iov{bytes.data(), count};
      msghdr message{};
      message.msg_name = &self;
      message.msg_namelen = size;
      message.msg_iov = &iov;
      message.msg_iovlen = 1;
      control.add(message, SOL_UDP, UDP_SEGMENT, std::uint16_t{1});
      if (sendmsg(fd, &message, MSG_DONTWAIT) == static_cast<ssize_t>(count)) {
        limit = static_cast<std::uint32_t>(count);
        break;
      }
    }
  }
  close(fd);
  return limit;
}

// Whether it is the address of all hosts of a network. Linux lets a socket bind it, and refuses to connect to
// it.
bool is_broadcast(const wire::Address& address) {
  if (!wire::is_v4_mapped(address)) return false;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const SocketAddress to = to_sockaddr(address, 1);
  const bool refused = connect(fd, to.generic(), to.size()) != 0 && errno == EACCES;
  close(fd);
  return refused;
}

}  // namespace

std::string to_text(const wire::Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (wire::is_v4_mapped(address)) {
    inet_ntop(AF_INET, &address.bytes[12], text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, address.bytes.data(), text.data(), text.size());
  }
  return text.data();
}

struct UdpWire::Buffers {
  std::unique_ptr<std::uint8_t[]> bytes{new std::uint8_t[kSlots * kSlotStride]};
  std::array<mmsghdr, kSlots> messages{};
  std::array<iovec, kSlots> iovecs{};
  std::array<SocketAddress, kSlots> sources{};
  std::array<ReceiveControl, kSlots> controls{};
  std::array<RxTrain, kSlots> trains{};

  void prepare(std::size_t i) {
    iovecs[i] = {bytes.get() + i * kSlotStride, kSlotBytes};
    messages[i].msg_hdr = received_into(iovecs[i], sources[i], controls[i]);
  }
};

UdpWire::UdpWire() : buffers_(std::make_unique<Buffers>()) {}

UdpWire::~UdpWire() {
  if (fd_ >= 0) close(fd_);
  if (probe_fd_ >= 0) close(probe_fd_);
}

void UdpWire::abandon(int nowhere) {
  dup3(nowhere, fd_, O_CLOEXEC);
  if (probe_fd_ >= 0) dup3(nowhere, probe_fd_, O_CLOEXEC);
  if (neighbours_ != nullptr) neighbours_->abandon(nowhere);
  if (groups_ != nullptr) groups_->abandon(nowhere);
}

void UdpWire::visit_counters(const SeeCounter& see) const {
  if (neighbours_ == nullptr) return;
  const NeighbourCounters& c = neighbours_->counters();
  see("handed_over", "trains for other processes of this address, given to them", c.handed);
  see("taken_over", "trains that other processes of this address received for this one", c.taken);
  see("handed_lost",
      "of those for others, dropped: the process is gone or has no room, or too much was for all", c.lost);
}

namespace {

// Nothing is fragmented, as over IPv4; and a checksum that was left out is no fault.
void choose_v6_options(int fd) {
  set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
  set_option(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
  set_option(fd, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0);
  set_option(fd, SOL_UDP, UDP_NO_CHECK6_RX, 1);
}

// Datagrams to groups leave by our interface, whatever the routes say.
void send_groups_by(int fd, const SocketAddress& self, std::uint32_t interface) {
  if (self.family() == AF_INET6) {
    set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(interface));
    return;
  }
  ip_mreqn by{};
  by.imr_address = self.v4.sin_addr;
  setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by);
}

}  // namespace

Result<std::unique_ptr<UdpWire>> UdpWire::open(const wire::Address& address, std::uint16_t port,
                                               const UdpOptions& options) {
  if (is_broadcast(address)) {
    return fail("address " + to_text(address) +
                " is the broadcast address of its network; take the address of one host, such as 127.0.0.2");
  }
  const Interface interface = find_interface(address);
  if (is_link_local(address) && interface.others) {
    return fail("address " + to_text(address) +
                " belongs to several interfaces of this machine; take one that only one of them has");
  }
  std::unique_ptr<UdpWire> wire(new UdpWire);
  wire->options_ = &options_of(address);
  const FamilyOptions& of = *wire->options_;
  const bool v4 = of.family == AF_INET;
  const int fd = socket(of.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 && errno == EAFNOSUPPORT) return fail(no_v6_sentence(address));
  if (fd < 0) return fail_system("cannot open a UDP socket", errno);
  wire->fd_ = fd;
  if (v4 && !set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)) {
    return fail_system("cannot set IP_MTU_DISCOVER, without which no ICRC is right", errno);
  }
  if (!v4) choose_v6_options(fd);
  if (options.segmentation) set_option(fd, SOL_UDP, UDP_GRO, 1);
  enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF, options.receive_buffer);
  enlarge(fd, SO_SNDBUFFORCE, SO_SNDBUF, options.send_buffer);
  if (options.shared && Neighbours::users_differ()) {
    auto joined = Neighbours::join(address, port, options.slot);
    if (!joined) return tl::unexpected(joined.error());
    wire->neighbours_ = std::move(*joined);
    set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  }
  const SocketAddress self = to_sockaddr(address, port, interface.index);
  if (bind(fd, self.generic(), self.size()) != 0) {
    const int number = errno;
    return tl::unexpected(Error{bind_sentence(address, port), number});
  }
  set_option(fd, of.level, of.hop_limit, wire->usual_.hop_limit);
  send_groups_by(fd, self, interface.index);
  wire->own_hosts_ = own_addresses();
  WireFacts& facts = wire->facts_;
  facts.own = {address};
  facts.port = port;
  facts.interface = interface.index;
  facts.mtu = interface.mtu;
  // Only a real network marks packets, and a control message costs a tenth of a small datagram. A
  // kernel that does not know the option just does not tell.
  if (!interface.loopback) set_option(fd, of.level, of.show_traffic_class, 1);
  facts.max_frames = options.segmentation ? probe_segments(address, interface.index) : 1;
  facts.identification_counts = facts.max_frames > 1;
  if (!facts.identification_counts) facts.max_frames = kMostTrainFrames / 2;  // of one sendmmsg
  facts.max_bytes = v4 ? kLargestTrain : kLargestTrainV6;
  facts.receive_buffer = static_cast<std::uint64_t>(get_option(fd, SOL_SOCKET, SO_RCVBUF));
  if (wire->neighbours_ != nullptr) wire->join_others();
  return wire;
}

Outcome<void> UdpWire::join(const wire::Address& group) {
  if (groups_ == nullptr) {
    auto opened = Groups::open(facts_, kGroupBuffer);
    if (!opened) return fail(opened.error());
    if (headers_) (*opened)->show_headers();
    if (const auto joined = (*opened)->join(group); !joined) return joined;
    from_groups_.reserve(Groups::kSlots);
    groups_ = std::move(*opened);
    return {};
  }
  return groups_->join(group);
}

void UdpWire::leave(const wire::Address& group) {
  if (groups_ != nullptr) groups_->leave(group);
}

std::span<const RxTrain> UdpWire::receive(Time now) {
  if (groups_ == nullptr) return receive_own(now);
  // In turns, too: neither hides the other.
  const bool groups_first = std::exchange(groups_first_, !groups_first_);
  std::span<const RxTrain> ours = groups_first ? read_groups() : receive_own(now);
  if (ours.empty()) ours = groups_first ? receive_own(now) : read_groups();
  return ours;
}

std::span<const RxTrain> UdpWire::read_groups() {
  const std::span<const RxTrain> trains = groups_->receive();
  from_groups_.assign(trains.begin(), trains.end());
  for (RxTrain& train : from_groups_) train.stray = is_stray(train);
  return from_groups_;
}

std::span<const RxTrain> UdpWire::receive_own(Time now) {
  if (neighbours_ == nullptr) return read_socket();
  // In turns: a full mailbox must not hide the socket, nor the probes there that end the handing over.
  const bool mail_due = now >= mail_at_;
  const bool socket_first = std::exchange(socket_first_, false);
  std::span<const RxTrain> ours;
  if (mail_due && !socket_first) ours = read_mail(now);
  // What is not ours must not look like an empty socket: read on, within a bound.
  for (std::uint32_t reads = 0; ours.empty() && reads < kMostReads; ++reads) {
    const std::span<const RxTrain> trains = read_socket();
    if (trains.empty()) break;
    ours = sort_out(trains);
  }
  if (mail_due && socket_first && ours.empty()) ours = read_mail(now);
  return ours;
}

std::span<const RxTrain> UdpWire::read_socket() {
  Buffers& b = *buffers_;
  for (std::size_t i = 0; i < batch_; ++i) b.prepare(i);
  int got = 1;
  if (batch_ == 1) {
    const ssize_t n = recvmsg(fd_, &b.messages[0].msg_hdr, MSG_DONTWAIT);
    b.messages[0].msg_len = static_cast<unsigned>(n);
    if (n < 0) got = 0;
  } else {
    got = recvmmsg(fd_, b.messages.data(), batch_, MSG_DONTWAIT, nullptr);
  }
  if (got <= 0) {
    batch_ = 1;
    streak_ = 0;
    return {};
  }
  const auto count = static_cast<std::size_t>(got);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += b.messages[i].msg_len;
    b.trains[i] = train_of(b.messages[i], b.sources[i]);
    b.trains[i].stray = is_stray(b.trains[i]);
  }
  // More at once only for small messages that keep coming: a ping-pong must not pay for a second look.
  ++streak_;
  if (bytes / count >= kLargeMessage) {
    batch_ = 1;
  } else if (count == batch_ && streak_ > 1) {
    batch_ = static_cast<std::uint32_t>(std::min<std::size_t>(kSlots, batch_ * 2U));
  }
  return {b.trains.data(), count};
}

// --- with other processes on the address ---

void UdpWire::join_others() {
  facts_.slot = neighbours_->slot();
  sorted_.reserve(2 * kSlots);
  const SocketAddress self = to_sockaddr(facts_.own.first, 0, facts_.interface);
  probe_fd_ = socket(self.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe_fd_ >= 0) bind(probe_fd_, self.generic(), self.size());
  place_ = std::make_unique<PlaceFinder>(fd_, probe_fd_, facts_, *neighbours_);
}

std::span<const RxTrain> UdpWire::read_mail(Time now) {
  mail_at_ = now + kMailEvery;
  place_->look(now);
  neighbours_->forget_services(now);
  const std::span<const RxTrain> mail = neighbours_->receive();
  if (mail.empty()) return {};
  mail_at_ = now;
  socket_first_ = true;
  // Whoever hands us our own does not know our place, or nobody does. Queue pair 1 is everybody's.
  const bool own = std::any_of(mail.begin(), mail.end(), [this](const RxTrain& t) {
    return t.bytes > kSlotOffset && t.data[kSlotOffset] == facts_.slot;
  });
  if (own) place_->handed(now);
  return mail;
}

std::span<const RxTrain> UdpWire::sort_out(std::span<const RxTrain> trains) {
  sorted_.clear();
  for (const RxTrain& train : trains) keep_or_hand(train);
  return sorted_;
}

// Probes end here. Frames for the slot of another process go to it, in runs; the others, and those for no
// slot, are ours.
void UdpWire::keep_or_hand(const RxTrain& train) {
  const auto slot_at = [&](std::uint32_t at) {
    const std::uint8_t slot = at + kSlotOffset < train.bytes ? train.data[at + kSlotOffset] : std::uint8_t{0};
    return slot == 0 || slot > kLastSlot ? facts_.slot : slot;
  };
  if (place_->is_probe(train)) return place_->arrived(train);
  std::uint32_t from = 0;
  while (from < train.bytes) {
    const std::uint8_t slot = slot_at(from);
    std::uint32_t to = from;
    do {
      to = std::min(to + train.frame_size, train.bytes);
    } while (to < train.bytes && slot_at(to) == slot);
    RxTrain run = train;
    run.data += from;
    run.bytes = to - from;
    if (train.header_seen)
      run.identification = static_cast<std::uint16_t>(train.identification + from / train.frame_size);
    if (slot == facts_.slot || train.stray) {
      sorted_.push_back(run);
    } else {
      neighbours_->hand_to_slot(slot, run);
    }
    from = to;
  }
  if (train.bytes == 0) sorted_.push_back(train);
}

Result<void> UdpWire::leave_alone(std::span<const sock_filter> program) {
  const sock_fprog p{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  if (setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p) == 0) return {};
  return fail_system("the kernel refuses the UDP socket's filter", errno);
}

std::span<const RxTrain> UdpWire::keep_own(std::span<const RxTrain> trains) {
  return neighbours_ == nullptr ? trains : sort_out(trains);
}

void UdpWire::show_headers() {
  set_option(fd_, options_->level, options_->show_traffic_class, 1);
  set_option(fd_, options_->level, options_->show_hop_limit, 1);
  headers_ = true;
  if (groups_ != nullptr) groups_->show_headers();
}

bool UdpWire::is_stray(const RxTrain& train) const {
  // No host of the other family sends to this socket, whatever the packet says.
  if (wire::is_v4_mapped(train.source) != (options_->family == AF_INET)) return true;
  return train.source_port != facts_.port && of_this_host(train.source);
}

bool UdpWire::of_this_host(const wire::Address& source) const {
  return is_loopback(source) || std::find(own_hosts_.begin(), own_hosts_.end(), source) != own_hosts_.end();
}

SendStatus UdpWire::send(const TxTrain& train) {
  DCHECK(train.bytes.size() <= facts_.max_bytes && train.frame_size != 0);
  SocketAddress to = to_sockaddr(train.destination, facts_.port, facts_.interface);
  iovec iov{const_cast<std::uint8_t*>(train.bytes.data()), train.bytes.size()};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = to.size();
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  SendControl control;
  const auto choose = [&] {
    control.add(message, options_->level, options_->traffic_class, int{train.ip.traffic_class});
    control.add(message, options_->level, options_->hop_limit_of_one, int{train.ip.hop_limit});
  };
  if (wire::is_group(train.destination)) {
    // The socket's own choices are for hosts: the kernel has another hop limit for groups.
    choose();
  } else if (train.ip != usual_) {
    // Most processes choose traffic class and hop limit once: the first choice becomes the socket's, and
    // costs nothing from then on.
    if (!usual_known_) {
      set_option(fd_, options_->level, options_->traffic_class, train.ip.traffic_class);
      set_option(fd_, options_->level, options_->hop_limit, train.ip.hop_limit);
      usual_ = train.ip;
    } else {
      choose();
    }
  }
  usual_known_ = usual_known_ || !wire::is_group(train.destination);
  if (train.frame_size < train.bytes.size()) {
    if (!facts_.identification_counts) return send_singly(train, message);
    control.add(message, SOL_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(train.frame_size));
  }
  if (sendmsg(fd_, &message, MSG_DONTWAIT) >= 0) return SendStatus::kSent;
  if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR) return SendStatus::kFull;
  // Older kernels cut no trains for a device that cannot checksum.
  if (errno != EIO || !facts_.identification_counts) return SendStatus::kFailed;
  facts_.identification_counts = false;
  return SendStatus::kUncut;
}

// Each frame by itself, with the address and the control messages of `message`.
SendStatus UdpWire::send_singly(const TxTrain& train, msghdr message) {
  std::array<mmsghdr, kMostTrainFrames> messages{};
  std::array<iovec, kMostTrainFrames> iovecs{};
  unsigned count = 0;
  for (std::size_t at = 0; at < train.bytes.size() && count < kMostTrainFrames;
       at += train.frame_size, ++count) {
    const std::size_t length = std::min<std::size_t>(train.frame_size, train.bytes.size() - at);
    iovecs[count] = {const_cast<std::uint8_t*>(train.bytes.data()) + at, length};
    message.msg_iov = &iovecs[count];
    messages[count].msg_hdr = message;
  }
  // A train that only partly fitted counts as sent: loss recovery knows better than a queue here.
  if (sendmmsg(fd_, messages.data(), count, MSG_DONTWAIT) > 0) return SendStatus::kSent;
  return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? SendStatus::kFull : SendStatus::kFailed;
}

}  // namespace weft::live
