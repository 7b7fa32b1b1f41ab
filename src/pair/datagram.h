// A packet as the bytes that a UDP socket would carry, ICRC included, and what it takes on a link.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/wire/packet.h"

namespace weft::pair {

// With Ethernet, IPv4, UDP and ICRC.
std::uint32_t frame_bytes(const wire::Header& h, std::size_t payload);

std::vector<std::uint8_t> to_datagram(const wire::Address& from, const wire::Address& to,
                                      const wire::Header& h, std::span<const std::uint8_t> payload);
bool icrc_right(const wire::Address& from, const wire::Address& to, std::span<const std::uint8_t> datagram);

}  // namespace weft::pair
