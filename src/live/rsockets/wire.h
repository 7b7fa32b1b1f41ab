// What two ends of an rsocket stream say to each other: version 1 of the protocol of Linux' librdmacm
// (docs/INTEROP.md#rsockets). Everything here comes from the peer or goes to it; what a peer says is checked
// here, or by Inbox and Outbox, before anything is done with it.
//
// The private data of the request and of its answer, big endian, 40 bytes:
//
//   0 version = 1 | 1 flags | 2 credits (2) | 4 zero (3) | 7 size of the table of maps, scaled
//   8 the targets: address (8) key (4) entries (4)          24 the first target: address (8) key (4) bytes
//   (4)
//
// Every message is an RDMA WRITE with 32 bits of immediate data: three of kind, 29 of value.
//
//   000 data: so many bytes were written to the current target
//   100 credit: data messages up to this number (16 bits) may come; the next target may have been written
//   110 map: this entry of the table of maps was written
//   111 control: 0 disconnect, 1 keep alive, 2 shutdown (nothing more will be sent)
//
// A target is 16 bytes (address, key, length) and a map is 24 (offset, then a target), both in the byte
// order of the host where they are read. The targets come first in that memory, the maps behind them.
#pragma once
#include <endian.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

namespace weft::live::rsockets {

struct Target {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t length = 0;
};
struct Map {
  std::uint64_t offset = 0;
  Target at;
};
static_assert(sizeof(Target) == 16 && sizeof(Map) == 24);

constexpr std::uint32_t kTargets = 2;  // of ours: a peer fills one while it empties the other

enum class Kind : std::uint8_t { kData = 0, kCredit = 4, kMap = 6, kControl = 7 };
enum class Control : std::uint8_t { kDisconnect = 0, kKeepAlive = 1, kShutdown = 2 };

constexpr std::uint32_t kValueMask = 0x1FFF'FFFF;
constexpr std::uint32_t message(Kind kind, std::uint32_t value) {
  return std::uint32_t{static_cast<std::uint8_t>(kind)} << 29U | (value & kValueMask);
}
constexpr unsigned kind_of(std::uint32_t message) { return message >> 29U; }
constexpr std::uint32_t value_of(std::uint32_t message) { return message & kValueMask; }

// The number of maps in eight bits: exactly up to 128, in steps of 256 above.
constexpr std::uint8_t scaled(std::uint32_t maps) {
  return static_cast<std::uint8_t>(maps <= 128 ? maps : 128U | (maps >> 8U));
}
constexpr std::uint32_t unscaled(std::uint8_t value) { return value <= 128 ? value : (value & 127U) << 8U; }
constexpr std::uint32_t kMostMaps = 127U << 8U;

constexpr std::size_t kOfferBytes = 40;
constexpr std::uint8_t kBigEndian = 1;
constexpr std::uint8_t kHasMaps = 2;

// What an end offers the other one.
struct Offer {
  std::uint16_t credits = 0;  // data messages that it takes before it grants more
  std::uint32_t maps = 0;     // entries of its table of maps
  std::uint32_t targets = 0;  // entries of its targets
  std::uint64_t targets_at = 0;
  std::uint32_t targets_key = 0;
  Target first;          // where the first bytes go
  bool swapped = false;  // it reads targets and maps in the other byte order
};

template <class Value>
Value load(const void* from, std::size_t at) {
  Value v{};
  std::memcpy(&v, static_cast<const std::uint8_t*>(from) + at, sizeof v);
  return v;
}
template <class Value>
void store(void* to, std::size_t at, Value v) {
  std::memcpy(static_cast<std::uint8_t*>(to) + at, &v, sizeof v);
}

// What the peer has written to this place of a target, which is empty then; nothing if it is. It may be
// writing just now, for nobody says so before: the half that comes last (live/engine/placement.h) is read
// first. The thread sanitizer takes what a NIC writes for another thread's, so it does not look in here.
__attribute__((no_sanitize("thread"))) inline Target take_target(void* place) {
  auto* const words = static_cast<volatile std::uint64_t*>(place);
  struct Last {
    std::uint32_t key;
    std::uint32_t length;
  };
  const auto last = std::bit_cast<Last>(std::uint64_t{words[1]});
  if (last.length == 0) return {};
  std::atomic_thread_fence(std::memory_order_acquire);
  const Target target{words[0], last.key, last.length};
  words[1] = 0;
  return target;
}

constexpr bool kOwnOrderIsBig = BYTE_ORDER == BIG_ENDIAN;

inline void write_offer(const Offer& o, std::uint8_t (&to)[kOfferBytes]) {
  std::memset(to, 0, sizeof to);
  to[0] = 1;
  to[1] = static_cast<std::uint8_t>(kHasMaps | (kOwnOrderIsBig ? kBigEndian : 0));
  store(to, 2, htobe16(o.credits));
  to[7] = scaled(o.maps);
  store(to, 8, htobe64(o.targets_at));
  store(to, 16, htobe32(o.targets_key));
  store(to, 20, htobe32(o.targets));
  store(to, 24, htobe64(o.first.address));
  store(to, 32, htobe32(o.first.key));
  store(to, 36, htobe32(o.first.length));
}

// Nothing: no end of this protocol says so.
inline std::optional<Offer> read_offer(const void* from, std::size_t length) {
  if (from == nullptr || length < kOfferBytes || load<std::uint8_t>(from, 0) != 1) return std::nullopt;
  const auto flags = load<std::uint8_t>(from, 1);
  Offer o;
  o.credits = be16toh(load<std::uint16_t>(from, 2));
  o.maps = (flags & kHasMaps) != 0 ? unscaled(load<std::uint8_t>(from, 7)) : 0;
  o.targets_at = be64toh(load<std::uint64_t>(from, 8));
  o.targets_key = be32toh(load<std::uint32_t>(from, 16));
  o.targets = be32toh(load<std::uint32_t>(from, 20));
  o.first = {be64toh(load<std::uint64_t>(from, 24)), be32toh(load<std::uint32_t>(from, 32)),
             be32toh(load<std::uint32_t>(from, 36))};
  o.swapped = ((flags & kBigEndian) != 0) != kOwnOrderIsBig;
  // An end without credit never gets anything; with one target it could not be told of the next in time.
  if (o.credits == 0 || o.targets < 2 || o.targets > UINT16_MAX || o.first.length == 0) return std::nullopt;
  return o;
}

inline Target ordered(const Target& t, bool swapped) {
  if (!swapped) return t;
  return {__builtin_bswap64(t.address), __builtin_bswap32(t.key), __builtin_bswap32(t.length)};
}
inline Map ordered(const Map& m, bool swapped) {
  if (!swapped) return m;
  return {__builtin_bswap64(m.offset), ordered(m.at, true)};
}

}  // namespace weft::live::rsockets
