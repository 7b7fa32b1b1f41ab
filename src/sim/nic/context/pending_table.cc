#include "sim/nic/context/pending_table.h"

#include <bit>

namespace weft::sim {

PendingTable::PendingTable(std::uint32_t entries)
    : entries_(entries),
      free_(entries),
      buckets_(std::bit_ceil(std::uint64_t{entries} * 2), kNone),
      chain_(entries, kNone),
      shift_(32U - static_cast<unsigned>(std::countr_zero(buckets_.size()))) {
  for (std::uint32_t i = 0; i < entries; ++i) free_.push(i);
}

PendingTable::Entry* PendingTable::find(Qpn qpn) {
  for (std::uint32_t i = bucket(qpn); i != kNone; i = chain_[i]) {
    if (entries_[i].qpn == qpn) return &entries_[i];
  }
  return nullptr;
}

void PendingTable::create(Qpn qpn) {
  const std::uint32_t i = free_.pop();
  CHECK_OP(entries_[i].pending, ==, 0);
  entries_[i] = {qpn, 1, 0, 1};
  chain_[i] = bucket(qpn);
  bucket(qpn) = i;
}

bool PendingTable::gone(Entry& entry) {
  CHECK_OP(entry.pending, >, 0);
  ++entry.next;
  if (--entry.pending != 0) return true;
  const auto i = static_cast<std::uint32_t>(&entry - entries_.data());
  std::uint32_t* at = &bucket(entry.qpn);
  while (*at != i) at = &chain_[*at];
  *at = chain_[i];
  entry.qpn = kNoQpn;
  free_.push(i);
  return false;
}

}  // namespace weft::sim
