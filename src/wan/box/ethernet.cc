#include "wan/box/ethernet.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "core/wire/icrc.h"
#include "core/wire/ip.h"
#include "wan/logic/parity_frame.h"

namespace weft::wan {
namespace {

constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::uint8_t kNoOptions = 0x45;    // version 4, five words
constexpr std::uint16_t kFragment = 0x3FFF;  // more fragments, or an offset
constexpr std::size_t kIp = kEthernetBytes;  // where the headers begin
constexpr std::size_t kUdp = kIp + wire::kIpv4Bytes;
constexpr std::size_t kBth = kUdp + wire::kUdpBytes;

wire::Address address_at(const std::uint8_t* p) { return wire::Address::v4(p[0], p[1], p[2], p[3]); }

bool goes_to_rocev2(const std::uint8_t* p, std::size_t bytes) {
  return bytes >= kBth && wire::load_be16(p + 12) == kIpv4 && p[kIp + 9] == wire::kUdpProtocol &&
         wire::load_be16(p + kUdp + 2) == wire::kUdpPort;
}

bool is_whole(const std::uint8_t* p, std::size_t bytes) {
  const std::size_t ip_length = wire::load_be16(p + kIp + 2);
  return p[kIp] == kNoOptions && (wire::load_be16(p + kIp + 6) & kFragment) == 0 &&
         ip_length >= wire::kIpv4Bytes + wire::kUdpBytes && kIp + ip_length <= bytes;
}

std::uint32_t load_le(const std::uint8_t* p) {
  return p[0] | std::uint32_t{p[1]} << 8U | std::uint32_t{p[2]} << 16U | std::uint32_t{p[3]} << 24U;
}

// What boxes say to each other about data; endpoints know no such opcode.
bool decode_parity(std::span<const std::uint8_t> packet, wire::Decoded& d) {
  constexpr std::size_t kAround = wire::kBthBytes + wire::kIcrcBytes;
  if (packet.size() < kAround || packet[0] != kParityOpcode) return false;
  d = {};
  d.header.opcode = kParityOpcode;
  d.header.pkey = wire::load_be16(packet.data() + 2);
  d.header.dest_qp = {wire::load_be24(packet.data() + 5)};
  d.header.psn = {wire::load_be24(packet.data() + 9)};
  d.payload_offset = wire::kBthBytes;
  d.payload = static_cast<std::uint32_t>(packet.size() - kAround);
  return true;
}

}  // namespace

bool is_rocev2(std::span<const std::uint8_t> frame) {
  return goes_to_rocev2(frame.data(), frame.size()) && is_whole(frame.data(), frame.size());
}

bool understand(std::span<const std::uint8_t> frame, Frame& out, std::span<const std::uint8_t>& mad,
                Stranger& reason) {
  const std::uint8_t* p = frame.data();
  reason = Stranger::other;
  if (!goes_to_rocev2(p, frame.size())) return false;
  reason = Stranger::fragment;
  if (!is_whole(p, frame.size())) return false;
  const std::size_t udp_length = wire::load_be16(p + kIp + 2) - wire::kIpv4Bytes;
  reason = Stranger::malformed;
  if (wire::load_be16(p + kUdp + 4) != udp_length) return false;
  const std::span<const std::uint8_t> packet = frame.subspan(kBth, udp_length - wire::kUdpBytes);
  wire::Decoded d;
  wire::DecodeError error{};
  if (!decode_parity(packet, d) && !wire::decode(packet, d, error)) return false;
  const std::size_t covered = packet.size() - wire::kIcrcBytes;
  wire::Icrc icrc(frame.subspan(kIp, wire::kIpv4Bytes + wire::kUdpBytes));
  icrc.packet(packet.first(covered));
  reason = Stranger::bad_icrc;
  if (icrc.value() != load_le(packet.data() + covered)) return false;

  out.header = d.header;
  out.source = address_at(p + kIp + 12);
  out.destination = address_at(p + kIp + 16);
  out.payload = d.payload;
  out.tos = p[kIp + 1];
  out.body = kNoBody;
  mad = wire::carries_mad(d.header, d.payload) || is_parity(d.header)
            ? packet.subspan(d.payload_offset, d.payload)
            : std::span<const std::uint8_t>();
  return true;
}

std::uint16_t source_port(std::span<const std::uint8_t> frame) {
  return wire::load_be16(frame.data() + kUdp);
}

void clear_udp_checksum(std::uint8_t* frame) { wire::store_be16(frame + kUdp + 6, 0); }

std::size_t write_frame(const Frame& f, std::span<const std::uint8_t> payload, const EthernetHeader& ethernet,
                        std::uint16_t from_port, std::span<std::uint8_t> out) {
  CHECK(out.size() >= kMostWritten && payload.size() <= wire::kMadBytes);
  std::uint8_t* p = out.data();
  std::size_t at = kBth;
  at += wire::encode(f.header, static_cast<std::uint32_t>(payload.size()),
                     out.subspan(at, wire::kMaxHeaderBytes));
  std::copy(payload.begin(), payload.end(), p + at);
  at += payload.size();
  for (std::uint32_t i = wire::pad_bytes(static_cast<std::uint32_t>(payload.size())); i > 0; --i) p[at++] = 0;
  return close_frame(f, at - kBth, ethernet, from_port, out);
}

std::size_t close_frame(const Frame& f, std::size_t bytes, const EthernetHeader& ethernet,
                        std::uint16_t from_port, std::span<std::uint8_t> out) {
  std::uint8_t* p = out.data();
  std::copy(ethernet.begin(), ethernet.end(), p);
  std::size_t at = kBth + bytes;
  const auto udp_length = static_cast<std::uint16_t>(at + wire::kIcrcBytes - kUdp);
  wire::IpHeader ip;
  ip.source = f.source;
  ip.destination = f.destination;
  ip.udp_length = udp_length;
  ip.tos = f.tos;
  wire::write_ip_header(ip, out.subspan(kIp, wire::kIpv4Bytes));
  wire::store_be16(p + kUdp, from_port);
  wire::store_be16(p + kUdp + 2, wire::kUdpPort);
  wire::store_be16(p + kUdp + 4, udp_length);
  wire::store_be16(p + kUdp + 6, 0);
  wire::Icrc icrc(out.subspan(kIp, wire::kIpv4Bytes + wire::kUdpBytes));
  icrc.packet(out.subspan(kBth, at - kBth));
  const std::uint32_t value = icrc.value();
  for (unsigned i = 0; i < wire::kIcrcBytes; ++i) p[at++] = static_cast<std::uint8_t>(value >> (8U * i));
  return at;
}

}  // namespace weft::wan
