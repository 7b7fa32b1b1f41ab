#include "live/packet_io/packet_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/base/check.h"
#include "live/packet_io/frame.h"

namespace weft::live {
namespace {

constexpr std::size_t kSlots = 32;
constexpr std::size_t kSlotBytes = 65536 + 64;
constexpr std::size_t kSlotStride = kSlotBytes + 4096;  // slots start in different cache sets
constexpr std::uint32_t kLargeMessage = 16384;

// The kernel's struct virtio_net_hdr, whose own header no C++ compiler takes.
struct Note {
  std::uint8_t flags = 0;
  std::uint8_t cut = 0;          // gso_type
  std::uint16_t headers = 0;     // hdr_len
  std::uint16_t segment = 0;     // gso_size
  std::uint16_t sum_from = 0;    // csum_start
  std::uint16_t sum_offset = 0;  // csum_offset, from there
};
constexpr std::size_t kNote = sizeof(Note);
static_assert(kNote == 10);
constexpr std::uint8_t kNeedsChecksum = 1;  // VIRTIO_NET_HDR_F_NEEDS_CSUM
constexpr std::uint8_t kDataValid = 2;      // VIRTIO_NET_HDR_F_DATA_VALID
constexpr std::uint8_t kCutUdp = 5;         // VIRTIO_NET_HDR_GSO_UDP_L4

bool set(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

void enlarge(int fd, int forced, int ordinary, std::uint32_t bytes) {
  const int value = static_cast<int>(bytes);
  if (!set(fd, SOL_SOCKET, forced, value)) set(fd, SOL_SOCKET, ordinary, value);
}

PacketSocket::Sent refused() {
  return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? PacketSocket::Sent::kFull
                                                               : PacketSocket::Sent::kFailed;
}

PacketSocket::Sent send_pieces(int fd, const Note& note, std::span<const std::uint8_t> headers,
                               std::span<const std::uint8_t> payload) {
  std::array<iovec, 3> pieces{iovec{const_cast<Note*>(&note), kNote},
                              iovec{const_cast<std::uint8_t*>(headers.data()), headers.size()},
                              iovec{const_cast<std::uint8_t*>(payload.data()), payload.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return sendmsg(fd, &message, MSG_DONTWAIT) >= 0 ? PacketSocket::Sent::kYes : refused();
}

}  // namespace

Error raw_socket_refused(const char* what) {
  const int number = errno;
  if (number != EPERM && number != EACCES)
    return fail_system(std::string("cannot open ") + what, number).value();
  return {std::string(what) +
              " needs the right to use raw sockets (CAP_NET_RAW): start weft as root, or as yourself with "
              "`sudo setpriv --reuid=$USER --init-groups --inh-caps=+net_raw --ambient-caps=+net_raw weft "
              "run ...`, "
              "or take --wire udp, which needs no right",
          number};
}

struct PacketSocket::Buffers {
  std::unique_ptr<std::uint8_t[]> bytes{new std::uint8_t[kSlots * kSlotStride]};
  std::array<Note, kSlots> notes{};
  std::array<mmsghdr, kSlots> messages{};
  std::array<std::array<iovec, 2>, kSlots> pieces{};
  std::array<RawFrame, kSlots> frames{};

  void prepare(std::size_t i) {
    pieces[i] = {iovec{&notes[i], kNote}, iovec{bytes.get() + i * kSlotStride, kSlotBytes}};
    messages[i] = {};
    messages[i].msg_hdr.msg_iov = pieces[i].data();
    messages[i].msg_hdr.msg_iovlen = pieces[i].size();
  }

  RawFrame frame(std::size_t i) const {
    RawFrame f;
    f.data = bytes.get() + i * kSlotStride;
    f.bytes =
        messages[i].msg_len - static_cast<std::uint32_t>(std::min<std::size_t>(messages[i].msg_len, kNote));
    if (notes[i].cut == kCutUdp) f.segment = notes[i].segment;
    f.checksum_vouched = (notes[i].flags & (kNeedsChecksum | kDataValid)) != 0;
    return f;
  }
};

PacketSocket::PacketSocket() : buffers_(std::make_unique<Buffers>()) {}

PacketSocket::~PacketSocket() {
  if (fd_ >= 0) close(fd_);
}

Result<std::unique_ptr<PacketSocket>> PacketSocket::open(std::uint32_t interface,
                                                         std::span<const sock_filter> filter,
                                                         const PacketOptions& options) {
  std::unique_ptr<PacketSocket> socket(new PacketSocket);
  // Without a protocol until the filter is there: what comes before would not be filtered.
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return tl::unexpected(raw_socket_refused("a packet socket"));
  socket->fd_ = fd;
  if (!set(fd, SOL_PACKET, PACKET_VNET_HDR, 1))
    return fail_system("cannot ask for frames with the kernel's notes (PACKET_VNET_HDR)", errno);
  enlarge(fd, SO_SNDBUFFORCE, SO_SNDBUF, options.send_buffer);
  const bool receives = options.receive_buffer != 0;
  if (receives) {
    enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF, options.receive_buffer);
    sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
      return fail_system("the kernel refuses the packet socket's filter", errno);
  }
  sockaddr_ll at{};
  at.sll_family = AF_PACKET;
  at.sll_ifindex = static_cast<int>(interface);
  at.sll_protocol = receives ? htons(ETH_P_IP) : 0;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    return fail_system("cannot bind a packet socket to the interface", errno);
  return socket;
}

std::span<const RawFrame> PacketSocket::receive() {
  Buffers& b = *buffers_;
  for (std::size_t i = 0; i < batch_; ++i) b.prepare(i);
  const int got = recvmmsg(fd_, b.messages.data(), batch_, MSG_DONTWAIT, nullptr);
  if (got <= 0) {
    batch_ = 1;
    return {};
  }
  const auto count = static_cast<std::size_t>(got);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    b.frames[i] = b.frame(i);
    bytes += b.frames[i].bytes;
  }
  // One large piece at a time, so that it is read while it is in the cache; small ones that keep coming,
  // together.
  if (bytes / count >= kLargeMessage) {
    batch_ = 1;
  } else if (count == batch_) {
    batch_ = static_cast<std::uint32_t>(std::min<std::size_t>(kSlots, batch_ * 2U));
  }
  return {b.frames.data(), count};
}

PacketSocket::Sent PacketSocket::send(std::span<const std::uint8_t> headers,
                                      std::span<const std::uint8_t> payload) {
  return send_pieces(fd_, Note{}, headers, payload);
}

PacketSocket::Sent PacketSocket::send_train(std::span<const std::uint8_t> headers,
                                            std::span<const std::uint8_t> payloads, std::uint32_t segment) {
  DCHECK(headers.size() == kFrameHeaders && segment != 0);
  Note note;
  note.flags = kNeedsChecksum;
  note.cut = kCutUdp;
  note.headers = kFrameHeaders;
  note.segment = static_cast<std::uint16_t>(segment);
  note.sum_from = kEthernetBytes + wire::kIpv4Bytes;
  note.sum_offset = 6;
  const Sent sent = send_pieces(fd_, note, headers, payloads);
  if (sent == Sent::kFailed && errno == EINVAL) may_cut_ = false;
  return sent;
}

std::uint64_t PacketSocket::receive_buffer() const {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &value, &size) == 0 ? static_cast<std::uint64_t>(value) : 0;
}

std::uint64_t PacketSocket::lost() {
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  // The kernel counts from the last time it was asked.
  if (getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) lost_ += stats.tp_drops;
  return lost_;
}

void PacketSocket::abandon(int nowhere) { dup3(nowhere, fd_, O_CLOEXEC); }

}  // namespace weft::live
