// Finds a row by its peer and a number of the peer's: a communication id, a queue pair, a process slot.
//
// Chains of row indices behind 2^n buckets, of fixed size: a row stands in at most one chain, under one key,
// and a key names at most one row, the last that took it. (tsl::robin_map, the project's hash table
// elsewhere, keeps a static empty bucket, which core may not have.)
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/wire/packet.h"

namespace weft::cm {

struct PeerKey {
  wire::Address peer;
  std::uint32_t number = 0;
  bool operator==(const PeerKey&) const = default;
};

class PeerTable {
 public:
  static constexpr std::uint32_t kNoRow = UINT32_MAX;

  explicit PeerTable(std::uint32_t rows) : buckets_(std::bit_ceil(rows), kNoRow), rows_(rows) {}

  std::uint32_t find(const PeerKey& key) const {
    std::uint32_t i = buckets_[bucket(key)];
    while (i != kNoRow && rows_[i].key != key) i = rows_[i].next;
    return i;
  }
  void set(const PeerKey& key, std::uint32_t row) {
    erase(row);
    if (const std::uint32_t former = find(key); former != kNoRow) erase(former);
    std::uint32_t& head = buckets_[bucket(key)];
    rows_[row] = {key, head, true};
    head = row;
    ++size_;
  }
  void erase(std::uint32_t row) {
    if (!rows_[row].used) return;
    std::uint32_t* link = &buckets_[bucket(rows_[row].key)];
    while (*link != row) {
      CHECK_OP(*link, !=, kNoRow);
      link = &rows_[*link].next;
    }
    *link = rows_[row].next;
    rows_[row].used = false;
    --size_;
  }
  std::uint32_t size() const { return size_; }
  bool holds(std::uint32_t row) const { return rows_[row].used; }

 private:
  struct Row {
    PeerKey key;
    std::uint32_t next = kNoRow;
    bool used = false;
  };
  std::size_t bucket(const PeerKey& key) const {
    std::uint64_t h = key.number;
    for (const std::uint8_t b : key.peer.bytes) h = (h ^ b) * 0x100'0000'01B3ULL;
    return (h ^ (h >> 29U)) & (buckets_.size() - 1);
  }

  std::vector<std::uint32_t> buckets_;
  std::vector<Row> rows_;
  std::uint32_t size_ = 0;
};

}  // namespace weft::cm
