// csRNA's pending record table (csRNA §4.3.2, Figure 4a): one entry for each queue pair that has requests in
// the pending FIFO, found by its number. The hardware is a CAM of channels x out-of-order capacity entries.
//
// Two departures from the paper, whose algorithms fail without them (tests/nic/printed_test.cc shows each
// sequence):
//   - Formula 1 puts an entry at the place of the request that created it. That request's index is free again
//   as
//     soon as it is granted, while the entry may stay for later requests of the queue pair; another miss with
//     the same index would then overwrite it. Here an entry takes any free place.
//   - A request knows by its ticket when it is its turn, in place of the flag dma_rtn. By place in the FIFO
//   alone,
//     a request whose context was evicted, and is read again, comes behind later ones of its queue pair.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "sim/nic/context/ring.h"

namespace weft::sim {

class PendingTable {
 public:
  struct Entry {
    Qpn qpn = kNoQpn;
    std::uint32_t pending = 0;  // pnd_cnt: requests in the pending FIFO; 0: the entry is void
    std::uint32_t next = 0;     // ticket of the request whose turn it is
    std::uint32_t last = 0;     // ticket of the next request that comes
  };
  explicit PendingTable(std::uint32_t entries);
  // Null: none of this queue pair.
  Entry* find(Qpn qpn);
  // With one request.
  void create(Qpn qpn);
  // The request whose turn it was has gone. True: there is another one.
  bool gone(Entry& entry);
  std::uint32_t used() const { return static_cast<std::uint32_t>(entries_.size() - free_.size()); }

 private:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  std::uint32_t& bucket(Qpn qpn) { return buckets_[(qpn.v * 0x9E37'79B1U) >> shift_]; }

  std::vector<Entry> entries_;
  Ring<std::uint32_t> free_;
  // The CAM: chains of entries.
  std::vector<std::uint32_t> buckets_;
  std::vector<std::uint32_t> chain_;
  unsigned shift_;
};

}  // namespace weft::sim
