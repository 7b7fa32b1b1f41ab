// What memory a design takes for N queue pairs, part by part: on the chip, on the board and in the host
// (SRNIC §3.2, Tables 1 and 2; IRN §6.1; csRNA §4.7, Table 1). Every figure is computed from the parts of the
// Design, and from nothing else, so that a changed part changes it; `how` says with which numbers.
//
// K is 1024 for memory, as in SRNIC's first footnote.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "sim/nic/design.h"

namespace weft::sim {

enum class Place : std::uint8_t { kChip, kBoard, kHost };
const char* place_name(Place place);

struct MemoryItem {
  const char* name = "";
  Place place = Place::kChip;
  std::uint64_t bits = 0;  // tables of odd widths are packed
  bool grows = false;      // with the number of queue pairs
  std::string how;
  std::uint64_t bytes() const { return (bits + 7) / 8; }
};

struct MemoryAccount {
  std::vector<MemoryItem> items;
  std::uint64_t total(Place place) const;
  // 0: the design has no such part.
  std::uint64_t bytes(std::string_view item, Place place = Place::kChip) const;
  // Of the whole, on the chip.
  double percent(const MemoryItem& item) const;
};

// Refused beyond what the design can have.
Result<MemoryAccount> memory_of(const Design& design, std::uint64_t queue_pairs);

// How many queue pairs fit into a memory on the chip: SRNIC's Equation (1) where only contexts grow. 0: not
// even what is independent of them.
std::uint64_t queue_pairs_within(const Design& design, Bytes chip);

// Bits that one more unit of out-of-order capacity costs (csRNA §4.7, Formula 2): index FIFOs, pending FIFO
// and pending record table of all channels, without the waiting SRAM.
struct PendingBits {
  std::uint32_t index = 0;    // of an index FIFO
  std::uint32_t element = 0;  // of the pending FIFO
  std::uint32_t entry = 0;    // of the pending record table
};
// `printed`: with the fields that the paper names; otherwise with the tickets that keep the order
// (context/pending_table.h).
PendingBits pending_bits(const ContextDesign& design, bool printed);
std::uint64_t bits_per_capacity(const ContextDesign& design, bool printed);

}  // namespace weft::sim
