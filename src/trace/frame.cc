// Headers from Ethernet to UDP, written with fixed choices where a capture does not care: no VLAN tag, no IP
// options, don't-fragment set as wire-reference §1.1 asks, flow label 0.
//
// The UDP checksum is computed for IPv4 too. RoCE may send 0 there, and weft's udp wire leaves it to the
// kernel; a right one lets tshark verify that these bytes belong together, which a 0 does not.
#include "trace/frame.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "core/wire/icrc.h"

namespace weft::trace {
namespace {

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::size_t kUdpBytes = 8;
constexpr std::size_t kLargestUdpPayload = 65'507;
constexpr std::uint8_t kUdpProtocol = 17;

// One's-complement sum of 16-bit words (RFC 1071); an odd last byte counts as its word's upper half.
std::uint64_t sum16(std::span<const std::uint8_t> bytes, std::uint64_t sum = 0) {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += wire::load_be16(bytes.data() + i);
  if (bytes.size() % 2 != 0) sum += unsigned{bytes.back()} << 8U;
  return sum;
}
// The complement of the folded sum.
std::uint16_t checksum_of(std::uint64_t sum) {
  while (sum > 0xFFFF) sum = (sum & 0xFFFFU) + (sum >> 16U);
  return static_cast<std::uint16_t>(~sum);
}

void write_mac(std::uint8_t* p, const wire::Address& a) {
  p[0] = 0x02;  // locally administered
  p[1] = 0;
  std::copy_n(a.bytes.data() + 12, 4, p + 2);
}

}  // namespace

void build_frame(const PacketInfo& info, std::span<const std::uint8_t> udp_payload,
                 std::vector<std::uint8_t>& frame) {
  CHECK_OP(udp_payload.size(), <=, kLargestUdpPayload);
  const bool v4 = wire::IpFacts{.source = info.source, .destination = info.destination}.is_v4();
  const std::size_t ip_bytes = v4 ? kIpv4Bytes : kIpv6Bytes;
  const auto udp_length = static_cast<std::uint16_t>(kUdpBytes + udp_payload.size());
  frame.assign(kEthernetBytes + ip_bytes + kUdpBytes, 0);

  std::uint8_t* const ethernet = frame.data();
  write_mac(ethernet, info.destination);
  write_mac(ethernet + 6, info.source);
  wire::store_be16(ethernet + 12, v4 ? 0x0800 : 0x86DD);

  std::uint8_t* const ip = ethernet + kEthernetBytes;
  std::span<const std::uint8_t> addresses;  // both, as they stand in the IP header
  if (v4) {
    ip[0] = 0x45;
    ip[1] = info.tos;
    wire::store_be16(ip + 2, static_cast<std::uint16_t>(kIpv4Bytes + udp_length));
    wire::store_be16(ip + 4, info.identification);
    wire::store_be16(ip + 6, 0x4000);  // don't fragment
    ip[8] = info.ttl;
    ip[9] = kUdpProtocol;
    std::copy_n(info.source.bytes.data() + 12, 4, ip + 12);
    std::copy_n(info.destination.bytes.data() + 12, 4, ip + 16);
    wire::store_be16(ip + 10, checksum_of(sum16({ip, kIpv4Bytes})));
    addresses = {ip + 12, 8};
  } else {
    wire::store_be32(ip, 0x6000'0000U | (std::uint32_t{info.tos} << 20U));
    wire::store_be16(ip + 4, udp_length);
    ip[6] = kUdpProtocol;
    ip[7] = info.ttl;
    std::copy_n(info.source.bytes.data(), 16, ip + 8);
    std::copy_n(info.destination.bytes.data(), 16, ip + 24);
    addresses = {ip + 8, 32};
  }

  std::uint8_t* const udp = ip + ip_bytes;
  wire::store_be16(udp, info.source_port);
  wire::store_be16(udp + 2, wire::kUdpPort);
  wire::store_be16(udp + 4, udp_length);
  // Over the pseudo header, the UDP header and the payload; a sum of zero is sent as all ones.
  const std::uint64_t pseudo = sum16(addresses, std::uint64_t{kUdpProtocol} + udp_length);
  const std::uint16_t checksum = checksum_of(sum16(udp_payload, sum16({udp, kUdpBytes}, pseudo)));
  wire::store_be16(udp + 6, checksum == 0 ? 0xFFFF : checksum);
  frame.insert(frame.end(), udp_payload.begin(), udp_payload.end());
}

}  // namespace weft::trace
