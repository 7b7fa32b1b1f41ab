#include "core/transport/loss/selective.h"

#include <algorithm>

namespace weft::selective {

void rewind(LossContext& c, SendStream& s) {
  c.counters.add(Counter::recoveries);
  s.recovery = SendStream::low(s.max - 1);
  s.nxt = s.una;
  s.repair = Repair::kRewound;
}

bool enter(LossContext& c, SendStream& s) {
  if (s.block == kNoBlock) s.block = c.pool.take();
  if (s.block == kNoBlock) {
    c.counters.add(Counter::fallback_go_back_n);
    rewind(c, s);
    return false;
  }
  c.counters.add(Counter::recoveries);
  s.recovery = SendStream::low(s.max - 1);
  s.repair = Repair::kSelective;
  s.rtx = SendStream::low(s.una);
  s.lost = SendStream::low(s.una + 1);
  return true;
}

void leave(LossContext& c, SendStream& s) {
  s.end_repair();
  if (s.block == kNoBlock) return;
  const Seq top = c.pool.top(s.block);
  if (top >= s.una) {
    // Packets sent during this recovery are already SACKed above a hole: the next recovery begins.
    enter(c, s);
    s.lost = SendStream::low(top);
    return;
  }
  release_block(c.pool, s.block);
}

void advance(SendStream& s, std::uint64_t acked) {
  if (s.widen(s.rtx) < s.una) s.rtx = SendStream::low(s.una);
  if (s.after_timeout()) {
    const Seq grown = std::min(std::max(s.widen(s.lost), s.una) + 2 * acked, s.widen(s.recovery) + 1);
    if (grown > s.widen(s.lost)) s.lost = SendStream::low(grown);
  } else if (s.widen(s.lost) <= s.una) {
    s.lost = SendStream::low(s.una);
  }
}

namespace {
// After a time-out: the ACK covers packets that were neither resent nor SACKed, so the first copies arrive,
// and the time-out was too short (RFC 5682, F-RTO).
bool originals_arrive(const LossContext& c, const SendStream& s, std::uint64_t acked) {
  if (!c.adaptive || !s.after_timeout() || s.block == kNoBlock) return false;
  // Only the newest went again since the step before, and the recovery ends with it anyway.
  const Seq resent = s.cause == Cause::kAsked ? s.una - acked : s.widen(s.rtx);
  const Seq from = std::max(resent, s.una - acked);
  return from < s.una && c.pool.first_clear(s.block, from, s.una) < s.una;
}

// After a time-out: all that was presumed lost has arrived, first copies or second. The newest packet goes
// again. Its answer names what is missing; if nothing is, the answers to the others come before it.
void ask_with_the_newest(SendStream& s) {
  s.cause = Cause::kAsked;
  s.rtx = s.recovery;
  s.lost = s.recovery + 1;
}
}  // namespace

void on_ack(LossContext& c, SendStream& s, std::uint64_t acked) {
  const bool needless = originals_arrive(c, s, acked);
  if (s.block != kNoBlock) c.pool.clear_range(s.block, s.una - acked, s.una);
  if (s.repair == Repair::kNone) {
    // NACKs had been counted, but fewer than it takes; progress says that it was mere reordering.
    s.rtx = 0;
    if (s.block != kNoBlock && c.pool.top(s.block) < s.una) release_block(c.pool, s.block);
    return;
  }
  if (needless) c.counters.add(Counter::timeout_spurious);
  if (needless || s.una > s.widen(s.recovery)) {
    leave(c, s);
    return;
  }
  if (s.widen(s.rtx) < s.una) s.rtx = SendStream::low(s.una);
  if (s.widen(s.lost) > s.una) return;
  s.lost = SendStream::low(s.una);
  if (s.cause == Cause::kTimeout) ask_with_the_newest(s);
}

void on_nack(LossContext& c, SendStream& s, const Nack& n) {
  const auto [trigger, kept, hole] = n;
  if (trigger < s.una || trigger >= s.max || trigger - s.una >= c.pool.window()) return;
  if (!s.recovering()) {
    if (s.rewound()) return;  // resending everything already
    if (c.nack_threshold > 1) {
      // `rtx` means nothing outside recovery: it counts.
      if (s.block == kNoBlock) s.rtx = 0;
      if (s.block == kNoBlock) s.block = c.pool.take();
      if (s.block != kNoBlock && ++s.rtx < c.nack_threshold) {
        if (kept) c.pool.set(s.block, trigger, false);
        return;
      }
    }
    if (!enter(c, s)) return;
  }
  if (s.cause == Cause::kAsked) {
    s.cause = Cause::kTimeout;
    s.rtx = s.lost = SendStream::low(s.una);
  }
  if (kept) c.pool.set(s.block, trigger, false);
  const Seq bound = std::max(kept ? trigger : trigger + 1, std::min(c.pool.top(s.block), s.max));
  if (bound > s.widen(s.lost)) s.lost = SendStream::low(bound);
}

void on_timeout(LossContext& c, SendStream& s) {
  if (!s.recovering()) {
    if (!enter(c, s)) return;
  } else {
    s.recovery = SendStream::low(s.max - 1);
  }
  s.cause = Cause::kTimeout;
  s.rtx = SendStream::low(s.una);
  const Seq top = c.pool.top(s.block);
  s.lost = SendStream::low(std::max(top, s.una + 1));
}

bool next_lost(LossContext& c, SendStream& s, Seq& out) {
  if (!s.recovering()) return false;
  const Seq bound = std::min(s.widen(s.lost), s.nxt);
  const Seq from = std::max(s.widen(s.rtx), s.una);
  const Seq found = s.block == kNoBlock ? from : c.pool.first_clear(s.block, from, bound);
  if (found >= bound) {
    if (bound > from) s.rtx = SendStream::low(bound);
    return false;
  }
  out = found;
  return true;
}

Seq skip_received(LossContext& c, const SendStream& s, Seq from) {
  if (s.block == kNoBlock || from >= s.max) return from;
  return c.pool.first_clear(s.block, from, s.max);
}

Arrival classify(LossContext& c, RecvStream& r, Seq seq) {
  if (seq < r.expected) return Arrival::kDuplicate;
  if (seq - r.expected >= c.pool.window()) return Arrival::kBeyond;
  if (r.block == kNoBlock) {
    r.block = c.pool.take();
    if (r.block == kNoBlock) return Arrival::kPoolEmpty;
  }
  return c.pool.arrived(r.block, seq) ? Arrival::kDuplicate : Arrival::kKeep;
}

void hold(LossContext& c, RecvStream& r, Seq seq, bool message_end) {
  c.pool.set(r.block, seq, message_end);
  c.pool.run(r.block).observe(seq, message_end);
  ++r.held;
}

}  // namespace weft::selective
