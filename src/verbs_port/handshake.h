// How two ends of a connection learn of each other where no connection manager is at hand: a TCP connection
// between their addresses, as perftest has one. The end that asks opens it and sends a Hello; the other
// answers with one, or closes; after that the connection stands idle, and its end is the end of the
// connection.
//
//   magic 4 | version 1 | size 1 | mtu 2 | qpn 4 | psn 4 | reads 1 | spare 3 | data 56        all in network
//   order
#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "core/verbs/port.h"

namespace weft {

struct Hello {
  Qpn qpn = kNoQpn;
  WirePsn psn{};
  std::uint32_t mtu = 0;
  std::uint8_t reads = 0;
  ConnectData data;

  static constexpr std::size_t kBytes = 20 + ConnectData::kMost;
  std::array<std::uint8_t, kBytes> encode() const;
  // Nothing if this is not one of ours.
  static std::optional<Hello> decode(const std::array<std::uint8_t, kBytes>& bytes);
};

}  // namespace weft
