// Sequence numbers: what the wire carries (24 bits, wraps) and what the transport counts in (64
// bits, never wraps).
//
// A WirePsn has a distance and deliberately no `<`: comparing two of them without a reference point
// is the classic wrap bug. The transport expands every received number against a Seq it already
// trusts (`expand`) and from then on orders plain 64-bit integers. A Seq's low 24 bits are its wire
// form, so going back is a mask. Seq starts at one wrap (`Seq::start`) so that "a little before the
// start" is still a valid number.
//
// docs/protocol/reliable.md#sequence-numbers: valid as long as fewer than 2^23 packets are outstanding.
#pragma once
#include <compare>
#include <cstdint>

namespace weft {

inline constexpr std::uint32_t kPsnMask = 0xFF'FFFF;

struct WirePsn {
  std::uint32_t v = 0;
  constexpr bool operator==(const WirePsn&) const = default;
  // Signed distance this - other, in [-2^23, 2^23).
  constexpr std::int32_t distance(WirePsn other) const {
    return static_cast<std::int32_t>((v - other.v) << 8U) >> 8;
  }
};

struct Seq {
  std::uint64_t v = 0;
  constexpr auto operator<=>(const Seq&) const = default;
  constexpr Seq operator+(std::uint64_t n) const { return {v + n}; }
  constexpr Seq operator-(std::uint64_t n) const { return {v - n}; }
  constexpr std::uint64_t operator-(Seq o) const { return v - o.v; }
  constexpr Seq& operator++() {
    ++v;
    return *this;
  }
  constexpr Seq& operator+=(std::uint64_t n) {
    v += n;
    return *this;
  }
  constexpr WirePsn wire() const { return {static_cast<std::uint32_t>(v) & kPsnMask}; }
  // The first Seq of a stream whose first wire number is `psn`.
  static constexpr Seq start(WirePsn psn) { return {(1ULL << 24U) | (psn.v & kPsnMask)}; }
};

// The Seq nearest to `near` whose wire form is `psn`.
constexpr Seq expand(WirePsn psn, Seq near) {
  return {near.v + static_cast<std::uint64_t>(static_cast<std::int64_t>(psn.distance(near.wire())))};
}

// Completed-message counter of a responder (AETH.MSN), modulo 2^24 on the wire.
struct Msn {
  std::uint32_t v = 0;
  constexpr bool operator==(const Msn&) const = default;
  constexpr Msn& operator++() {
    v = (v + 1) & kPsnMask;
    return *this;
  }
};

}  // namespace weft
