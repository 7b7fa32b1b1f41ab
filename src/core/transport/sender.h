// The sending end of a half-connection: our requests, or the answers to READs of a peer in a dialect that
// numbers them (docs/ARCHITECTURE.md, "The halves of a queue pair"). It owns what is in flight, its recovery,
// the round trip that is being timed, the clock of its time-out, and its path credit. What its packets carry
// is its caller's business, and so is what an acknowledgement completes.
//
//   next    repair(), then what its caller has at nxt            -> left()
//   answer  acknowledge(), nack()                                -> how long the round trip took, if that is
//   known silence strike()
//
// `Sender` is what every packet touches, `SenderAccount` what comes beside it in the cold part of a queue
// pair. `Sending` joins them with what they work with, for one call. Nothing here knows a queue pair or an
// Engine.
#pragma once
#include <cstdint>

#include "core/transport/config.h"
#include "core/transport/loss/scheme.h"
#include "core/transport/round_trip.h"
#include "core/transport/sched/paths.h"
#include "core/transport/stream.h"

namespace weft {

struct Sender : SendStream {
  Time timer{};     // its time-out runs from here
  Time progress{};  // last time una moved, or sending began after idleness
};
static_assert(sizeof(Sender) == 56);

struct SenderAccount {
  std::uint64_t sent = 0;     // path bytes of packets that left
  std::uint64_t settled = 0;  // of those, acknowledged, or given up at a time-out
  Seq timed{};                // this packet's acknowledgement will tell a round trip
  Time timed_at = kNever;     // when it left; kNever: none is being timed
};

// A packet that leaves.
struct Departure {
  Seq seq{};
  std::uint32_t numbers = 1;  // sequence numbers that it takes
  std::uint64_t cost = 0;     // path bytes
  bool repair = false;        // what repair() named
  bool timed = true;          // its acknowledgement tells a round trip
};

class Sending {
 public:
  Sender& s;
  SenderAccount& account;
  const LossScheme& scheme;
  LossContext loss;
  Path& path;
  RoundTrip& round_trip;

  // A packet that is sent again before whatever stands at nxt.
  bool repair(Seq& seq) { return (s.flags & kInRecovery) != 0 && scheme.next_lost(loss, s, seq, false); }
  // What leaves next was sent before: a repair, or a rewound packet that the receiver is not known to have.
  bool again() {
    Seq seq;
    return repair(seq) || (s.nxt < s.max && scheme.skip_received(loss, s, s.nxt) < s.max);
  }
  // Sending begins after everything was acknowledged.
  void begin(Time now) {
    s.timer = now;
    s.backoff = 0;
  }
  void left(const Departure& d, Time now) {
    const bool fresh = d.seq == s.max;
    // What is sent twice tells no time (Karn's rule): nobody knows which copy is answered.
    if (!fresh && d.seq == account.timed) account.timed_at = kNever;
    if (d.repair) {
      Seq taken;
      scheme.next_lost(loss, s, taken, true);
    } else {
      s.nxt += d.numbers;
      if (s.nxt > s.max) s.max = s.nxt;
      if (fresh) {
        path.in_flight += d.cost;
        account.sent += d.cost;
        if (d.timed && account.timed_at == kNever) {
          account.timed = d.seq;
          account.timed_at = now;
        }
      } else if ((s.flags & kInRecovery) != 0 && s.widen(s.rtx) < s.nxt) {
        s.rtx = SendStream::low(s.nxt);  // going over what was refused repairs what was lost of it, too
      }
    }
    loss.counters.add(Counter::tx_packets);
    if (!fresh) count_again();
  }
  void count_again() {
    loss.counters.add(Counter::tx_retransmitted);
    if ((s.flags & kTimeoutRecovery) != 0) loss.counters.add(Counter::tx_after_timeout);
  }
  // Everything before `to` has arrived, as an acknowledgement says. Zero: it tells no time.
  Duration acknowledge(Seq to, Time now) {
    s.timer = s.progress = now;
    const Duration rtt = account.timed_at != kNever && to > account.timed ? sample(to, now) : Duration{};
    pass(to);
    return rtt;
  }
  // The same, as something implies that tells neither time nor progress.
  void pass(Seq to) {
    const std::uint64_t acked = to - s.una;
    s.una = to;
    s.backoff = 0;
    if (s.nxt < to) s.nxt = to;
    if ((s.flags | (s.block ^ kNoBlock)) != 0) scheme.on_ack(loss, s, acked);
  }
  // `to` was acknowledged, but only by something that implies it: what follows may have been SACKed before.
  // Nothing would be left to send of it, and its cumulative ACK is lost.
  Seq past_sacked(Seq to) { return s.block == kNoBlock ? to : scheme.skip_received(loss, s, to); }
  // A NACK; `names`: its trigger is a packet that arrived ahead of what is missing.
  Duration nack(const Nack& n, bool names, Time now);
  // The path bytes up to here are on their way no longer.
  void settle(std::uint64_t upto) {
    if (upto <= account.settled) return;  // the credit went back at a time-out
    path.discharge(upto - account.settled);
    account.settled = upto;
  }
  // What went unanswered may be for a peer that is gone: other queue pairs of the path get its credit.
  // Sending it again takes none.
  void give_credit_back() { settle(account.sent); }
  // Its time-out has struck. Whether anything is sent again is decided by its caller: resend().
  void strike(bool low, Time now);
  void resend() { scheme.on_timeout(loss, s); }

 private:
  Duration sample(Seq to, Time now);
};

}  // namespace weft
