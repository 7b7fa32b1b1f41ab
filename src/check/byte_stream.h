// Watches TCP connections from outside: that every byte is delivered once and in order, that acknowledgments
// say what is true, and that a sender sends what its window and the news it had allow.
//
// It keeps its own account of every byte: what was sent, what arrived, what acknowledgments told the sender.
// It computes an upper bound of the window: every acknowledgment lets the bound grow as slow start does, and
// the first retransmission after a loss halves it.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "check/report.h"
#include "core/base/units.h"

namespace weft::check {

struct StreamFacts {
  std::uint32_t mss = 0;
  std::uint32_t initial_window = 0;  // segments
  std::uint32_t duplicate_acks = 3;
  std::uint64_t receive_window = 0;  // 0: unbounded
  Duration rto_min{};
  bool sack = true;
};

// Bytes [first, end).
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t length() const { return end - first; }
};

class ByteRanges {
 public:
  std::uint64_t add(ByteRange r);  // how many of its bytes are new
  bool holds(ByteRange r) const;
  std::uint64_t prefix() const;                   // all before it are there, from 0
  std::uint64_t above(std::uint64_t from) const;  // bytes there
  std::size_t pieces_above(std::uint64_t from) const;

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by first; disjoint, none touches another
};

class ByteStreams {
 public:
  explicit ByteStreams(Report& report) : report_(report) {}

  void opened(std::uint32_t connection, const StreamFacts& facts) { streams_[connection].facts = facts; }
  void wrote(std::uint32_t connection, std::uint64_t bytes) { streams_[connection].written += bytes; }
  void closed(std::uint32_t connection, Time now);

  void data_sent(std::uint32_t connection, ByteRange data, Time now);
  void data_arrived(std::uint32_t connection, ByteRange data);
  void delivered(std::uint32_t connection, ByteRange data, Time now);
  // Blocks in absolute bytes.
  void ack_sent(std::uint32_t connection, std::uint64_t ack, std::span<const ByteRange> blocks, Time now);
  void ack_arrived(std::uint32_t connection, std::uint64_t ack, std::span<const ByteRange> blocks, Time now);
  void finish(Time now);

 private:
  struct Stream {
    StreamFacts facts;
    std::uint64_t written = 0;
    // The receiver's side.
    ByteRanges arrived;
    ByteRange latest;
    std::uint64_t delivered = 0;
    // The sender's.
    std::uint64_t sent = 0;
    std::uint64_t acknowledged = 0;
    ByteRanges reported;  // acknowledged in any way, as far as the sender knows
    std::uint64_t duplicates = 0;
    Time timer_from{};         // the latest time at which the retransmission timer may have been started
    std::uint64_t window = 0;  // at most; 0: not set yet
    // Losses were reported, so repairs below `justified_end` have a cause; the window may become `half`.
    std::uint64_t justified_end = 0;
    std::uint64_t half = 0;
    // Repairs last until all below `repairs_end` is acknowledged. The rest is counted from their beginning:
    // the window then, the bytes sent since, and the bytes reported since.
    std::uint64_t repairs_end = 0;
    std::uint64_t window_then = 0;
    std::uint64_t sent_since = 0;
    std::uint64_t reported_since = 0;
    bool repairing() const { return acknowledged < repairs_end; }
    std::uint64_t in_flight() const;
    std::uint64_t halved() const;
    bool reports_loss() const;
    void justify();
  };
  Stream* of(std::uint32_t connection, Time now);
  void repair_sent(std::uint32_t connection, Stream& s, ByteRange data, Time now);

  Report& report_;
  std::map<std::uint32_t, Stream> streams_;
};

}  // namespace weft::check
