#include "wan/box/trains.h"

#include <algorithm>
#include <cstring>

#include "core/wire/bytes.h"
#include "core/wire/ip.h"
#include "wan/box/ethernet.h"

namespace weft::wan {
namespace {

constexpr std::size_t kIp = kEthernetBytes;
constexpr std::size_t kUdp = kIp + wire::kIpv4Bytes;

}  // namespace

bool can_be_cut(const RxFrame& t) {
  if (!t.offload.is_udp_train() || t.offload.piece == 0 || t.bytes <= kHeadersBytes) return false;
  const std::uint8_t* p = t.data;
  return wire::load_be16(p + 12) == 0x0800 && p[kIp] == 0x45 && p[kIp + 9] == wire::kUdpProtocol;
}

std::uint32_t frames_of(const RxFrame& t) {
  const auto payload = static_cast<std::uint32_t>(t.bytes - kHeadersBytes);
  return (payload + t.offload.piece - 1) / t.offload.piece;
}

std::uint32_t longest_of(const RxFrame& t) {
  return std::min(t.bytes, static_cast<std::uint32_t>(kHeadersBytes + t.offload.piece));
}

std::uint32_t cut_frame(const RxFrame& t, std::uint32_t i, std::uint8_t* out) {
  const std::size_t from = kHeadersBytes + std::size_t{i} * t.offload.piece;
  const std::size_t payload = std::min<std::size_t>(t.offload.piece, t.bytes - from);
  std::memcpy(out, t.data, kHeadersBytes);
  std::memcpy(out + kHeadersBytes, t.data + from, payload);
  const auto udp_length = static_cast<std::uint16_t>(wire::kUdpBytes + payload);
  wire::store_be16(out + kIp + 2, static_cast<std::uint16_t>(wire::kIpv4Bytes + udp_length));
  wire::store_be16(out + kIp + 4, static_cast<std::uint16_t>(wire::load_be16(t.data + kIp + 4) + i));
  wire::store_be16(out + kIp + 10, 0);
  const std::span<const std::uint8_t> header(out + kIp, wire::kIpv4Bytes);
  wire::store_be16(out + kIp + 10, wire::internet_checksum(wire::internet_sum(header)));
  wire::store_be16(out + kUdp + 4, udp_length);
  wire::store_be16(out + kUdp + 6, 0);
  return static_cast<std::uint32_t>(kHeadersBytes + payload);
}

}  // namespace weft::wan
