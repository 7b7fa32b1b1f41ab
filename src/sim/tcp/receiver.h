// The end that receives: puts bytes in order, acknowledges. The first SACK block names the segment that came
// last, the others are those reported most recently before (RFC 2018 §4). Whatever is out of order, fills a
// gap or came before is acknowledged at once; the rest may wait for a second segment (RFC 5681 §4.2).
//
// It has room for everything, so it never discards data that it has acknowledged selectively.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/fabric/segment.h"
#include "sim/tcp/config.h"

namespace weft::sim::tcp {

struct ReceiverCounters {
  std::uint64_t segments = 0;
  std::uint64_t duplicates = 0;    // nothing in them was new
  std::uint64_t out_of_order = 0;  // something before them was missing
  std::uint64_t acks = 0;
  ReceiverCounters& operator+=(const ReceiverCounters& o);
};

class Receiver {
 public:
  explicit Receiver(const Config& config) : config_(config) {}

  // Bytes [from, to) are delivered by it, often none.
  struct Delivered {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
  };
  Delivered on_data(const Segment& data, Time now);
  bool ack_due(Time now) const { return due_ <= now; }
  Time deadline() const { return due_; }
  // Fills in ack and blocks.
  void acknowledge(Segment& out);

  std::uint64_t delivered() const { return next_; }
  const ReceiverCounters& counters() const { return counters_; }

 private:
  struct Stretch {
    std::uint64_t first;
    std::uint64_t end;
    std::uint64_t touched;  // count of segments when it last grew or was sent again
  };
  void keep(std::uint64_t first, std::uint64_t end);

  Config config_;
  std::uint64_t next_ = 0;            // every byte before it was delivered
  std::uint32_t unacknowledged_ = 0;  // segments
  Time due_ = kNever;                 // of the next ACK
  std::vector<Stretch> beyond_;       // in order, none touches another or next_
  ReceiverCounters counters_;
};

}  // namespace weft::sim::tcp
