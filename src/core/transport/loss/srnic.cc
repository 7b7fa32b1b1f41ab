// SRNIC's memory-free selective repeat (SRNIC §4.4). What a queue pair keeps is the expected number and the
// last one acknowledged; bitmaps come from the shared pool while packets are missing ("onloading"), there is
// no reordering buffer (packets name their place) and no table of outstanding requests (the send queue is
// it). The sender's recovery ends when all that it resent is acknowledged, and the receiver's when the
// expected number reaches the run of packets that came last (fast_exit.h).
//
// `recovery` is the highest packet that was resent or is about to be.
#include "core/transport/loss/selective.h"

namespace weft {
namespace {

void note_retries(SendStream& s) {
  if (s.recovering() && s.cause == Cause::kNack) s.recovery = s.lost - 1;
}

void on_ack(LossContext& c, SendStream& s, std::uint64_t acked) {
  selective::on_ack(c, s, acked);
  note_retries(s);
}

void on_nack(LossContext& c, SendStream& s, const Nack& n) {
  selective::on_nack(c, s, n);
  note_retries(s);
}

}  // namespace

const LossScheme kSrnic{"srnic",
                        "selective repeat with an echo of every packet and cold bitmaps (SRNIC)",
                        wire::Mode::kSrnic,
                        on_ack,
                        on_nack,
                        selective::on_timeout,
                        selective::next_lost,
                        selective::skip_received,
                        selective::classify,
                        selective::hold};

}  // namespace weft
