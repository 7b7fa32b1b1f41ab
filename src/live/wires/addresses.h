// Our addresses: one, or one of IPv4 and one of IPv6. What goes to a peer leaves from the address of the
// peer's family, and what comes from a peer came to that one: so neither has to be remembered for a packet.
// Beside them, what the two families differ in.
//
// IPv4 addresses are the mapped ones, ::ffff:a.b.c.d, as in GIDs.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/wire/ip.h"
#include "core/wire/packet.h"

namespace weft::live {

struct Addresses {
  static constexpr std::size_t kMost = 2;

  wire::Address first;
  wire::Address second = {};  // of the other family; all zero: there is none

  bool both() const { return second != wire::Address{}; }
  // That of the peer's family; with one address, that one.
  const wire::Address& towards(const wire::Address& peer) const {
    return both() && wire::is_v4_mapped(peer) != wire::is_v4_mapped(first) ? second : first;
  }
  // The second, if it is that of the peer's family.
  const wire::Address* second_if_towards(const wire::Address& peer) const {
    return &towards(peer) == &second ? &second : nullptr;
  }
  // Whether one of them is of the peer's family.
  bool reach(const wire::Address& peer) const {
    return both() || wire::is_v4_mapped(peer) == wire::is_v4_mapped(first);
  }
  bool have(const wire::Address& a) const { return a == first || (both() && a == second); }
  std::size_t count() const { return both() ? 2 : 1; }
  const wire::Address& at(std::size_t index) const { return index == 0 ? first : second; }
  // The place of one that they have.
  std::uint8_t index_of(const wire::Address& a) const { return a == first ? 0 : 1; }
  // Of the larger IP header that their packets have.
  std::size_t header_bytes() const {
    return both() || !wire::is_v4_mapped(first) ? wire::kIpv6Bytes : wire::kIpv4Bytes;
  }
  bool operator==(const Addresses&) const = default;
};

// fe80::/10: it means a host only together with an interface.
constexpr bool is_link_local(const wire::Address& a) {
  return a.bytes[0] == 0xFE && (a.bytes[1] & 0xC0U) == 0x80U;
}

// 127.0.0.0/8, or ::1.
constexpr bool is_loopback(const wire::Address& a) {
  if (wire::is_v4_mapped(a)) return a.bytes[12] == 127;
  wire::Address one;
  one.bytes[15] = 1;
  return a == one;
}

}  // namespace weft::live
