// ICRC registers after the part of the packet that comes before the BTH, remembered.
//
// Everything the ICRC covers ahead of the BTH (dummy LRH, IP, UDP) is the same for all packets of one
// size between two addresses, except for the IPv4 identification, whose term core/wire adds by table. Over
// IPv6 there is none, and none is added. For a small packet that part is half of the work, so the register is
// computed once per (addresses, port, length) and copied from then on. A miss only costs the computation: a
// direct-mapped table.
#pragma once
#include <cstdint>
#include <vector>

#include "core/wire/icrc.h"

namespace weft::live {

class IcrcSeeds {
 public:
  IcrcSeeds() : rows_(kRows, Row{}) {}

  // The register behind these headers, with the identification that they have over IPv4.
  wire::Icrc get(wire::IpFacts ip) {
    const std::uint16_t identification = ip.identification;
    ip.identification = 0;
    Row& row = rows_[slot(ip)];
    if (row.ip.udp_length != ip.udp_length || row.ip.source_port != ip.source_port ||
        row.ip.source != ip.source || row.ip.destination != ip.destination) {
      row = {ip, wire::Icrc(ip), ip.is_v4()};
    }
    return identification == 0 || !row.numbered ? row.seed : row.seed.with_identification(identification);
  }

 private:
  static constexpr std::size_t kRows = 256;

  struct Row {
    wire::IpFacts ip{};  // a free row has udp_length 0, which no packet has
    wire::Icrc seed{wire::IpFacts{}};
    bool numbered = false;  // IPv4
  };

  static std::size_t slot(const wire::IpFacts& ip) {
    const std::uint32_t mixed = ip.source.bytes[15] * 31U + ip.source.bytes[14] * 17U +
                                ip.destination.bytes[15] * 7U + ip.udp_length / 4U + ip.source_port;
    return mixed % kRows;
  }

  std::vector<Row> rows_;
};

}  // namespace weft::live
