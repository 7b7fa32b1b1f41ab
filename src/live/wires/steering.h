// Which socket of an address takes a datagram. Several processes bind one address and port (SO_REUSEPORT),
// and the kernel asks a classic BPF program for the index of the socket among them; attaching one needs no
// privilege. This one reads the process slot, the top byte of the destination queue pair number:
//
//   UDP payload   0        1       5           6
//                 | opcode | ...   | slot, the top byte of the BTH's queue pair number
//                 | 0xFF   | index | ...       a probe: it names the index itself
//                 | 0xFE   | index | slot      a check: goes by its slot, and only without one by the index
//
// A slot that the program does not know, and queue pairs 0 and 1, are spread by the kernel's hash of
// addresses and ports. The program is a hint: a process that gets what is not its own hands it on
// (neighbours.h).
#pragma once
#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <vector>

namespace weft::live {

// A process's socket among those of its address.
struct Place {
  std::uint8_t slot = 0;
  std::uint8_t index = 0;
  bool operator==(const Place&) const = default;
};

// No opcode of a packet: those from 0xC0 on are for manufacturers.
constexpr std::uint8_t kProbeOpcode = 0xFF;
constexpr std::uint8_t kCheckOpcode = 0xFE;
constexpr std::uint32_t kSlotOffset = 5;

std::vector<sock_filter> steering_program(std::span<const Place> places);
// For all sockets of the address of `fd`. False: the kernel refused, and spreads everything by its hash.
bool attach_steering(int fd, std::span<const Place> places);
void detach_steering(int fd);

}  // namespace weft::live
