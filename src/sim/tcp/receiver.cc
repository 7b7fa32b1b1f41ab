#include "sim/tcp/receiver.h"

#include <algorithm>

namespace weft::sim::tcp {

ReceiverCounters& ReceiverCounters::operator+=(const ReceiverCounters& o) {
  segments += o.segments;
  duplicates += o.duplicates;
  out_of_order += o.out_of_order;
  acks += o.acks;
  return *this;
}

Receiver::Delivered Receiver::on_data(const Segment& s, Time now) {
  ++counters_.segments;
  const std::uint64_t end = s.seq + s.length;
  const std::uint64_t before = next_;
  const bool gaps = !beyond_.empty();
  if (s.seq > next_) {
    ++counters_.out_of_order;
    keep(s.seq, end);
  } else if (end > next_) {
    next_ = end;
    auto last = beyond_.begin();
    while (last != beyond_.end() && last->first <= next_) next_ = std::max(next_, (last++)->end);
    beyond_.erase(beyond_.begin(), last);
  } else {
    ++counters_.duplicates;
  }
  ++unacknowledged_;
  const bool plain = next_ != before && !gaps;
  if (!plain || config_.delayed_ack.ps == 0 || unacknowledged_ >= 2) {
    due_ = now;
  } else {
    due_ = std::min(due_, now.after(config_.delayed_ack));
  }
  return {before, next_};
}

void Receiver::keep(std::uint64_t first, std::uint64_t end) {
  auto at = std::lower_bound(beyond_.begin(), beyond_.end(), first,
                             [](const Stretch& b, std::uint64_t seq) { return b.end < seq; });
  if (at != beyond_.end() && at->first <= first && end <= at->end) {
    ++counters_.duplicates;
    at->touched = counters_.segments;
    return;
  }
  auto last = at;
  while (last != beyond_.end() && last->first <= end) {
    first = std::min(first, last->first);
    end = std::max(end, last->end);
    ++last;
  }
  if (at == last) {
    beyond_.insert(at, {first, end, counters_.segments});
  } else {
    *at = {first, end, counters_.segments};
    beyond_.erase(at + 1, last);
  }
}

void Receiver::acknowledge(Segment& out) {
  out.ack = next_;
  out.acknowledgment = true;
  out.block_count = 0;
  unacknowledged_ = 0;
  due_ = kNever;
  ++counters_.acks;
  if (config_.flavour != Flavour::kSack) return;
  // Those touched last; no two at the same time.
  std::uint64_t before = UINT64_MAX;
  while (out.block_count < Segment::kBlocks) {
    const Stretch* latest = nullptr;
    for (const Stretch& b : beyond_) {
      if (b.touched < before && (latest == nullptr || b.touched > latest->touched)) latest = &b;
    }
    if (latest == nullptr) return;
    before = latest->touched;
    out.blocks[out.block_count++] = {static_cast<std::uint32_t>(latest->first - next_),
                                     static_cast<std::uint32_t>(latest->end - next_)};
  }
}

}  // namespace weft::sim::tcp
