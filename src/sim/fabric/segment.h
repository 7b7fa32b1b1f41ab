// A TCP segment as the fabric carries it: what the simulation of iWARP's transport (sim/tcp) needs of the
// header (RFC 9293 §3.1, SACK blocks RFC 2018 §3), decoded like wire::Header and as plain.
//
// Numbers are bytes since the connection began and never wrap; on the wire they would be their low 32 bits
// plus a random start. `connection` stands for both ports. It is never given twice in a run, so a segment
// that comes late cannot be taken for one of a later connection.
#pragma once
#include <array>
#include <cstdint>

namespace weft::sim {

struct Segment {
  // Without timestamps, four blocks fill the 40 bytes of options that a header has.
  static constexpr std::uint32_t kBlocks = 4;
  struct Block {  // bytes that arrived beyond a gap, counted from `ack`
    std::uint32_t first = 0;
    std::uint32_t end = 0;
  };

  std::uint64_t seq = 0;  // of the first byte
  std::uint64_t ack = 0;  // every byte before it arrived
  std::uint32_t connection = 0;
  std::uint32_t socket = 0;  // where both hosts keep that connection
  std::uint32_t length = 0;  // bytes of data
  std::uint8_t block_count = 0;
  bool acknowledgment = false;  // data goes one way, acknowledgments the other
  std::array<Block, kBlocks> blocks{};
};

}  // namespace weft::sim
