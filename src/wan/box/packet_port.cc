#include "wan/box/packet_port.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weft::wan {
namespace {

static_assert(sizeof(Offload) == 10);  // struct virtio_net_hdr, whose header C++ cannot read

constexpr std::uint32_t kSlots = 4096;
constexpr std::uint32_t kBlock = 1U << 18U;
constexpr std::uint32_t kTagBytes = 4;         // of a VLAN
constexpr std::uint32_t kTagRoom = 16;         // before a long frame, for one
constexpr std::uint32_t kAround = 128;         // the slot's own header, and room for a tag
constexpr std::uint32_t kLongest = 1U << 17U;  // of a train; larger ones have to be asked for
constexpr std::size_t kLongFrames = 8;         // in one batch
constexpr int kSocketBuffer = 8 << 20;         // for long frames
constexpr int kRoomWithin = 1;                 // milliseconds that a full device is waited for
constexpr int kIgnoreOutgoing = 23;            // PACKET_IGNORE_OUTGOING, Linux 4.20

std::string why() { return std::strerror(errno); }

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  int release() { return std::exchange(fd, -1); }
};

Outcome<ifreq> ask(int fd, unsigned long what, const std::string& interface) {
  ifreq r{};
  interface.copy(r.ifr_name, sizeof r.ifr_name - 1);
  if (ioctl(fd, what, &r) != 0) return fail(Errc::kNotFound);
  return r;
}

template <class T>
bool set(int fd, int option, const T& value) {
  return setsockopt(fd, SOL_PACKET, option, &value, sizeof value) == 0;
}

}  // namespace

struct PacketPort::Messages {
  std::array<mmsghdr, kBatch> headers{};
  std::array<std::array<iovec, 2>, kBatch> pieces{};
};

PacketPort::PacketPort() : messages_(std::make_unique<Messages>()) {
  batch_.reserve(kBatch);
  for (std::size_t i = 0; i < kLongFrames; ++i)
    long_frames_.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(kLongest));
}

PacketPort::~PacketPort() {
  if (ring_ != nullptr) munmap(ring_, ring_bytes_);
  if (fd_ >= 0) close(fd_);
}

Result<std::unique_ptr<PacketPort>> PacketPort::open(const std::string& field, const std::string& interface) {
  const std::string named = field + ": '" + interface + "' ";
  const unsigned index = interface.size() < IFNAMSIZ ? if_nametoindex(interface.c_str()) : 0;
  if (index == 0)
    return fail(named + "is no interface of this network namespace; 'ip link' lists those that there are");
  // Protocol 0: nothing is received before everything is set.
  Descriptor d{socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (d.fd < 0 && (errno == EPERM || errno == EACCES))
    return fail(
        field +
        ": taking all frames of an interface needs CAP_NET_RAW: run this as root, or in a namespace of "
        "your own (unshare --user --map-root-user --net)");
  if (d.fd < 0) return fail(named + "cannot be opened: " + why());
  const auto flags = ask(d.fd, SIOCGIFFLAGS, interface);
  const auto kind = ask(d.fd, SIOCGIFHWADDR, interface);
  const auto mtu = ask(d.fd, SIOCGIFMTU, interface);
  if (!flags || !kind || !mtu) return fail(named + "went away while it was opened");
  if (kind->ifr_hwaddr.sa_family != ARPHRD_ETHER)
    return fail(named + "is no Ethernet, so a box cannot stand there");
  if ((static_cast<unsigned>(flags->ifr_flags) & IFF_UP) == 0)
    return fail(named + "is down; 'ip link set " + interface + " up' switches it on");

  auto p = std::unique_ptr<PacketPort>(new PacketPort());
  p->facts_ = {interface, static_cast<std::uint32_t>(mtu->ifr_mtu)};
  const int version = TPACKET_V2;
  const int one = 1;
  if (!set(d.fd, PACKET_VERSION, version) || !set(d.fd, PACKET_VNET_HDR, one))
    return fail(named + "cannot be read by this kernel: " + why());
  set(d.fd, PACKET_COPY_THRESH, one);
  set(d.fd, kIgnoreOutgoing, one);  // an older kernel says in each slot which frames are ours
  if (setsockopt(d.fd, SOL_SOCKET, SO_RCVBUFFORCE, &kSocketBuffer, sizeof kSocketBuffer) != 0)
    setsockopt(d.fd, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);

  const std::uint32_t slot = (p->facts_.mtu + ETH_HLEN + kAround + 63U) & ~63U;
  tpacket_req ring{};
  ring.tp_block_size = kBlock;
  ring.tp_frame_size = slot;
  p->slots_a_block_ = kBlock / slot;
  if (p->slots_a_block_ == 0)
    return fail(named + "has an MTU that is too large: " + std::to_string(p->facts_.mtu));
  ring.tp_block_nr = (kSlots + p->slots_a_block_ - 1) / p->slots_a_block_;
  ring.tp_frame_nr = ring.tp_block_nr * p->slots_a_block_;
  if (!set(d.fd, PACKET_RX_RING, ring)) return fail(named + "has no memory for its ring: " + why());
  p->slots_ = ring.tp_frame_nr;
  p->slot_bytes_ = slot;
  p->ring_bytes_ = std::size_t{ring.tp_block_nr} * kBlock;
  void* at = mmap(nullptr, p->ring_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, d.fd, 0);
  if (at == MAP_FAILED) return fail(named + "has a ring that cannot be mapped: " + why());
  p->ring_ = static_cast<std::uint8_t*>(at);

  packet_mreq promiscuous{};
  promiscuous.mr_ifindex = static_cast<int>(index);
  promiscuous.mr_type = PACKET_MR_PROMISC;
  sockaddr_ll here{};
  here.sll_family = AF_PACKET;
  here.sll_protocol = htons(ETH_P_ALL);
  here.sll_ifindex = static_cast<int>(index);
  if (!set(d.fd, PACKET_ADD_MEMBERSHIP, promiscuous) ||
      bind(d.fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0)
    return fail(named + "cannot be listened to: " + why());
  p->fd_ = d.release();
  return p;
}

std::uint8_t* PacketPort::slot(std::uint32_t i) const {
  return ring_ + std::size_t{i / slots_a_block_} * kBlock + std::size_t{i % slots_a_block_} * slot_bytes_;
}

bool PacketPort::read_long(std::uint32_t i, RxFrame& out) {
  std::array<iovec, 2> pieces{iovec{&out.offload, sizeof out.offload},
                              iovec{long_frames_[i].get() + kTagRoom, kLongest - kTagRoom}};
  msghdr m{};
  m.msg_iov = pieces.data();
  m.msg_iovlen = pieces.size();
  const ssize_t n = recvmsg(fd_, &m, MSG_DONTWAIT | MSG_TRUNC);
  if (n <= static_cast<ssize_t>(sizeof out.offload) || (m.msg_flags & MSG_TRUNC) != 0) return false;
  out.data = long_frames_[i].get() + kTagRoom;
  out.bytes = static_cast<std::uint32_t>(n) - static_cast<std::uint32_t>(sizeof out.offload);
  return true;
}

std::span<const RxFrame> PacketPort::receive() {
  batch_.clear();
  std::uint32_t long_ones = 0;
  for (; batch_.size() < kBatch && long_ones < kLongFrames && taken_ < slots_; ++taken_) {
    std::uint8_t* s = slot((next_ + taken_) % slots_);
    auto* h = reinterpret_cast<tpacket2_hdr*>(s);
    const std::uint32_t status = std::atomic_ref(h->tp_status).load(std::memory_order_acquire);
    if ((status & TP_STATUS_USER) == 0) break;
    const auto* from = reinterpret_cast<const sockaddr_ll*>(s + TPACKET_ALIGN(sizeof(tpacket2_hdr)));
    RxFrame f;
    if ((status & TP_STATUS_COPY) != 0) {
      if (!read_long(long_ones++, f)) {
        ++counters_.rx_torn;
        continue;
      }
    } else {
      f.data = s + h->tp_mac;
      f.bytes = h->tp_snaplen;
      std::memcpy(&f.offload, f.data - sizeof f.offload, sizeof f.offload);
    }
    if (from->sll_pkttype == PACKET_OUTGOING) continue;
    if ((status & TP_STATUS_COPY) == 0 && h->tp_snaplen < h->tp_len) {
      ++counters_.rx_torn;
      continue;
    }
    if ((status & TP_STATUS_VLAN_VALID) != 0 && f.bytes >= ETH_HLEN) {
      // The device took the tag out; it goes back between the addresses and the type.
      const std::uint16_t tpid = (status & TP_STATUS_VLAN_TPID_VALID) != 0 ? h->tp_vlan_tpid : ETH_P_8021Q;
      std::memmove(f.data - kTagBytes, f.data, 2 * ETH_ALEN);
      f.data -= kTagBytes;
      f.bytes += kTagBytes;
      const std::uint16_t tag[2] = {htons(tpid), htons(h->tp_vlan_tci)};
      std::memcpy(f.data + 2 * ETH_ALEN, tag, sizeof tag);
      if ((f.offload.flags & Offload::kNeedsChecksum) != 0)
        f.offload.checksum_start = static_cast<std::uint16_t>(f.offload.checksum_start + kTagBytes);
      if (f.offload.header_bytes != 0)
        f.offload.header_bytes = static_cast<std::uint16_t>(f.offload.header_bytes + kTagBytes);
    }
    ++counters_.rx_frames;
    counters_.rx_bytes += f.bytes;
    batch_.push_back(f);
  }
  return batch_;
}

void PacketPort::done() {
  for (; taken_ > 0; --taken_) {
    auto* h = reinterpret_cast<tpacket2_hdr*>(slot(next_));
    std::atomic_ref(h->tp_status).store(TP_STATUS_KERNEL, std::memory_order_release);
    next_ = (next_ + 1) % slots_;
  }
}

void PacketPort::send(std::span<const TxFrame> frames) {
  const std::size_t n = frames.size();
  for (std::size_t i = 0; i < n; ++i) {
    auto& pieces = messages_->pieces[i];
    pieces[0] = {const_cast<Offload*>(&frames[i].offload), sizeof(Offload)};
    pieces[1] = {const_cast<std::uint8_t*>(frames[i].data), frames[i].bytes};
    msghdr& m = messages_->headers[i].msg_hdr;
    m = {};
    m.msg_iov = pieces.data();
    m.msg_iovlen = pieces.size();
  }
  bool waited = false;
  for (std::size_t at = 0; at < n;) {
    const int sent =
        sendmmsg(fd_, messages_->headers.data() + at, static_cast<unsigned>(n - at), MSG_DONTWAIT);
    if (sent > 0) {
      for (const std::size_t end = at + static_cast<std::size_t>(sent); at < end; ++at) {
        ++counters_.tx_frames;
        counters_.tx_bytes += frames[at].bytes;
      }
    } else if (errno == EAGAIN && !waited) {
      waited = true;
      pollfd room{fd_, POLLOUT, 0};
      static_cast<void>(poll(&room, 1, kRoomWithin));
    } else if (errno == EAGAIN || errno == ENOBUFS) {
      ++counters_.tx_full;
      ++at;
    } else if (errno != EINTR) {
      ++counters_.tx_failed;
      ++at;
    }
  }
}

const PortCounters& PacketPort::counters() {
  tpacket_stats s{};
  socklen_t n = sizeof s;
  // Reading them sets them back to zero.
  if (getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &s, &n) == 0) counters_.rx_missed += s.tp_drops;
  return counters_;
}

}  // namespace weft::wan
