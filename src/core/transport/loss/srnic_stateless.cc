// SRNIC with a requester that keeps no bitmap (SRNIC §4.4.2, the option at the end of its "requester side"):
// the responder names what is missing (hole.h), and that is resent, once. The responder is srnic's own.
//
//      una          rtx        lost                nxt
//       |   resent   |  named   |   not named yet   |
//
// What stays is numbers that every send stream has: where the retry queue begins and ends. Several holes
// named while one is still being resent become one range, with what arrived between them. Recovery ends when
// all that was resent is acknowledged, as srnic's.
//
// The paper leaves time-outs open, of which a requester without a bitmap learns nothing: what was sent before
// is presumed lost, at two packets per acknowledged one, and what the receiver has is sent again.
#include <algorithm>

#include "core/transport/loss/selective.h"

namespace weft {
namespace {

void on_ack(LossContext&, SendStream& s, std::uint64_t acked) {
  if (!s.recovering()) return;
  if (s.una > s.widen(s.recovery)) {
    s.end_repair();
  } else {
    selective::advance(s, acked);
  }
}

void on_nack(LossContext& c, SendStream& s, const Nack& n) {
  if (n.trigger < s.una || n.trigger >= s.max) return;
  const bool recovering = s.recovering();
  if (!recovering && c.nack_threshold == LossContext::kNoRecovery) return;
  // Who could not keep the trigger has no bitmap, and nothing above the first packet missing.
  const Seq to = n.kept ? n.trigger - n.hole.since : n.trigger + 1;
  const Seq named = n.kept ? to - n.hole.missing : s.una;
  const Seq from = std::max(named, recovering ? std::max(s.una, s.widen(s.lost)) : s.una);
  if (from >= to) return;
  if (!recovering) {
    c.counters.add(Counter::recoveries);
    s.repair = Repair::kSelective;
    s.recovery = SendStream::low(s.una);
  }
  if (!recovering || s.widen(s.rtx) >= s.widen(s.lost)) s.rtx = SendStream::low(from);
  s.lost = SendStream::low(to);
  s.recovery = SendStream::low(std::max(s.widen(s.recovery), to - 1));
}

void on_timeout(LossContext& c, SendStream& s) {
  c.counters.add(Counter::recoveries);
  s.recovery = SendStream::low(s.max - 1);
  s.repair = Repair::kSelective;
  s.cause = Cause::kTimeout;
  s.rtx = SendStream::low(s.una);
  s.lost = SendStream::low(s.una + 1);
}

Seq skip_nothing(LossContext&, const SendStream&, Seq from) { return from; }

}  // namespace

const LossScheme kSrnicStateless{"srnic-stateless",
                                 "srnic, but the requester resends what the responder names (SRNIC §4.4.2)",
                                 wire::Mode::kSrnic,
                                 on_ack,
                                 on_nack,
                                 on_timeout,
                                 selective::next_lost,
                                 skip_nothing,
                                 selective::classify,
                                 selective::hold};

}  // namespace weft
