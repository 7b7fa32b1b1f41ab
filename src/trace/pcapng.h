// Packets as a pcapng capture that Wireshark and tshark open (IETF draft-ietf-opsawg-pcapng): whatever
// world a packet lived in, it can be looked at with the field's own tool.
//
//   SHB | IDB "weft" | EPB | EPB | IDB "host 7" | EPB …
//
// Timestamps are nanoseconds (if_tsresol 9): picoseconds would be exact, but tools round them anyway. A
// world that starts at zero shows seconds since its own start.
//
// `packet` builds a whole Ethernet frame around a Header, with correct lengths, IP and UDP checksums and
// ICRC, and made-up MAC addresses (02:00 and the last four bytes of the IP address). `datagram` records
// what was really on a wire, right or wrong. The writer opens nothing: it appends to the stream it was
// given, which must outlive it, and reports errors through that stream's state. One thread at a time.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string_view>
#include <vector>

#include "core/wire/header.h"
#include "trace/packet_info.h"

namespace weft::trace {

class PcapngWriter {
 public:
  // `unix_start_ns`: what Time 0 is in nanoseconds since 1970. `snap_length`: the most bytes of a frame that
  // are kept, 0: all. Interface 0 exists from the start.
  explicit PcapngWriter(std::ostream& out, std::string_view interface_name = "weft",
                        std::uint64_t unix_start_ns = 0, std::uint32_t snap_length = 0);

  // A further interface to name in PacketInfo::interface: a host, a port of a switch.
  std::uint32_t add_interface(std::string_view name);

  // An opcode unknown in its mode is recorded, too: as a BTH and the payload.
  void packet(const PacketInfo& info, const wire::Header& h, std::span<const std::uint8_t> payload);
  // For a world that only counts bytes: the payload is written as zeros.
  void packet(const PacketInfo& info, const wire::Header& h, std::uint32_t payload);
  // A UDP payload as it was: BTH to ICRC, at most 65 507 bytes.
  void datagram(const PacketInfo& info, std::span<const std::uint8_t> udp_payload);

 private:
  void enhanced_packet(const PacketInfo& info, std::span<const std::uint8_t> frame);
  void write_block(std::uint32_t type);

  std::ostream& out_;
  std::uint64_t unix_start_ns_;
  std::uint32_t snap_length_;
  std::uint32_t interfaces_ = 0;
  // Scratch: reused from packet to packet, so that a packet no longer than one before allocates nothing.
  std::vector<std::uint8_t> datagram_;
  std::vector<std::uint8_t> frame_;
  std::vector<std::uint8_t> block_;  // body of the block being written
};

}  // namespace weft::trace
