#include "pair/datagram.h"

#include "core/wire/codec.h"
#include "core/wire/icrc.h"

namespace weft::pair {
namespace {

constexpr std::uint32_t kFrameOverhead = 14 + 20 + 8 + 4;  // Ethernet, IPv4, UDP, ICRC

wire::IpFacts ip_facts(const wire::Address& from, const wire::Address& to, std::size_t datagram) {
  wire::IpFacts ip;
  ip.source = from;
  ip.destination = to;
  ip.source_port = 0xC000;
  ip.udp_length = static_cast<std::uint16_t>(8U + datagram);
  return ip;
}

}  // namespace

std::uint32_t frame_bytes(const wire::Header& h, std::size_t payload) {
  const auto n = static_cast<std::uint32_t>(payload);
  return kFrameOverhead + static_cast<std::uint32_t>(wire::header_bytes(h)) + n + wire::pad_bytes(n);
}

std::vector<std::uint8_t> to_datagram(const wire::Address& from, const wire::Address& to,
                                      const wire::Header& h, std::span<const std::uint8_t> payload) {
  std::vector<std::uint8_t> bytes(wire::kMaxHeaderBytes);
  const auto n = static_cast<std::uint32_t>(payload.size());
  bytes.resize(wire::encode(h, n, bytes));
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  bytes.resize(bytes.size() + wire::pad_bytes(n));
  wire::Icrc crc(ip_facts(from, to, bytes.size() + wire::kIcrcBytes));
  crc.packet(bytes);
  for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(crc.value() >> (8U * i)));
  return bytes;
}

bool icrc_right(const wire::Address& from, const wire::Address& to, std::span<const std::uint8_t> datagram) {
  if (datagram.size() < wire::kBthBytes + wire::kIcrcBytes) return false;
  wire::Icrc crc(ip_facts(from, to, datagram.size()));
  crc.packet(datagram.first(datagram.size() - wire::kIcrcBytes));
  std::uint32_t carried = 0;
  for (unsigned i = 0; i < 4; ++i) carried |= std::uint32_t{datagram[datagram.size() - 4 + i]} << (8U * i);
  return carried == crc.value();
}

}  // namespace weft::pair
