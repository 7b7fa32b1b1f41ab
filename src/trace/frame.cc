// Headers from Ethernet to UDP, written with fixed choices where a capture does not care: no VLAN tag, no IP
// options, flow label 0, don't-fragment as docs/protocol/packets.md#frame asks unless a packet really came
// without.
//
// The UDP checksum is computed for IPv4 too. RoCE may send 0 there, and weft's udp wire leaves it to the
// kernel; a right one lets tshark verify that these bytes belong together, which a 0 does not.
#include "trace/frame.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "core/wire/ip.h"

namespace weft::trace {
namespace {

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kLargestUdpPayload = 65'507;

void write_mac(std::uint8_t* p, const wire::Address& a) {
  p[0] = 0x02;  // locally administered
  p[1] = 0;
  std::copy_n(a.bytes.data() + 12, 4, p + 2);
}

}  // namespace

void build_frame(const PacketInfo& info, std::span<const std::uint8_t> udp_payload,
                 std::vector<std::uint8_t>& frame) {
  CHECK_OP(udp_payload.size(), <=, kLargestUdpPayload);
  const auto udp_length = static_cast<std::uint16_t>(wire::kUdpBytes + udp_payload.size());
  frame.assign(kEthernetBytes + wire::kIpv6Bytes + wire::kUdpBytes, 0);
  std::uint8_t* const ethernet = frame.data();
  std::uint8_t* const ip = ethernet + kEthernetBytes;
  const std::size_t ip_bytes = wire::write_ip_header({.source = info.source,
                                                      .destination = info.destination,
                                                      .udp_length = udp_length,
                                                      .identification = info.identification,
                                                      .tos = info.tos,
                                                      .ttl = info.ttl},
                                                     std::span(frame).subspan(kEthernetBytes));
  const bool v4 = ip_bytes == wire::kIpv4Bytes;
  if (v4 && !info.dont_fragment) {
    ip[6] = 0;
    wire::store_be16(ip + 10, 0);
    wire::store_be16(ip + 10, wire::internet_checksum(wire::internet_sum({ip, wire::kIpv4Bytes})));
  }
  frame.resize(kEthernetBytes + ip_bytes + wire::kUdpBytes);
  write_mac(ethernet, info.destination);
  write_mac(ethernet + 6, info.source);
  wire::store_be16(ethernet + 12, v4 ? 0x0800 : 0x86DD);

  std::uint8_t* const udp = ip + ip_bytes;
  wire::store_be16(udp, info.source_port);
  wire::store_be16(udp + 2, wire::kUdpPort);
  wire::store_be16(udp + 4, udp_length);
  // Over the pseudo header (both addresses, as they stand in the IP header), the UDP header and the payload;
  // a sum of zero is sent as all ones.
  const std::span<const std::uint8_t> addresses(ip + (v4 ? 12 : 8), v4 ? 8 : 32);
  const std::uint64_t pseudo = wire::internet_sum(addresses, std::uint64_t{wire::kUdpProtocol} + udp_length);
  const std::uint16_t checksum = wire::internet_checksum(
      wire::internet_sum(udp_payload, wire::internet_sum({udp, wire::kUdpBytes}, pseudo)));
  wire::store_be16(udp + 6, checksum == 0 ? 0xFFFF : checksum);
  frame.insert(frame.end(), udp_payload.begin(), udp_payload.end());
}

}  // namespace weft::trace
