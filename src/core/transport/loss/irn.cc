// IRN's selective retransmission (IRN §3.1). The receiver keeps what is out of order and answers each
// such packet with a NACK (expected number, trigger). The sender collects triggers in a bitmap:
//
//      una                 lost           max
//       |  x x o o x o o     o             |        o = SACKed   x = lost: below `lost`, not SACKed
//       |      ^ rtx                       |
//
// Recovery starts with a NACK or a time-out and ends when una passes `recovery`, the last packet sent
// before the first retransmission. Within one recovery no packet is resent twice (`rtx` only moves
// forward); a retransmission that is lost again is found by time-out.
//
// Departures from the paper, each because a NIC must survive what a simulation need not:
//   * After a time-out the paper resends one packet and then waits for a NACK or the next time-out. A
//     lost tail of k packets would cost k time-outs. Here everything sent before the time-out is
//     presumed lost, but released at two packets per acknowledged one, the pace of a slow start.
//   * A receiver that could not keep the trigger says so (kSackNotKept); then the trigger itself is
//     lost too, which turns an empty bitmap pool at the receiver into go-back-N.
//   * A sender without a bitmap block rewinds: go-back-N, counted.
#include <algorithm>

#include "core/transport/loss/scheme.h"

namespace weft {
namespace {

bool enter(LossContext& c, SendStream& s) {
  if (s.block == kNoBlock) s.block = c.pool.take();
  c.counters.add(Counter::recoveries);
  s.recovery = SendStream::low(s.max - 1);
  if (s.block == kNoBlock) {
    c.counters.add(Counter::fallback_go_back_n);
    s.nxt = s.una;
    s.flags |= kRewound;
    return false;
  }
  s.flags |= kInRecovery;
  s.rtx = SendStream::low(s.una);
  s.lost = SendStream::low(s.una + 1);
  return true;
}

void leave(LossContext& c, SendStream& s) {
  s.flags &= static_cast<std::uint8_t>(~(kInRecovery | kTimeoutRecovery | kRewound));
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

void on_ack(LossContext& c, SendStream& s, std::uint64_t acked) {
  if (s.block != kNoBlock) c.pool.clear_range(s.block, s.una - acked, s.una);
  if ((s.flags & (kInRecovery | kRewound)) == 0) return;
  if (s.una > s.widen(s.recovery)) {
    leave(c, s);
    return;
  }
  if (s.widen(s.rtx) < s.una) s.rtx = SendStream::low(s.una);
  if ((s.flags & kTimeoutRecovery) != 0) {
    const Seq grown = std::min(std::max(s.widen(s.lost), s.una) + 2 * acked, s.widen(s.recovery) + 1);
    if (grown > s.widen(s.lost)) s.lost = SendStream::low(grown);
  } else if (s.widen(s.lost) <= s.una) {
    s.lost = SendStream::low(s.una);
  }
}

void on_nack(LossContext& c, SendStream& s, Seq trigger, bool kept) {
  if (trigger < s.una || trigger >= s.max || trigger - s.una >= c.pool.window()) return;
  if ((s.flags & kInRecovery) == 0) {
    if ((s.flags & kRewound) != 0) return;  // resending everything already
    if (!enter(c, s)) return;
  }
  if (kept) c.pool.set(s.block, trigger, false);
  const Seq bound = kept ? trigger : trigger + 1;
  if (bound > s.widen(s.lost)) s.lost = SendStream::low(bound);
}

void on_timeout(LossContext& c, SendStream& s) {
  if ((s.flags & kInRecovery) == 0) {
    if (!enter(c, s)) return;
  } else {
    s.recovery = SendStream::low(s.max - 1);
  }
  s.flags |= kTimeoutRecovery;
  s.rtx = SendStream::low(s.una);
  const Seq top = c.pool.top(s.block);
  s.lost = SendStream::low(std::max(top, s.una + 1));
}

bool next_lost(LossContext& c, SendStream& s, Seq& out, bool take) {
  if ((s.flags & kInRecovery) == 0) return false;
  const Seq bound = std::min(s.widen(s.lost), s.nxt);
  const Seq from = std::max(s.widen(s.rtx), s.una);
  const Seq found = c.pool.first_clear(s.block, from, bound);
  if (found >= bound) {
    if (bound > from) s.rtx = SendStream::low(bound);
    return false;
  }
  out = found;
  if (take) s.rtx = SendStream::low(found + 1);
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
  ++r.held;
}

}  // namespace

const LossScheme kIrn{"irn",
                      "keep what is out of order, resend what is missing (IRN)",
                      wire::Mode::kIrn,
                      true,
                      on_ack,
                      on_nack,
                      on_timeout,
                      next_lost,
                      skip_received,
                      classify,
                      hold};

}  // namespace weft
