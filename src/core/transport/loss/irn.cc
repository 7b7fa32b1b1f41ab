// IRN's selective retransmission (IRN §3.1), and the two weaker ones that it is compared with (§4.3). They
// differ in what the sender makes of a NACK; the wire is the same.
//
// Recovery starts with a NACK or a time-out and ends when una passes `recovery`, the last packet sent
// before the first retransmission.
//
// Departures from the paper, each because a NIC must survive what a simulation need not:
//   * After a time-out the paper resends one packet and then waits for a NACK or the next time-out. A
//     lost tail of k packets would cost k time-outs. Here the newest packet follows when the oldest is
//     acknowledged: its NACK names what is missing. Nothing else goes again before an answer says so,
//     because the time-out may have been too short.
//   * A receiver that could not keep the trigger says so (kSackNotKept); then the trigger itself is
//     lost too, which turns an empty bitmap pool at the receiver into go-back-N.
//   * A sender without a bitmap block rewinds: go-back-N, counted.
#include "core/transport/loss/selective.h"

namespace weft {

const LossScheme kIrn{"irn",
                      "keep what is out of order, resend what is missing (IRN)",
                      wire::Mode::kIrn,
                      selective::on_ack,
                      selective::on_nack,
                      selective::on_timeout,
                      selective::next_lost,
                      selective::skip_received,
                      selective::classify,
                      selective::hold};

namespace {

// --- without SACK: the sender keeps no bitmap, and resends the first packet missing, hole by hole ---
//
// A NACK names one hole only, so after a time-out all is presumed lost, at two packets per acknowledged one.

void begin(LossContext& c, SendStream& s) {
  c.counters.add(Counter::recoveries);
  s.recovery = SendStream::low(s.max - 1);
  s.repair = Repair::kSelective;
  s.rtx = SendStream::low(s.una);
  s.lost = SendStream::low(s.una + 1);
}

void no_sack_on_ack(LossContext&, SendStream& s, std::uint64_t acked) {
  if (!s.recovering()) return;
  if (s.una > s.widen(s.recovery)) {
    s.end_repair();
    return;
  }
  selective::advance(s, acked);
  if (!s.after_timeout()) s.lost = SendStream::low(s.una + 1);  // the next hole begins here
}

void no_sack_on_nack(LossContext& c, SendStream& s, const Nack& n) {
  if (n.trigger < s.una || n.trigger >= s.max || s.recovering()) return;
  begin(c, s);
}

void no_sack_on_timeout(LossContext& c, SendStream& s) {
  begin(c, s);
  s.cause = Cause::kTimeout;
}

// --- go-back-N over irn's wire: the receiver keeps nothing, and names each packet that it throws away ---
//
// Of those NACKs the first counts. As with irn, a packet that is lost again is found by time-out.

void go_back_on_nack(LossContext& c, SendStream& s, const Nack& n) {
  if (n.trigger < s.una || n.trigger >= s.max || s.rewound()) return;
  s.cause = Cause::kNack;
  selective::rewind(c, s);
}

void go_back_on_ack(LossContext&, SendStream& s, std::uint64_t) {
  // What was resent first has arrived: whatever is missing now is another gap.
  s.repair = Repair::kNone;
  if (s.una > s.widen(s.recovery)) s.cause = Cause::kNack;
}

void go_back_on_timeout(LossContext& c, SendStream& s) {
  selective::rewind(c, s);
  s.cause = Cause::kTimeout;
}

bool nothing_lost(LossContext&, SendStream&, Seq&) { return false; }

Seq skip_nothing(LossContext&, const SendStream&, Seq from) { return from; }

Arrival keep_nothing(LossContext& c, RecvStream& r, Seq seq) {
  if (seq < r.expected) return Arrival::kDuplicate;
  return seq - r.expected >= c.pool.window() ? Arrival::kBeyond : Arrival::kDecline;
}

void hold_nothing(LossContext&, RecvStream&, Seq, bool) { CHECK(false); }

}  // namespace

const LossScheme kIrnWithoutSack{
    "irn-no-sack",        "irn, but the sender resends one hole at a time (IRN §4.3)",
    wire::Mode::kIrn,     no_sack_on_ack,
    no_sack_on_nack,      no_sack_on_timeout,
    selective::next_lost, skip_nothing,
    selective::classify,  selective::hold};

const LossScheme kIrnGoBackN{"irn-go-back-n",  "irn's timers and windows, but go-back-N (IRN §4.3)",
                             wire::Mode::kIrn, go_back_on_ack,
                             go_back_on_nack,  go_back_on_timeout,
                             nothing_lost,     skip_nothing,
                             keep_nothing,     hold_nothing};

}  // namespace weft
