// IP headers written and read by hand:
//
//   IPv4   0       1    2       4   6      8    9      10        12      16
//          ver ihl tos  length  id  flags  ttl  proto  checksum  source  destination
//   IPv6   0                        4        6      7    8       24
//          ver class(8) flow(20)    payload  proto  hop  source  destination
#include "core/wire/ip.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/wire/bytes.h"

namespace weft::wire {
namespace {

constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::size_t kV4InGrh = kGrhBytes - kIpv4Bytes;

void write_ipv4(const IpHeader& h, std::uint8_t* p) {
  std::fill_n(p, kIpv4Bytes, std::uint8_t{0});
  p[0] = 0x45;
  p[1] = h.tos;
  store_be16(p + 2, static_cast<std::uint16_t>(kIpv4Bytes + h.udp_length));
  store_be16(p + 4, h.identification);
  store_be16(p + 6, kDontFragment);
  p[8] = h.ttl;
  p[9] = kUdpProtocol;
  std::copy_n(h.source.bytes.data() + 12, 4, p + 12);
  std::copy_n(h.destination.bytes.data() + 12, 4, p + 16);
  store_be16(p + 10, internet_checksum(internet_sum({p, kIpv4Bytes})));
}

void write_ipv6(const IpHeader& h, std::uint8_t* p) {
  store_be32(p, 0x6000'0000U | (std::uint32_t{h.tos} << 20U) | (h.flow_label & 0xF'FFFFU));
  store_be16(p + 4, h.udp_length);
  p[6] = kUdpProtocol;
  p[7] = h.ttl;
  std::copy_n(h.source.bytes.data(), 16, p + 8);
  std::copy_n(h.destination.bytes.data(), 16, p + 24);
}

bool is_v4(const IpHeader& h) { return is_v4_mapped(h.source) && is_v4_mapped(h.destination); }

}  // namespace

std::size_t write_ip_header(const IpHeader& h, std::span<std::uint8_t> out) {
  const std::size_t bytes = is_v4(h) ? kIpv4Bytes : kIpv6Bytes;
  CHECK_OP(out.size(), >=, bytes);
  is_v4(h) ? write_ipv4(h, out.data()) : write_ipv6(h, out.data());
  return bytes;
}

void write_grh(const IpHeader& h, std::span<std::uint8_t, kGrhBytes> out) {
  if (!is_v4(h)) return write_ipv6(h, out.data());
  std::fill_n(out.data(), kV4InGrh, std::uint8_t{0});
  write_ipv4(h, out.data() + kV4InGrh);
}

bool read_grh(std::span<const std::uint8_t, kGrhBytes> grh, IpHeader& out) {
  const std::uint8_t* const v4 = grh.data() + kV4InGrh;
  if (v4[0] == 0x45 && internet_checksum(internet_sum({v4, kIpv4Bytes})) == 0) {
    const std::uint16_t total = load_be16(v4 + 2);
    if (total < kIpv4Bytes) return false;
    out = {.source = Address::v4(v4[12], v4[13], v4[14], v4[15]),
           .destination = Address::v4(v4[16], v4[17], v4[18], v4[19]),
           .udp_length = static_cast<std::uint16_t>(total - kIpv4Bytes),
           .identification = load_be16(v4 + 4),
           .tos = v4[1],
           .ttl = v4[8],
           .flow_label = 0};
    return true;
  }
  const std::uint8_t* const v6 = grh.data();
  if (v6[0] >> 4U != 6) return false;
  const std::uint32_t first = load_be32(v6);
  out = {.source = {},
         .destination = {},
         .udp_length = load_be16(v6 + 4),
         .identification = 0,
         .tos = static_cast<std::uint8_t>(first >> 20U),
         .ttl = v6[7],
         .flow_label = first & 0xF'FFFFU};
  std::copy_n(v6 + 8, 16, out.source.bytes.data());
  std::copy_n(v6 + 24, 16, out.destination.bytes.data());
  return true;
}

std::uint64_t internet_sum(std::span<const std::uint8_t> bytes, std::uint64_t sum) {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += load_be16(bytes.data() + i);
  if (bytes.size() % 2 != 0) sum += unsigned{bytes.back()} << 8U;
  return sum;
}

std::uint16_t internet_checksum(std::uint64_t sum) {
  while (sum > 0xFFFF) sum = (sum & 0xFFFFU) + (sum >> 16U);
  return static_cast<std::uint16_t>(~sum);
}

}  // namespace weft::wire
