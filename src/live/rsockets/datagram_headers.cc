// The two headers of datagrams, and what is refused of them.
#include <arpa/inet.h>

#include "live/rsockets/datagrams.h"

namespace weft::live::rsockets {
namespace {

constexpr std::uint32_t kTag = 0x5555'5555;

}  // namespace

std::optional<Place> read_ud_header(const std::uint8_t* from, std::size_t length) {
  if (length < kUdHeader || from[0] != 4 || from[1] != kUdHeader) return std::nullopt;
  return Place{load<std::uint32_t>(from, 4), load<std::uint16_t>(from, 2)};
}

void write_ud_header(const Place& from, std::uint8_t* to) {
  to[0] = 4;
  to[1] = kUdHeader;
  store(to, 2, from.port);
  store(to, 4, from.address);
}

std::optional<UdpHeader> read_udp_header(const std::uint8_t* from, std::size_t length) {
  if (length < kUdpHeader || load<std::uint32_t>(from, 0) != htonl(kTag)) return std::nullopt;
  if (from[4] != 4 || from[6] != kUdpHeader) return std::nullopt;
  const auto kind = static_cast<UdpKind>(from[5]);
  if (kind != UdpKind::kData && kind != UdpKind::kAnswer) return std::nullopt;
  return UdpHeader{kind, ntohl(load<std::uint32_t>(from, 8)) & 0xFF'FFFFU, load<std::uint32_t>(from, 12)};
}

void write_udp_header(const UdpHeader& header, std::uint8_t* to) {
  store(to, 0, htonl(kTag));
  to[4] = 4;
  to[5] = static_cast<std::uint8_t>(header.kind);
  to[6] = kUdpHeader;
  to[7] = 0;
  store(to, 8, htonl(header.qpn & 0xFF'FFFFU));
  store(to, 12, header.address);
}

}  // namespace weft::live::rsockets
