#include "live/packet_io/xdp_socket.h"

#include <fcntl.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/base/check.h"

namespace weft::live {
namespace {

// Of kernels newer than our headers.
constexpr std::uint16_t kSeveralChunks = 1U << 4U;  // XDP_USE_SG
constexpr std::uint32_t kGoesOn = 1U << 0U;         // XDP_PKT_CONTD
constexpr std::uint32_t kLongestFrame = 16384;

std::uint32_t load(const std::uint32_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
void store(std::uint32_t* p, std::uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }

bool set(int fd, int name, std::uint32_t value) {
  return setsockopt(fd, SOL_XDP, name, &value, sizeof value) == 0;
}

tl::unexpected<Error> refused(const char* step) {
  return fail_system(std::string("the kernel refuses an AF_XDP socket (") + step + ")", errno);
}

}  // namespace

Result<std::unique_ptr<XdpSocket>> XdpSocket::open(std::uint32_t interface, std::uint32_t queue,
                                                   const XdpOptions& options) {
  CHECK((options.chunks & (options.chunks - 1)) == 0 && options.chunks != 0);
  std::unique_ptr<XdpSocket> socket(new XdpSocket);
  const auto made = socket->make(interface, queue, options);
  if (!made) return tl::unexpected(made.error());
  return socket;
}

bool XdpSocket::map(Ring& ring, const void* offsets, std::uint64_t page, std::uint32_t entries,
                    std::size_t entry) {
  const auto& at = *static_cast<const xdp_ring_offset*>(offsets);
  ring.bytes = at.desc + std::size_t{entries} * entry;
  ring.mapped = mmap(nullptr, ring.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_,
                     static_cast<off_t>(page));
  if (ring.mapped == MAP_FAILED) {
    ring.mapped = nullptr;
    return false;
  }
  auto* const base = static_cast<std::uint8_t*>(ring.mapped);
  ring.producer = reinterpret_cast<std::uint32_t*>(base + at.producer);
  ring.consumer = reinterpret_cast<std::uint32_t*>(base + at.consumer);
  ring.flags = reinterpret_cast<std::uint32_t*>(base + at.flags);
  ring.entries = base + at.desc;
  ring.mask = entries - 1;
  return true;
}

Result<void> XdpSocket::make(std::uint32_t interface, std::uint32_t queue, const XdpOptions& options) {
  fd_ = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return tl::unexpected(raw_socket_refused("an AF_XDP socket"));
  const std::uint32_t chunks = options.chunks * (options.transmit ? 2 : 1);
  memory_bytes_ = std::size_t{chunks} * kChunk;
  void* const memory =
      mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return refused("memory");
  memory_ = static_cast<std::uint8_t*>(memory);
  // In a forked child these pages would be copied on write under the kernel's eyes.
  madvise(memory_, memory_bytes_, MADV_DONTFORK);
  xdp_umem_reg region{};
  region.addr = reinterpret_cast<std::uintptr_t>(memory_);
  region.len = memory_bytes_;
  region.chunk_size = kChunk;
  if (setsockopt(fd_, SOL_XDP, XDP_UMEM_REG, &region, sizeof region) != 0) {
    if (errno != ENOBUFS) return refused("memory");
    return fail(
        "an AF_XDP socket needs " + std::to_string(memory_bytes_ / 1024) +
        " KiB of locked memory, and the limit leaves it less; raise it (ulimit -l), or take another wire");
  }
  if (!set(fd_, XDP_UMEM_FILL_RING, options.chunks) || !set(fd_, XDP_UMEM_COMPLETION_RING, options.chunks) ||
      !set(fd_, XDP_RX_RING, options.chunks) || (options.transmit && !set(fd_, XDP_TX_RING, options.chunks)))
    return refused("rings");
  xdp_mmap_offsets at{};
  socklen_t size = sizeof at;
  if (getsockopt(fd_, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size) != 0 || size != sizeof at)
    return refused("rings");
  if (!map(fill_, &at.fr, XDP_UMEM_PGOFF_FILL_RING, options.chunks, sizeof(std::uint64_t)) ||
      !map(completion_, &at.cr, XDP_UMEM_PGOFF_COMPLETION_RING, options.chunks, sizeof(std::uint64_t)) ||
      !map(receive_, &at.rx, XDP_PGOFF_RX_RING, options.chunks, sizeof(xdp_desc)) ||
      (options.transmit && !map(transmit_, &at.tx, XDP_PGOFF_TX_RING, options.chunks, sizeof(xdp_desc))))
    return refused("rings");

  sockaddr_xdp to{};
  to.sxdp_family = AF_XDP;
  to.sxdp_ifindex = interface;
  to.sxdp_queue_id = queue;
  if (!bind_to(to)) {
    if (errno == EBUSY)
      return fail(
          "another AF_XDP socket has this queue of the interface; end its program, or take --wire packet");
    return refused("bind");
  }
  xdp_options told{};
  size = sizeof told;
  if (getsockopt(fd_, SOL_XDP, XDP_OPTIONS, &told, &size) == 0)
    zero_copy_ = (told.flags & XDP_OPTIONS_ZEROCOPY) != 0;

  auto* const fill = static_cast<std::uint64_t*>(fill_.entries);
  for (std::uint32_t i = 0; i < options.chunks; ++i) fill[i] = std::uint64_t{i} * kChunk;
  fill_.own = options.chunks;
  store(fill_.producer, fill_.own);
  if (options.transmit) {
    unused_.reserve(options.chunks);
    for (std::uint32_t i = 0; i < options.chunks; ++i)
      unused_.push_back(std::uint64_t{options.chunks + i} * kChunk);
  }
  if (long_frames_) joined_.resize(kMostFrames * std::size_t{kLongestFrame});
  return {};
}

// With several chunks a frame, if the kernel knows that; without a copy, if the driver can. A queue is busy
// for a moment after its last owner has gone, as when a program that has looked whether it may becomes
// another.
bool XdpSocket::bind_to(sockaddr_xdp& to) {
  for (int patience = 100;; --patience) {
    for (const std::uint16_t flags : {kSeveralChunks, std::uint16_t{0}}) {
      to.sxdp_flags = static_cast<std::uint16_t>(XDP_USE_NEED_WAKEUP | flags);
      long_frames_ = flags != 0;
      if (bind(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return true;
      if (errno != EINVAL && errno != EOPNOTSUPP) break;
    }
    if (errno != EBUSY || patience == 0) return false;
    poll(nullptr, 0, 10);
  }
}

XdpSocket::~XdpSocket() {
  for (const Ring& r : {fill_, receive_, transmit_, completion_}) {
    if (r.mapped != nullptr) munmap(r.mapped, r.bytes);
  }
  if (fd_ >= 0) close(fd_);
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
}

void XdpSocket::abandon(int nowhere) { dup3(nowhere, fd_, O_CLOEXEC); }

// What the reader has done with.
void XdpSocket::give_back() {
  if (lent_count_ == 0) return;
  auto* const fill = static_cast<std::uint64_t*>(fill_.entries);
  for (std::size_t i = 0; i < lent_count_; ++i)
    fill[fill_.own++ & fill_.mask] = lent_[i] & ~std::uint64_t{kChunk - 1};
  lent_count_ = 0;
  store(fill_.producer, fill_.own);
  // A driver that fills by itself may have gone to sleep for want of chunks.
  if ((load(fill_.flags) & XDP_RING_NEED_WAKEUP) != 0)
    recvfrom(fd_, nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
}

std::span<const RawFrame> XdpSocket::receive() {
  give_back();
  const std::uint32_t ready = load(receive_.producer);
  const auto* const entries = static_cast<const xdp_desc*>(receive_.entries);
  std::size_t count = 0;
  while (receive_.own != ready && count < kMostFrames) {
    // A frame is here whole or not at all.
    std::uint32_t chunks = 1;
    std::uint32_t bytes = entries[receive_.own & receive_.mask].len;
    for (std::uint32_t i = receive_.own; (entries[i & receive_.mask].options & kGoesOn) != 0; ++chunks) {
      if (++i == ready) return {frames_.data(), count};
      bytes += entries[i & receive_.mask].len;
    }
    if (lent_count_ + chunks > lent_.size()) break;
    std::uint8_t* data = memory_ + entries[receive_.own & receive_.mask].addr;
    if (chunks > 1 && bytes <= kLongestFrame) {
      data = joined_.data() + count * kLongestFrame;
      std::uint8_t* to = data;
      for (std::uint32_t i = 0; i < chunks; ++i) {
        const xdp_desc& d = entries[(receive_.own + i) & receive_.mask];
        std::memcpy(to, memory_ + d.addr, d.len);
        to += d.len;
      }
    }
    for (std::uint32_t i = 0; i < chunks; ++i)
      lent_[lent_count_++] = entries[(receive_.own + i) & receive_.mask].addr;
    receive_.own += chunks;
    store(receive_.consumer, receive_.own);
    if (bytes > kLongestFrame && chunks > 1) continue;
    frames_[count++] = {.data = data, .bytes = bytes, .segment = 0, .checksum_vouched = true};
  }
  return {frames_.data(), count};
}

// Chunks that have left are ours again.
void XdpSocket::reap() {
  const std::uint32_t ready = load(completion_.producer);
  const auto* const entries = static_cast<const std::uint64_t*>(completion_.entries);
  for (; completion_.own != ready; ++completion_.own)
    unused_.push_back(entries[completion_.own & completion_.mask] & ~std::uint64_t{kChunk - 1});
  store(completion_.consumer, completion_.own);
}

bool XdpSocket::transmit(std::span<const std::uint8_t> frame) {
  if (transmit_.mapped == nullptr || frame.size() > kChunk) return false;
  if (unused_.empty()) reap();
  if (unused_.empty()) return false;
  const std::uint64_t chunk = unused_.back();
  unused_.pop_back();
  std::memcpy(memory_ + chunk, frame.data(), frame.size());
  static_cast<xdp_desc*>(transmit_.entries)[transmit_.own++ & transmit_.mask] = {
      .addr = chunk, .len = static_cast<std::uint32_t>(frame.size()), .options = 0};
  return true;
}

void XdpSocket::ring() {
  if (transmit_.mapped == nullptr) return;
  store(transmit_.producer, transmit_.own);
  // One call sends a few frames where the kernel copies them; it says EAGAIN while there are more.
  while (load(transmit_.consumer) != transmit_.own &&
         (zero_copy_ ? (load(transmit_.flags) & XDP_RING_NEED_WAKEUP) != 0 : true)) {
    if (sendto(fd_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0) {
      if (zero_copy_) break;
      continue;
    }
    if (errno != EAGAIN) break;
  }
  reap();
}

std::uint64_t XdpSocket::lost() const {
  xdp_statistics s{};
  socklen_t size = sizeof s;
  if (getsockopt(fd_, SOL_XDP, XDP_STATISTICS, &s, &size) != 0) return 0;
  return s.rx_dropped + s.rx_ring_full;
}

}  // namespace weft::live
