// What a sender knows of every segment that is under way (RFC 6675 §2-4): selectively acknowledged, lost,
// sent again. From this follow `pipe`, the bytes presumed to be in the network, and what to repair next.
//
//   head (HighACK)                                        tail (HighData)
//     v                                                     v
//     [lost][sacked][lost, repaired][lost][sacked] ... [    ]
//                                     ^        losses_end     sacks_end
//                                  repair cursor
//
// A segment is lost when at least DupThresh separate stretches above it were acknowledged, or more than
// DupThresh - 1 full segments' bytes (IsLost). That holds for everything below it then, too, so one boundary,
// `losses_end`, says it all. Segments stay as they were cut, and an acknowledgment covers them whole.
//
// Places number segments in order; a ring holds those under way. Finding what a block acknowledges anew skips
// what is known by links that are shortened as they are followed, so a block that grows costs what it grew
// by.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/base/units.h"

namespace weft::sim::tcp {

class Scoreboard {
 public:
  using Place = std::uint64_t;
  enum : std::uint8_t { kSacked = 1, kLost = 2, kRepaired = 4, kSentAgain = 8 };
  struct Sent {
    std::uint64_t seq = 0;
    // Of a sacked segment: the places from its own up to this one are sacked, too; its own place: not known.
    Place skip = 0;
    Time at{};  // of the last transmission
    std::uint32_t length = 0;
    std::uint8_t flags = 0;
  };
  struct Acknowledged {
    std::uint32_t segments = 0;
    bool measures = false;  // one of them was sent once only, and never sacked; it measures a round trip
    Time sent_at{};         // when the newest such segment was sent
  };

  Scoreboard(std::uint32_t mss, std::uint32_t duplicate_acks) : mss_(mss), threshold_(duplicate_acks) {}

  bool empty() const { return head_ == tail_; }
  std::uint64_t pipe() const { return pipe_; }
  bool loss_known() const { return losses_end_ > head_; }
  std::uint64_t segments() const { return tail_ - head_; }
  std::uint64_t outstanding() const { return outstanding_; }
  const Sent& first() const { return at(head_); }

  void sent(std::uint64_t seq, std::uint32_t length, Time now);
  Acknowledged acknowledge(std::uint64_t ack);
  // Bytes [first, end) arrived; true if this was news for some of them.
  bool sack(std::uint64_t first, std::uint64_t end);
  void find_losses();
  void lose_first();
  void lose_all();  // a time-out: repairs under way are presumed lost, too; SACKs stay

  // Repairs begin again at the first segment.
  void begin_repair() { cursor_ = head_; }
  // The lowest lost segment that this repair has not sent yet, or nullptr.
  const Sent* next_lost();
  // The lowest segment below the highest sacked one that is neither sacked nor repaired (NextSeg, rule 3).
  const Sent* next_doubtful();
  // The highest segment that is not acknowledged (rule 4). There is one.
  const Sent* last_open();
  void repaired(const Sent& s, Time now);
  void sent_again(const Sent& s, Time now);  // the rescue: `pipe` does not count it a second time

  void check_invariants() const;

 private:
  Sent& at(Place p) { return ring_[p & mask_]; }
  const Sent& at(Place p) const { return ring_[p & mask_]; }
  static std::uint64_t weight(const Sent& s) {
    if ((s.flags & kSacked) != 0) return 0;
    return ((s.flags & kLost) != 0 ? 0U : s.length) + ((s.flags & kRepaired) != 0 ? s.length : 0U);
  }
  void set(Sent& s, std::uint8_t flags) {
    pipe_ -= weight(s);
    s.flags = flags;
    pipe_ += weight(s);
  }
  Place place_of(const Sent& s) const;
  Place first_at(std::uint64_t seq) const;  // lowest place that begins at or behind seq
  Place open_from(Place p);
  void grow();

  std::uint32_t mss_;
  std::uint32_t threshold_;
  Place head_ = 0;
  Place tail_ = 0;
  Place losses_end_ = 0;
  Place sacks_end_ = 0;
  Place cursor_ = 0;
  std::uint64_t mask_ = 15;
  std::uint64_t pipe_ = 0;
  std::uint64_t outstanding_ = 0;
  std::vector<Sent> ring_ = std::vector<Sent>(16);
};

}  // namespace weft::sim::tcp
