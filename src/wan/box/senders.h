// Which Ethernet header, and which UDP source port, frames from one address to another have: as they were
// last seen, or, if none was, those of the other direction turned round. A box needs them for the frames that
// it writes itself, which stand between two endpoints that it has seen.
//
// A table of fixed size, four to a row; who comes new takes the place of the oldest of its row. An address
// that was pushed out is known again with its next frame.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "wan/box/ethernet.h"

namespace weft::wan {

class Senders {
 public:
  struct Entry {
    wire::Address from;
    wire::Address to;
    EthernetHeader ethernet{};
    std::uint16_t port = 0;
  };

  Senders() : rows_(kRows) {}

  void saw(const wire::Address& from, const wire::Address& to, const std::uint8_t* ethernet,
           std::uint16_t port) {
    Entry* e = find(from, to);
    if (e == nullptr) {
      Row& row = rows_[index(from, to)];
      e = &row.entries[row.next];
      row.next = static_cast<std::uint8_t>((row.next + 1U) % kWays);
      e->from = from;
      e->to = to;
    } else if (e->port == port && std::memcmp(e->ethernet.data(), ethernet, kEthernetBytes) == 0) {
      return;
    }
    std::memcpy(e->ethernet.data(), ethernet, kEthernetBytes);
    e->port = port;
  }

  // False: neither direction was seen.
  bool header(const wire::Address& from, const wire::Address& to, EthernetHeader& out, std::uint16_t& port) {
    if (const Entry* e = find(from, to)) {
      out = e->ethernet;
      port = e->port;
      return true;
    }
    const Entry* e = find(to, from);
    if (e == nullptr) return false;
    out = e->ethernet;
    std::swap_ranges(out.begin(), out.begin() + 6, out.begin() + 6);
    port = e->port;
    return true;
  }

 private:
  static constexpr std::size_t kRows = 2048;
  static constexpr std::size_t kWays = 4;
  struct Row {
    Entry entries[kWays];
    std::uint8_t next = 0;
  };

  static std::size_t index(const wire::Address& from, const wire::Address& to) {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::memcpy(&a, from.bytes.data() + 8, sizeof a);
    std::memcpy(&b, to.bytes.data() + 8, sizeof b);
    return static_cast<std::size_t>(((a * 0x9E37'79B9'7F4A'7C15ULL) ^ b) * 0x9E37'79B9'7F4A'7C15ULL >> 32U) %
           kRows;
  }
  Entry* find(const wire::Address& from, const wire::Address& to) {
    for (Entry& e : rows_[index(from, to)].entries) {
      if (e.port != 0 && e.from == from && e.to == to) return &e;
    }
    return nullptr;
  }

  std::vector<Row> rows_;
};

}  // namespace weft::wan
