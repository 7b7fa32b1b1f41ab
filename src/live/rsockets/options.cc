// Options of both kinds (rsocket(7)). What it does not list is refused, and so is what comes too late: sizes
// are those of the connection from the moment that it is asked for. remembered.h has those without effect.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "live/rsockets/datagrams.h"
#include "live/rsockets/stream.h"

namespace weft::live::rsockets {
namespace {

// What the device has (docs/VERBS.md#how-many-and-how-large), and receives for messages of control beside.
constexpr std::uint32_t kFewest = 16;
constexpr std::uint32_t kMost = 16'000;
constexpr std::uint32_t kMostInline = 1024;
constexpr std::uint32_t kLeastBytes = 4096;
constexpr std::uint32_t kMostBytes = 1U << 28U;

template <class Value>
bool read(const void* from, socklen_t length, Value& to) {
  if (from == nullptr || length < sizeof to) return false;
  std::memcpy(&to, from, sizeof to);
  return true;
}

template <class Value>
int write(const Value& value, void* to, socklen_t& length) {
  if (to == nullptr) return -EFAULT;
  length = std::min<socklen_t>(length, sizeof value);
  std::memcpy(to, &value, length);
  return 0;
}

// Twice what was asked for, as rsocket(7) has it for both buffers; the receiver's is given away by halves.
std::uint32_t buffer(int asked) {
  const auto wanted = static_cast<std::uint64_t>(std::max(asked, 0)) * 2;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, kLeastBytes, kMostBytes)) & ~1U;
}

std::uint16_t queue(int asked) {
  return static_cast<std::uint16_t>(std::clamp<std::int64_t>(asked, kFewest, kMost));
}

// Nothing: without end, which 0 means.
std::optional<Clock::duration> duration_of(const timeval& t) {
  constexpr std::int64_t kMostSeconds = 1'000'000'000;  // which a clock has room for
  if (t.tv_sec == 0 && t.tv_usec == 0) return std::nullopt;
  return std::chrono::seconds(std::clamp<std::int64_t>(t.tv_sec, 0, kMostSeconds)) +
         std::chrono::microseconds(t.tv_usec);
}

// True: it is an option of sizes, and `answer` has what became of it.
bool set_size(Sizes& sizes, int level, int name, int asked, bool stream, int& answer) {
  answer = 0;
  if (level == SOL_SOCKET && name == SO_RCVBUF) {
    sizes.receive_bytes = buffer(asked);
  } else if (level == SOL_SOCKET && name == SO_SNDBUF) {
    sizes.send_bytes = buffer(asked);
  } else if (level != SOL_RDMA) {
    return false;
  } else if (asked < 0) {
    answer = -EINVAL;
  } else if (name == RDMA_SQSIZE) {
    sizes.sends = queue(asked);
  } else if (name == RDMA_RQSIZE) {
    sizes.receives = queue(asked);
  } else if (name == RDMA_INLINE && stream) {
    sizes.inline_bytes = std::min(static_cast<std::uint32_t>(asked), kMostInline);
  } else if (name == RDMA_IOMAPSIZE && stream) {
    sizes.maps = unscaled(scaled(std::min(static_cast<std::uint32_t>(asked), kMostMaps)));
  } else {
    answer = name == RDMA_ROUTE ? -EOPNOTSUPP : -ENOPROTOOPT;
  }
  return true;
}

std::optional<std::uint32_t> size_of(const Sizes& sizes, int level, int name) {
  if (level == SOL_SOCKET && name == SO_RCVBUF) return sizes.receive_bytes;
  if (level == SOL_SOCKET && name == SO_SNDBUF) return sizes.send_bytes;
  if (level != SOL_RDMA) return std::nullopt;
  switch (name) {
    case RDMA_SQSIZE:
      return sizes.sends;
    case RDMA_RQSIZE:
      return sizes.receives;
    case RDMA_INLINE:
      return sizes.inline_bytes;
    case RDMA_IOMAPSIZE:
      return sizes.maps;
    default:
      return std::nullopt;
  }
}

}  // namespace

int Stream::set_option(int level, int name, const void* value, socklen_t length) {
  const std::lock_guard lock(mutex_);
  if (level == SOL_SOCKET && name == SO_LINGER) {
    linger l{};
    if (!read(value, length, l) || l.l_linger < 0) return -EINVAL;
    linger_.reset();
    if (l.l_onoff != 0) linger_ = l.l_linger;
    return 0;
  }
  int asked = 0;
  if (!read(value, length, asked)) return -EINVAL;
  Sizes wanted = sizes_;
  int answer = 0;
  if (set_size(wanted, level, name, asked, true, answer)) {
    // A listener's are for those that it takes from now on. The kernel, too, takes a buffer's size later on,
    // as a hint; the queues' cannot change.
    const bool open = state_ >= State::kConnecting;
    if (answer == 0 && open && level == SOL_RDMA) return -EINVAL;
    if (answer == 0 && !open) sizes_ = wanted;
    return answer;
  }
  if (level == SOL_SOCKET && name == SO_REUSEADDR) {
    if (rdma_set_option(handle_.id(), RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &asked, sizeof asked) != 0)
      return -errno;
    reuse_ = asked != 0;
    return 0;
  }
  if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) {
    if (state_ != State::kFresh) return -EINVAL;
    v6_only_ = asked != 0;
    return 0;
  }
  if (level == IPPROTO_TCP && name == TCP_MAXSEG) return 0;  // a packet is as long as the path bears
  if (const auto known = remembered_.set(level, name, asked)) return -*known;
  return -ENOPROTOOPT;
}

int Stream::get_option(int level, int name, void* value, socklen_t& length) {
  const std::lock_guard lock(mutex_);
  if (const auto size = size_of(sizes_, level, name)) return write(static_cast<int>(*size), value, length);
  if (const auto kept = remembered_.get(level, name)) return write(*kept, value, length);
  if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) return write(int{v6_only_}, value, length);
  if (level == IPPROTO_TCP && name == TCP_MAXSEG) {
    const auto& route = handle_.id()->route;
    return write(route.num_paths > 0 ? 128 << route.path_rec->mtu : 2048, value, length);
  }
  if (level != SOL_SOCKET) return -ENOPROTOOPT;
  switch (name) {
    case SO_ERROR:
      look(true);
      return write(std::exchange(error_, 0), value, length);
    case SO_REUSEADDR:
      return write(int{reuse_}, value, length);
    case SO_LINGER:
      return write(linger{linger_ ? 1 : 0, linger_.value_or(0)}, value, length);
    case SO_TYPE:
      return write(int{SOCK_STREAM}, value, length);
    case SO_DOMAIN:
      return write(int{family_}, value, length);
    case SO_PROTOCOL:
      return write(int{IPPROTO_TCP}, value, length);
    case SO_ACCEPTCONN:
      return write(int{state_ == State::kListening}, value, length);
    default:
      return -ENOPROTOOPT;
  }
}

// Those of the UDP socket are the kernel's, and it has checked what is taken over here.
int Datagrams::set_option(int level, int name, const void* value, socklen_t length) {
  const std::lock_guard lock(mutex_);
  int asked = 0;
  if (level == SOL_RDMA) {
    if (!read(value, length, asked)) return -EINVAL;
    Sizes wanted = sizes_;
    int answer = 0;
    set_size(wanted, level, name, asked, false, answer);
    if (answer == 0 && handle_ != nullptr) return -EINVAL;
    if (answer == 0) sizes_ = wanted;
    return answer;
  }
  if (setsockopt(udp_, level, name, value, length) != 0) return -errno;
  if (level != SOL_SOCKET) return 0;
  if ((name == SO_RCVBUF || name == SO_SNDBUF) && handle_ == nullptr && read(value, length, asked)) {
    // As many datagrams as have room there.
    (name == SO_RCVBUF ? sizes_.receives : sizes_.sends) = queue(static_cast<int>(buffer(asked) / kSlot));
  }
  timeval t{};
  if ((name == SO_RCVTIMEO || name == SO_SNDTIMEO) && read(value, length, t))
    (name == SO_RCVTIMEO ? receives_within_ : sends_within_) = duration_of(t);
  return 0;
}

int Datagrams::get_option(int level, int name, void* value, socklen_t& length) {
  const std::lock_guard lock(mutex_);
  if (level != SOL_RDMA) return getsockopt(udp_, level, name, value, &length) == 0 ? 0 : -errno;
  if (name != RDMA_SQSIZE && name != RDMA_RQSIZE) return -ENOPROTOOPT;
  return write(static_cast<int>(*size_of(sizes_, level, name)), value, length);
}

}  // namespace weft::live::rsockets
