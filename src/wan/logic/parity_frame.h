// A parity frame, as it travels between two boxes (docs/protocol/boxes.md#parity): a packet to queue pair 1
// of an opcode that no endpoint knows, so that one which nobody takes off the line is dropped where it ends.
//
//   | BTH | row, repair, runs, instances, number | run, run, ... | first 16 bytes of HMAC | coded bytes |
//           `row` is not signed
//
// A run is `count` packets of one ownership that follow each other. Members of the group are numbered as the
// runs name them. All frames of a group differ in their row only, so a group is signed once. A wrong row
// gives wrong bytes, which the ICRC of a restored packet finds.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "core/base/seq.h"
#include "wan/logic/frame.h"
#include "wan/logic/hmac.h"

namespace weft::wan {

inline constexpr std::uint8_t kParityOpcode = 0xC7;  // of those that belong to manufacturers
inline constexpr std::uint32_t kMostRuns = 16;

struct ParityRun {
  std::uint64_t lease = 0;
  WirePsn first{};
  std::uint8_t count = 0;
  bool operator==(const ParityRun&) const = default;
};

struct ParityHeader {
  std::uint8_t row = 0;     // which one of `repair`
  std::uint8_t repair = 0;  // of the group
  std::uint8_t runs = 0;
  std::uint64_t sender = 0;  // instances, as in messages
  std::uint64_t receiver = 0;
  std::uint64_t number = 0;  // of the group; grows
  std::array<ParityRun, kMostRuns> run{};
  bool operator==(const ParityHeader&) const = default;

  std::uint32_t members() const {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < runs; ++i) n += run[i].count;
    return n;
  }
};

inline constexpr std::uint32_t kParityRunBytes = 12;
inline constexpr std::uint32_t kMostParityHeader = 32 + kMostRuns * kParityRunBytes + 16;
constexpr std::uint32_t parity_header_bytes(std::uint32_t runs) { return 32 + runs * kParityRunBytes + 16; }
// In front of every block that is coded: what a packet has around it, addresses and length among that.
inline constexpr std::uint32_t kAroundPacket = 28;
using ParityBytes = std::array<std::uint8_t, kMostParityHeader>;

inline bool is_parity(const wire::Header& h) { return h.opcode == kParityOpcode; }

// Returns the length.
std::uint32_t encode(const ParityHeader& h, const Hmac& key, ParityBytes& out);
// False: it makes no sense. Who sent it is authentic()'s to say. `bytes` may go on behind the header.
bool decode(std::span<const std::uint8_t> bytes, ParityHeader& out);
// Of bytes that were decoded.
bool authentic(std::span<const std::uint8_t> bytes, const Hmac& key);

}  // namespace weft::wan
