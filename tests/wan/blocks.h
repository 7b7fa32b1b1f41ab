// For tests whose frames have no bytes: what parity codes of one, and a frame from that. A sum stands in for
// the ICRC.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "wan/logic/frame.h"

namespace weft::wan {

inline constexpr std::uint32_t kLongestBlock = 128;

inline std::uint32_t sum_of(std::span<const std::uint8_t> bytes) {
  std::uint32_t sum = 0x811C'9DC5;
  for (const std::uint8_t b : bytes) sum = (sum ^ b) * 0x0100'0193U;
  return sum;
}

//   length 1 | sum 4 | payload 4 | tos 1 | source 16 | destination 16 | header
inline std::vector<std::uint8_t> block_of(const Frame& f) {
  std::vector<std::uint8_t> b(42 + wire::kMaxHeaderBytes);
  wire::store_be32(b.data() + 5, f.payload);
  b[9] = f.tos;
  std::copy(f.source.bytes.begin(), f.source.bytes.end(), b.begin() + 10);
  std::copy(f.destination.bytes.begin(), f.destination.bytes.end(), b.begin() + 26);
  const bool known = wire::ext_layout(f.header.opcode, f.header.mode, f.header.syndrome).known;
  const std::size_t n = known ? wire::encode(f.header, f.payload, std::span(b).subspan(42)) : 0;
  b.resize(42 + n);
  b[0] = static_cast<std::uint8_t>(b.size());
  wire::store_be32(b.data() + 1, sum_of(std::span(b).subspan(5)));
  return b;
}

inline bool frame_of(std::span<const std::uint8_t> block, Frame& f) {
  if (block.size() < 42 || block[0] < 42 || block[0] > block.size()) return false;
  block = block.first(block[0]);
  if (wire::load_be32(block.data() + 1) != sum_of(block.subspan(5))) return false;
  f = {};
  f.payload = wire::load_be32(block.data() + 5);
  f.tos = block[9];
  std::copy_n(block.begin() + 10, 16, f.source.bytes.begin());
  std::copy_n(block.begin() + 26, 16, f.destination.bytes.begin());
  std::vector<std::uint8_t> packet(block.begin() + 42, block.end());
  packet.resize(packet.size() + f.payload + wire::pad_bytes(f.payload) + wire::kIcrcBytes);
  wire::Decoded d;
  wire::DecodeError error{};
  if (!wire::decode(packet, d, error)) return false;
  f.header = d.header;
  return true;
}

}  // namespace weft::wan
