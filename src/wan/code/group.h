// What a world does when its box says from what packets can be restored: the bytes of the members that are
// here, and of as many rows as are missing, give the missing ones. The world says where bytes lie.
#pragma once
#include <cstdint>
#include <span>

#include "wan/code/reed_solomon.h"
#include "wan/logic/config.h"
#include "wan/logic/frame.h"

namespace weft::wan {

static_assert(kMostMembers == ParityTerms::kMostData && kMostRows == ParityTerms::kMostRepair);

// `block_of(body)`: what was coded of a member; `coded(row)`: the coded bytes of a parity frame;
// `found(block)`: a member that was missed, with zeros behind it. False: lengths do not fit, so some frame is
// not what it says; nothing is restored.
template <class BlockOf, class Coded, class Found>
bool compute(const Restore& r, Decoder& d, BlockOf block_of, Coded coded, Found found) {
  if (r.rows == 0) return false;
  const std::size_t used = coded(r.row[0]).size();
  if (used == 0 || used > d.longest()) return false;
  d.begin(static_cast<std::uint32_t>(used));
  for (std::uint32_t i = 0; i < r.rows; ++i) {
    const std::span<const std::uint8_t> bytes = coded(r.row[i]);
    if (bytes.size() != used) return false;
    d.row(r.row[i].row, bytes);
  }
  std::array<std::uint32_t, kMostRows> missing{};
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < r.members; ++i) {
    if (r.here[i] == kNoBody) {
      if (count == r.rows) return false;
      missing[count++] = i;
      continue;
    }
    const std::span<const std::uint8_t> block = block_of(r.here[i]);
    if (block.size() > used) return false;
    d.subtract(i, block);
  }
  if (count == 0 || count != r.rows) return false;
  d.solve({missing.data(), count});
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((r.wanted >> missing[i] & 1U) != 0) found(d.block(i));
  }
  return true;
}

}  // namespace weft::wan
