#include "live/packet_io/frame.h"

#include <algorithm>

#include "core/wire/bytes.h"

namespace weft::live {
namespace {

constexpr std::uint8_t kVersion4 = 0x45;  // and a header without options
constexpr std::uint16_t kFragmentMask = 0x3FFF;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::size_t kUdpAt = kEthernetBytes + wire::kIpv4Bytes;
constexpr std::size_t kUdpChecksumAt = kUdpAt + 6;

// Of source, destination, protocol and length, as the UDP checksum covers them.
std::uint64_t pseudo_sum(std::span<const std::uint8_t> ip, std::uint16_t udp_length) {
  return wire::internet_sum(ip.subspan(12, 8)) + wire::kUdpProtocol + udp_length;
}

// That a host of a network can have as its source.
bool is_host(const std::uint8_t* address) { return address[0] != 0 && address[0] != 127 && address[0] < 224; }

}  // namespace

void write_frame_headers(const FrameHeaders& h, std::span<std::uint8_t, kFrameHeaders> out) {
  std::copy_n(h.to.data(), h.to.size(), out.data());
  std::copy_n(h.from.data(), h.from.size(), out.data() + 6);
  wire::store_be16(out.data() + 12, kEthertypeIpv4);
  wire::write_ip_header(h.ip, out.subspan<kEthernetBytes, wire::kIpv4Bytes>());
  std::uint8_t* const udp = out.data() + kUdpAt;
  wire::store_be16(udp, h.source_port);
  wire::store_be16(udp + 2, h.destination_port);
  wire::store_be16(udp + 4, h.ip.udp_length);
  wire::store_be16(udp + 6, 0);
}

void write_train_headers(const FrameHeaders& h, std::span<std::uint8_t, kFrameHeaders> out) {
  write_frame_headers(h, out);
  const std::uint64_t sum = pseudo_sum(out.subspan<kEthernetBytes, wire::kIpv4Bytes>(), h.ip.udp_length);
  wire::store_be16(out.data() + kUdpChecksumAt,
                   static_cast<std::uint16_t>(~unsigned{wire::internet_checksum(sum)}));
}

bool read_frame(std::span<const std::uint8_t> frame, UdpChecksum checksum, Datagram& out, FrameError& error) {
  const auto refuse = [&error](FrameError why) {
    error = why;
    return false;
  };
  if (frame.size() < kFrameHeaders) return refuse(FrameError::kShort);
  if (wire::load_be16(frame.data() + 12) != kEthertypeIpv4) return refuse(FrameError::kEthertype);
  const std::span<const std::uint8_t> ip = frame.subspan(kEthernetBytes);
  if (ip[0] != kVersion4) {
    return refuse(ip[0] >> 4U == 4 && (ip[0] & 0x0FU) > 5 ? FrameError::kOptions : FrameError::kVersion);
  }
  const std::uint16_t total = wire::load_be16(ip.data() + 2);
  if (total < wire::kIpv4Bytes + wire::kUdpBytes || total > ip.size()) return refuse(FrameError::kShort);
  if (wire::internet_checksum(wire::internet_sum(ip.first(wire::kIpv4Bytes))) != 0)
    return refuse(FrameError::kIpChecksum);
  const std::uint16_t flags = wire::load_be16(ip.data() + 6);
  if ((flags & kFragmentMask) != 0) return refuse(FrameError::kFragment);
  if (ip[9] != wire::kUdpProtocol) return refuse(FrameError::kProtocol);
  if (!is_host(ip.data() + 12)) return refuse(FrameError::kSource);
  const std::span<const std::uint8_t> udp = ip.subspan(wire::kIpv4Bytes, total - wire::kIpv4Bytes);
  const std::uint16_t udp_length = wire::load_be16(udp.data() + 4);
  if (udp_length != udp.size()) return refuse(FrameError::kUdpLength);
  if (checksum == UdpChecksum::kLook && wire::load_be16(udp.data() + 6) != 0 &&
      wire::internet_checksum(wire::internet_sum(udp, pseudo_sum(ip, udp_length))) != 0)
    return refuse(FrameError::kUdpChecksum);
  out = {.ip = {.source = wire::Address::v4(ip[12], ip[13], ip[14], ip[15]),
                .destination = wire::Address::v4(ip[16], ip[17], ip[18], ip[19]),
                .udp_length = udp_length,
                .identification = wire::load_be16(ip.data() + 4),
                .tos = ip[1],
                .ttl = ip[8],
                .flow_label = 0},
         .dont_fragment = (flags & kDontFragment) != 0,
         .source_port = wire::load_be16(udp.data()),
         .destination_port = wire::load_be16(udp.data() + 2),
         .payload_offset = kFrameHeaders,
         .payload = static_cast<std::uint32_t>(udp_length - wire::kUdpBytes)};
  return true;
}

}  // namespace weft::live
