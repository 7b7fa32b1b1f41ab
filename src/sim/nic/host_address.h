// Hosts are numbers inside the fabric and addresses inside packets: host n is 10.a.b.c, with n + 1 in the
// last three bytes.
#pragma once
#include <cstdint>

#include "core/wire/packet.h"
#include "sim/fabric/packet.h"

namespace weft::sim {

constexpr wire::Address address_of(HostId host) {
  const std::uint32_t n = host.v + 1U;
  return wire::Address::v4(10, static_cast<std::uint8_t>(n >> 16U), static_cast<std::uint8_t>(n >> 8U),
                           static_cast<std::uint8_t>(n));
}

constexpr HostId host_at(const wire::Address& a) {
  return {((std::uint32_t{a.bytes[13]} << 16U) | (std::uint32_t{a.bytes[14]} << 8U) | a.bytes[15]) - 1U};
}

}  // namespace weft::sim
