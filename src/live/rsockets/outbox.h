// What we may still send: bytes of our own ring until their write has completed, requests of the send queue,
// targets and credits that the peer has granted. No memory, no clock, no queue pair.
//
// Four requests of the send queue are kept for messages of control, which need neither credit nor target:
// two ends that wait for each other's credit still get to say that they have read something.
#pragma once
#include <algorithm>
#include <cstdint>

#include "live/rsockets/wire.h"

namespace weft::live::rsockets {

constexpr std::uint32_t kControlSlots = 4;
// A write waits for this much room in the ring, so that a long one does not leave in crumbs.
constexpr std::uint32_t kLowWater = 2048;

class Outbox {
 public:
  Outbox(std::uint32_t size, std::uint32_t requests)
      : size_(size), free_(size), slots_(requests), all_(requests) {}

  void begin(const Offer& peer) {
    most_ = peer.credits;
    limit_ = peer.credits;
    targets_[0] = peer.first;
    count_ = 1;
  }

  // --- what the peer grants ---
  // False: it grants more messages than it has said it takes.
  bool credit(std::uint32_t value) {
    const auto limit = static_cast<std::uint16_t>(value);
    if (static_cast<std::uint16_t>(limit - sent_) > most_) return false;
    limit_ = limit;
    return true;
  }
  bool takes_target() const { return count_ < kTargets; }
  void target(const Target& t) { targets_[(first_ + count_++) % kTargets] = t; }

  // --- what we may send ---
  bool has_credit() const { return sent_ != limit_; }
  bool has_slot() const { return slots_ != 0; }
  bool has_room(std::uint32_t bytes) const { return free_ >= std::min(bytes, std::min(kLowWater, size_)); }
  bool ready(std::uint32_t bytes) const {
    return has_slot() && has_credit() && count_ != 0 && has_room(bytes);
  }
  bool all_done() const { return slots_ == all_ && control_ == kControlSlots; }
  std::uint64_t completed() const { return completed_; }

  struct Piece {
    std::uint32_t offset = 0;  // in the ring; what does not fit before its end begins at its start
    std::uint32_t length = 0;
    Target to;  // of data
  };
  // As much of `bytes` as fits where it goes; ready(bytes) before.
  Piece take(std::uint32_t bytes) {
    Target& t = targets_[first_];
    Piece p{at_, std::min({bytes, free_, t.length}), {t.address, t.key, 0}};
    p.to.length = p.length;
    t.address += p.length;
    t.length -= p.length;
    if (t.length == 0) {
      first_ = (first_ + 1) % kTargets;
      --count_;
    }
    ++sent_;
    use(p.length);
    return p;
  }
  // The same without a target: for a map, which takes a credit, and for a direct write, which takes none.
  Piece take_beside(std::uint32_t bytes, bool with_credit) {
    const Piece p{at_, std::min(bytes, free_), {}};
    if (with_credit) ++sent_;
    use(p.length);
    return p;
  }
  void done(std::uint32_t bytes) {
    ++slots_;
    free_ += bytes;
    ++completed_;
  }

  bool has_control() const { return control_ != 0; }
  // Which of the four it is: they come in turn, and complete in turn.
  std::uint32_t take_control() {
    --control_;
    return next_control_++ % kControlSlots;
  }
  void control_done() {
    ++control_;
    ++completed_;
  }

 private:
  void use(std::uint32_t bytes) {
    --slots_;
    free_ -= bytes;
    at_ = (at_ + bytes) % size_;
  }

  std::uint32_t size_;
  std::uint32_t free_;
  std::uint32_t at_ = 0;
  std::uint32_t slots_;
  std::uint32_t all_;
  std::uint32_t control_ = kControlSlots;
  std::uint32_t next_control_ = 0;
  std::uint64_t completed_ = 0;
  std::uint16_t sent_ = 0;
  std::uint16_t limit_ = 0;
  std::uint16_t most_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t count_ = 0;
  Target targets_[kTargets] = {};
};

}  // namespace weft::live::rsockets
