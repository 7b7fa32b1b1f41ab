// Go-back-N, as RoCEv2 has it (docs/protocol/reliable.md#negative-acknowledgements): the receiver discards
// whatever is ahead of the expected number and says so once; the sender starts again from there. No state
// beyond the stream, which is why hardware chose it, and why one loss costs a window.
#include "core/transport/loss/scheme.h"

namespace weft {
namespace {

void on_ack(LossContext&, SendStream& s, std::uint64_t) {
  if (s.una > s.widen(s.recovery)) s.cause = Cause::kNack;
  // The rewound part is over once something new of it was acknowledged.
  s.repair = Repair::kNone;
  s.probe = Probe::kNone;
}

void rewind(LossContext& c, SendStream& s) {
  s.nxt = s.una;
  s.repair = Repair::kRewound;
  s.probe = Probe::kNone;
  c.counters.add(Counter::recoveries);
}

void on_nack(LossContext& c, SendStream& s, const Nack&) {
  if (s.rewound() && s.nxt == s.una) return;  // already about to resend exactly this
  s.cause = Cause::kNack;
  rewind(c, s);
}

void on_timeout(LossContext& c, SendStream& s) {
  rewind(c, s);
  s.recovery = SendStream::low(s.max - 1);
  s.cause = Cause::kTimeout;
}

bool next_lost(LossContext&, SendStream&, Seq&) { return false; }

Seq skip_received(LossContext&, const SendStream&, Seq from) { return from; }

Arrival classify(LossContext&, RecvStream& r, Seq seq) {
  return seq < r.expected ? Arrival::kDuplicate : Arrival::kDrop;
}

void hold(LossContext&, RecvStream&, Seq, bool) { CHECK(false); }

}  // namespace

const LossScheme kGoBackN{"go-back-n",       "discard what is out of order, resend from the gap (RoCEv2)",
                          wire::Mode::kRoce, on_ack,
                          on_nack,           on_timeout,
                          next_lost,         skip_received,
                          classify,          hold};

}  // namespace weft
