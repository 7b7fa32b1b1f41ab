// Blocks of a capture. All of them are little-endian, as the magic of the first one says, and look alike:
//
//   | type 4 | total length 4 | body, padded to 4 | total length 4 |
//
//   SHB 0x0A0D0D0A   magic 4 | version 1.0, 2+2 | section length unknown 8 | options
//   IDB 1            link type 2 | reserved 2 | snap length 4 | options
//   EPB 6            interface 4 | time high 4 | time low 4 | captured 4 | original 4 | frame, padded |
//   options option           code 2 | length 2 | value, padded to 4          0/0 ends the list
#include "trace/pcapng.h"

#include <algorithm>
#include <ostream>

#include "core/base/check.h"
#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "core/wire/icrc.h"
#include "trace/frame.h"

namespace weft::trace {
namespace {

using Block = std::vector<std::uint8_t>;

constexpr std::uint32_t kSectionHeader = 0x0A0D'0D0A;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kMagic = 0x1A2B'3C4D;
constexpr std::uint16_t kLinkEthernet = 1;
constexpr std::uint16_t kOptionComment = 1;      // any block
constexpr std::uint16_t kOptionApplication = 4;  // SHB
constexpr std::uint16_t kOptionName = 2;         // IDB
constexpr std::uint16_t kOptionFlags = 2;        // EPB
constexpr std::uint16_t kOptionResolution = 9;   // IDB
constexpr std::uint8_t kNanoseconds = 9;         // 10^-9

void put16(Block& b, std::uint16_t v) {
  b.push_back(static_cast<std::uint8_t>(v));
  b.push_back(static_cast<std::uint8_t>(v >> 8U));
}
void put32(Block& b, std::uint32_t v) {
  put16(b, static_cast<std::uint16_t>(v));
  put16(b, static_cast<std::uint16_t>(v >> 16U));
}
void put_padded(Block& b, std::span<const std::uint8_t> bytes) {
  b.insert(b.end(), bytes.begin(), bytes.end());
  b.resize((b.size() + 3U) & ~std::size_t{3U}, 0);
}
void put_option(Block& b, std::uint16_t code, std::span<const std::uint8_t> value) {
  value = value.first(std::min<std::size_t>(value.size(), 0xFFFF));
  put16(b, code);
  put16(b, static_cast<std::uint16_t>(value.size()));
  put_padded(b, value);
}
// BTH and extension headers. An opcode that its mode does not have comes from an attacker; it has a BTH
// alone.
std::size_t write_headers(const wire::Header& h, std::uint32_t payload, std::span<std::uint8_t> out) {
  if (wire::ext_layout(h.opcode, h.mode, h.syndrome).known) return wire::encode(h, payload, out);
  wire::Header bare = h;
  bare.opcode = wire::kSendMiddle;
  bare.mode = wire::Mode::kRoce;
  const std::size_t n = wire::encode(bare, payload, out);
  out[0] = h.opcode;
  out[1] = static_cast<std::uint8_t>(out[1] | (static_cast<unsigned>(h.mode) & 0x0FU));  // TVer
  return n;
}
void put_option(Block& b, std::uint16_t code, std::string_view text) {
  put_option(b, code, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}
void end_options(Block& b) { put32(b, 0); }

}  // namespace

PcapngWriter::PcapngWriter(std::ostream& out, std::string_view interface_name, std::uint64_t unix_start_ns,
                           std::uint32_t snap_length)
    : out_(out), unix_start_ns_(unix_start_ns), snap_length_(snap_length) {
  put32(block_, kMagic);
  put16(block_, 1);
  put16(block_, 0);
  put32(block_, 0xFFFF'FFFF);  // section length: unknown
  put32(block_, 0xFFFF'FFFF);
  put_option(block_, kOptionApplication, "weft");
  end_options(block_);
  write_block(kSectionHeader);
  add_interface(interface_name);
}

std::uint32_t PcapngWriter::add_interface(std::string_view name) {
  put16(block_, kLinkEthernet);
  put16(block_, 0);
  put32(block_, snap_length_);
  put_option(block_, kOptionName, name);
  put_option(block_, kOptionResolution, std::span(&kNanoseconds, 1));
  end_options(block_);
  write_block(kInterfaceDescription);
  return interfaces_++;
}

void PcapngWriter::packet(const PacketInfo& info, const wire::Header& h,
                          std::span<const std::uint8_t> payload) {
  const auto length = static_cast<std::uint32_t>(payload.size());
  datagram_.resize(wire::kMaxHeaderBytes);
  datagram_.resize(write_headers(h, length, datagram_));
  datagram_.insert(datagram_.end(), payload.begin(), payload.end());
  datagram_.resize(datagram_.size() + wire::pad_bytes(length), 0);
  wire::Icrc icrc(
      wire::IpFacts{.source = info.source,
                    .destination = info.destination,
                    .source_port = info.source_port,
                    .udp_length = static_cast<std::uint16_t>(8 + datagram_.size() + wire::kIcrcBytes),
                    .identification = info.identification});
  icrc.packet(datagram_);
  put32(datagram_, icrc.value());
  datagram(info, datagram_);
}

void PcapngWriter::packet(const PacketInfo& info, const wire::Header& h, std::uint32_t payload) {
  const std::vector<std::uint8_t> zeros(payload, 0);
  packet(info, h, std::span<const std::uint8_t>(zeros));
}

void PcapngWriter::datagram(const PacketInfo& info, std::span<const std::uint8_t> udp_payload) {
  build_frame(info, udp_payload, frame_);
  enhanced_packet(info, frame_);
}

void PcapngWriter::enhanced_packet(const PacketInfo& info, std::span<const std::uint8_t> frame) {
  CHECK_OP(info.interface, <, interfaces_);
  const std::uint64_t ns = unix_start_ns_ + static_cast<std::uint64_t>(info.time.ps / 1'000);
  const auto length = static_cast<std::uint32_t>(frame.size());
  put32(block_, info.interface);
  put32(block_, static_cast<std::uint32_t>(ns >> 32U));
  put32(block_, static_cast<std::uint32_t>(ns));
  const std::uint32_t kept = snap_length_ == 0 ? length : std::min(snap_length_, length);
  put32(block_, kept);
  put32(block_, length);
  put_padded(block_, frame.first(kept));
  if (info.direction != Direction::kNone) {
    std::uint8_t flags[4] = {};  // the lowest two bits: 1 inbound, 2 outbound
    flags[0] = info.direction == Direction::kIn ? 1 : 2;
    put_option(block_, kOptionFlags, std::span<const std::uint8_t>(flags));
  }
  if (!info.comment.empty()) put_option(block_, kOptionComment, info.comment);
  if (info.direction != Direction::kNone || !info.comment.empty()) end_options(block_);
  write_block(kEnhancedPacket);
}

void PcapngWriter::write_block(std::uint32_t type) {
  const auto total = static_cast<std::uint32_t>(block_.size() + 12);
  const auto write32 = [&](std::uint32_t v) {
    std::uint8_t bytes[4];
    wire::store_le32(bytes, v);
    out_.write(reinterpret_cast<const char*>(bytes), sizeof bytes);
  };
  write32(type);
  write32(total);
  out_.write(reinterpret_cast<const char*>(block_.data()), static_cast<std::streamsize>(block_.size()));
  write32(total);
  block_.clear();
}

}  // namespace weft::trace
