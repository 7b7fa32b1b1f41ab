#include "sim/tcp/scoreboard.h"

#include <algorithm>

namespace weft::sim::tcp {

void Scoreboard::sent(std::uint64_t seq, std::uint32_t length, Time now) {
  if (tail_ - head_ > mask_) grow();
  at(tail_) = {seq, tail_, now, length, 0};
  ++tail_;
  pipe_ += length;
  outstanding_ += length;
}

void Scoreboard::grow() {
  std::vector<Sent> bigger(2 * ring_.size());
  const std::uint64_t mask = bigger.size() - 1;
  for (Place p = head_; p != tail_; ++p) bigger[p & mask] = at(p);
  ring_ = std::move(bigger);
  mask_ = mask;
}

Scoreboard::Acknowledged Scoreboard::acknowledge(std::uint64_t ack) {
  Acknowledged a;
  while (head_ != tail_ && first().seq + first().length <= ack) {
    const Sent& s = first();
    if ((s.flags & (kSacked | kSentAgain)) == 0) {
      a.measures = true;
      a.sent_at = s.at;
    }
    ++a.segments;
    pipe_ -= weight(s);
    outstanding_ -= s.length;
    ++head_;
  }
  for (Place* p : {&losses_end_, &sacks_end_, &cursor_}) *p = std::max(*p, head_);
  return a;
}

Scoreboard::Place Scoreboard::first_at(std::uint64_t seq) const {
  Place low = head_;
  std::uint64_t n = tail_ - head_;
  while (n != 0) {
    const std::uint64_t half = n / 2;
    if (at(low + half).seq < seq) {
      low += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return low;
}

// The first place from p on that is not sacked; tail if there is none.
Scoreboard::Place Scoreboard::open_from(Place p) {
  Place end = p;
  while (end != tail_ && (at(end).flags & kSacked) != 0) {
    const Place next = at(end).skip;
    end = next == end ? end + 1 : next;
  }
  while (p != end) {
    const Place next = at(p).skip == p ? p + 1 : at(p).skip;
    at(p).skip = end;
    p = next;
  }
  return end;
}

bool Scoreboard::sack(std::uint64_t first, std::uint64_t end) {
  bool news = false;
  for (Place p = open_from(first_at(first)); p != tail_ && at(p).seq + at(p).length <= end;
       p = open_from(p + 1)) {
    Sent& s = at(p);
    set(s, s.flags | kSacked);
    s.skip = p;
    sacks_end_ = std::max(sacks_end_, p + 1);
    news = true;
  }
  return news;
}

void Scoreboard::find_losses() {
  std::uint64_t bytes = 0;
  std::uint32_t stretches = 0;
  bool inside = false;
  for (Place p = sacks_end_; p > losses_end_;) {
    --p;
    const Sent& s = at(p);
    if ((s.flags & kSacked) != 0) {
      bytes += s.length;
      stretches += inside ? 0U : 1U;
      inside = true;
      continue;
    }
    inside = false;
    if (stretches < threshold_ && bytes <= std::uint64_t{threshold_ - 1} * mss_) continue;
    for (Place q = losses_end_; q != p + 1; ++q) set(at(q), at(q).flags | kLost);
    losses_end_ = p + 1;
    return;
  }
}

void Scoreboard::lose_first() {
  if (loss_known()) return;
  set(at(head_), at(head_).flags | kLost);
  losses_end_ = head_ + 1;
}

void Scoreboard::lose_all() {
  for (Place p = head_; p != tail_; ++p) {
    set(at(p), static_cast<std::uint8_t>((at(p).flags | kLost) & ~kRepaired));
  }
  losses_end_ = tail_;
  cursor_ = head_;
}

const Scoreboard::Sent* Scoreboard::next_lost() {
  while (cursor_ < losses_end_) {
    if ((at(cursor_).flags & (kSacked | kRepaired)) == 0) return &at(cursor_);
    ++cursor_;
  }
  return nullptr;
}

const Scoreboard::Sent* Scoreboard::next_doubtful() {
  for (Place p = std::max(cursor_, losses_end_); p < sacks_end_; ++p) {
    if ((at(p).flags & (kSacked | kRepaired)) == 0) return &at(p);
  }
  return nullptr;
}

const Scoreboard::Sent* Scoreboard::last_open() {
  Place p = tail_ - 1;
  while (p > head_ && (at(p).flags & kSacked) != 0) --p;
  return &at(p);
}

Scoreboard::Place Scoreboard::place_of(const Sent& s) const {
  const auto slot = static_cast<std::uint64_t>(&s - ring_.data());
  return head_ + ((slot - head_) & mask_);
}

void Scoreboard::repaired(const Sent& s, Time now) {
  Sent& mine = at(place_of(s));
  set(mine, mine.flags | kRepaired | kSentAgain);
  mine.at = now;
}

void Scoreboard::sent_again(const Sent& s, Time now) {
  Sent& mine = at(place_of(s));
  mine.flags |= kSentAgain;
  mine.at = now;
}

void Scoreboard::check_invariants() const {
  std::uint64_t pipe = 0;
  std::uint64_t bytes = 0;
  for (Place p = head_; p != tail_; ++p) {
    pipe += weight(at(p));
    bytes += at(p).length;
    const bool lost = (at(p).flags & kLost) != 0;
    CHECK_OP(lost, ==, (p < losses_end_));
  }
  CHECK_OP(pipe, ==, pipe_);
  CHECK_OP(bytes, ==, outstanding_);
}

}  // namespace weft::sim::tcp
