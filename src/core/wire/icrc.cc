// The ICRC register. CRC-32 is linear over GF(2), and three short cuts rest on that:
//
//   start    the eight 0xFF bytes of the dummy LRH always lead to the register kAfterLrh;
//   masks    flipping bits of the next byte equals flipping them in the register's low byte, so BTH
//            byte 4 is "set to 0xFF" without touching or copying the packet;
//   identity the identification adds a term of its own to the register. Forwards it comes from two
//            tables; backwards, the difference between two CRCs is wound back over the bytes behind the
//            field by one multiplication with a power of x, and is an identification exactly if only
//            its 16 bits are left.
//
// Polynomials are reflected as in Ethernet: bit 31 is the coefficient of x^0, and one zero byte through
// the register multiplies it by x^8.
#include "core/wire/icrc.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>

#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "core/wire/ip.h"

namespace weft::wire {
namespace {

constexpr std::uint32_t kPolynomial = 0xEDB8'8320;
constexpr std::uint32_t kOne = 0x8000'0000;       // x^0
constexpr std::uint32_t kAfterLrh = 0xDEBB'20E3;  // register after eight 0xFF bytes

constexpr std::uint32_t times_x(std::uint32_t r) { return (r >> 1U) ^ ((r & 1U) != 0 ? kPolynomial : 0U); }
constexpr std::uint32_t over_x(std::uint32_t r) {
  return (r & kOne) != 0 ? ((r ^ kPolynomial) << 1U) | 1U : r << 1U;
}

// Product of two residues.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (unsigned bit = 32; bit-- > 0;) {
    product ^= b & (0U - ((a >> bit) & 1U));
    b = times_x(b);
  }
  return product;
}

// kBytes[k][b]: register after byte b and then k zero bytes, from an empty register.
using ByteTable = std::array<std::uint32_t, 256>;
constexpr std::array<ByteTable, 4> kBytes = [] {
  std::array<ByteTable, 4> t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t r = b;
    for (ByteTable& row : t) {
      for (int bit = 0; bit < 8; ++bit) r = times_x(r);
      row[b] = r;
    }
  }
  return t;
}();

// What the upper and lower byte of the identification add to the register at the end of the UDP header.
constexpr std::size_t kAfterIdentification = kIpv4Bytes - 6 + kUdpBytes;
constexpr std::array<ByteTable, 2> kIdentification = [] {
  std::array<ByteTable, 2> t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t r = kBytes[0][b];
    for (std::size_t i = 0; i < kAfterIdentification; ++i) r = kBytes[0][r & 0xFFU] ^ (r >> 8U);
    t[1][b] = r;
    t[0][b] = kBytes[0][r & 0xFFU] ^ (r >> 8U);
  }
  return t;
}();

// x^-8n for n < 256, and x^(-8 * 256 n) up to the longest IP packet.
constexpr ByteTable kBack = [] {
  ByteTable t{};
  std::uint32_t r = kOne;
  for (std::uint32_t& entry : t) {
    entry = r;
    for (int bit = 0; bit < 8; ++bit) r = over_x(r);
  }
  return t;
}();
constexpr std::array<std::uint32_t, 257> kBack256 = [] {
  std::array<std::uint32_t, 257> t{};
  const std::uint32_t step = multiply(kBack[255], kBack[1]);
  std::uint32_t r = kOne;
  for (std::uint32_t& entry : t) {
    entry = r;
    r = multiply(r, step);
  }
  return t;
}();

std::uint32_t run(std::uint32_t r, const std::uint8_t* p, std::size_t size) {
  return ~crc32_gzip_refl(~r, p, size);
}

std::uint32_t run4(std::uint32_t r, const std::uint8_t* p) {
  r ^= load_le32(p);
  return kBytes[3][r & 0xFFU] ^ kBytes[2][(r >> 8U) & 0xFFU] ^ kBytes[1][(r >> 16U) & 0xFFU] ^
         kBytes[0][r >> 24U];
}

void set_ones(std::uint8_t* p, std::size_t n) { std::memset(p, 0xFF, n); }

void mask_ipv4(std::uint8_t* ip) {
  set_ones(ip + 1, 1);   // DSCP, ECN
  set_ones(ip + 8, 1);   // TTL
  set_ones(ip + 10, 2);  // header checksum
}

void mask_ipv6(std::uint8_t* ip) {
  ip[0] |= 0x0FU;       // traffic class, flow label
  set_ones(ip + 1, 3);  //
  set_ones(ip + 7, 1);  // hop limit
}

void mask_udp(std::uint8_t* udp) { set_ones(udp + 6, 2); }  // checksum

}  // namespace

bool IpFacts::is_v4() const { return is_v4_mapped(source) && is_v4_mapped(destination); }

Icrc::Icrc(const IpFacts& ip) {
  std::uint8_t bytes[kIpv6Bytes + kUdpBytes] = {};
  std::uint8_t* udp = bytes;
  if (ip.is_v4()) {
    bytes[0] = 0x45;
    store_be16(bytes + 2, static_cast<std::uint16_t>(kIpv4Bytes + ip.udp_length));
    store_be16(bytes + 4, ip.identification);
    store_be16(bytes + 6, ip.dont_fragment ? 0x4000 : 0);
    bytes[9] = kUdpProtocol;
    std::memcpy(bytes + 12, ip.source.bytes.data() + 12, 4);
    std::memcpy(bytes + 16, ip.destination.bytes.data() + 12, 4);
    mask_ipv4(bytes);
    udp += kIpv4Bytes;
  } else {
    bytes[0] = 0x60;
    store_be16(bytes + 4, ip.udp_length);
    bytes[6] = kUdpProtocol;
    std::memcpy(bytes + 8, ip.source.bytes.data(), 16);
    std::memcpy(bytes + 24, ip.destination.bytes.data(), 16);
    mask_ipv6(bytes);
    udp += kIpv6Bytes;
  }
  store_be16(udp, ip.source_port);
  store_be16(udp + 2, kUdpPort);
  store_be16(udp + 4, ip.udp_length);
  mask_udp(udp);
  register_ = run(kAfterLrh, bytes, static_cast<std::size_t>(udp - bytes) + kUdpBytes);
}

Icrc::Icrc(std::span<const std::uint8_t> ip_and_udp) {
  std::uint8_t bytes[60 + kUdpBytes] = {};  // IPv4 with all its options is the longest
  std::size_t ip_bytes = kIpv6Bytes;
  const bool v4 = !ip_and_udp.empty() && (ip_and_udp[0] >> 4U) == 4;
  if (v4) ip_bytes = std::max<std::size_t>((ip_and_udp[0] & 0x0FU) * 4U, kIpv4Bytes);
  const std::size_t size = std::min(ip_and_udp.size(), ip_bytes + kUdpBytes);
  std::copy_n(ip_and_udp.begin(), size, bytes);
  v4 ? mask_ipv4(bytes) : mask_ipv6(bytes);
  mask_udp(bytes + ip_bytes);
  register_ = run(kAfterLrh, bytes, size);
}

Icrc Icrc::with_identification(std::uint16_t identification) const {
  Icrc other = *this;
  other.register_ ^= kIdentification[0][identification >> 8U] ^ kIdentification[1][identification & 0xFFU];
  return other;
}

void Icrc::packet(std::span<const std::uint8_t> bth_to_pad) {
  const std::uint8_t* const p = bth_to_pad.data();
  if (bth_to_pad.size() < kBthBytes) return update(bth_to_pad);
  // Four bytes by table, then byte 4 read as 0xFF whatever it is, then the rest.
  register_ = run4(register_, p) ^ (p[4] ^ 0xFFU);
  register_ = run(register_, p + 4, bth_to_pad.size() - 4);
}

void Icrc::bth(std::span<const std::uint8_t, 12> bytes) {
  const std::uint8_t* const p = bytes.data();
  register_ = run4(register_, p) ^ (p[4] ^ 0xFFU);
  register_ = run4(register_, p + 4);
  register_ = run4(register_, p + 8);
}

void Icrc::update(std::span<const std::uint8_t> bytes) {
  if (!bytes.empty()) register_ = run(register_, bytes.data(), bytes.size());
}

bool solve_identification(std::uint32_t computed_with_zero, std::uint32_t received,
                          std::uint32_t bytes_after_field, std::uint16_t& identification) {
  const std::uint64_t back = std::uint64_t{bytes_after_field} + 2U;  // the field's own two bytes
  if (back / 256U >= kBack256.size()) return false;
  // Both CRCs are complemented, so their difference is the registers' difference.
  std::uint32_t term = multiply(kBack[back % 256U], computed_with_zero ^ received);
  term = multiply(kBack256[back / 256U], term);
  if (term > 0xFFFF) return false;
  identification = __builtin_bswap16(static_cast<std::uint16_t>(term));  // first byte lowest in the register
  return true;
}

}  // namespace weft::wire
