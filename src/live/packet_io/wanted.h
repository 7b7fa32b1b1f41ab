// Which frames a wire takes from its interface as they are, said three times: to a packet socket, to an XDP
// program (xdp_program.h), and to the UDP socket beside them, which leaves exactly those alone. What is none
// of them stays the kernel's business and reaches the UDP socket as always.
//
//   Ethernet II, IPv4 without options, no fragment, to this host and not to everybody
//   to our address and port
//   for a queue pair of this process: its slot is the top byte of the number, or, for a process that has
//   its address for itself, any number but those of the host's services (0, 1) and of groups (0xFFFFFF)
//
// Services go by the kernel because every process of an address would get a copy of them otherwise; the
// kernel gives them to one.
#pragma once
#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "core/wire/packet.h"

namespace weft::live {

struct Wanted {
  wire::Address address;  // IPv4
  std::uint16_t port = 0;
  std::uint8_t slot = 0;  // 0: every queue pair but the well-known ones
};

// For PacketSocket.
std::vector<sock_filter> packet_filter(const Wanted& wanted);
// For the UDP socket bound to that address and port: refuses what the packet socket on this interface takes.
std::vector<sock_filter> udp_filter(const Wanted& wanted, std::uint32_t interface);

}  // namespace weft::live
