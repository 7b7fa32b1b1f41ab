// The sending end of a half-connection: our requests, or the answers to READs of a peer in a dialect that
// numbers them (docs/ARCHITECTURE.md, "The halves of a queue pair"). It owns what is in flight, its recovery,
// the round trip that is being timed, its time-outs, and its path credit. What its packets carry is its
// caller's business, and so is what an acknowledgement completes.
//
//   next      next_repair(), then what its caller has at nxt    -> left()
//   answer    acknowledge(), nack()                        -> how long the round trip took, if that is known
//   silence   waits.strikes(), waits.probes()              -> strike(), or ask() before that
//
// `Sender` is what every packet touches; `SenderAccount` and `SenderSilence` lie in the cold part of a queue
// pair. `Sending` joins them with what they work with, for one call. Nothing here knows a queue pair or an
// Engine.
#pragma once
#include <algorithm>
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

  // roce: an ACK of everything before `to` covers the probed packet and nothing more, and nothing left behind
  // the probe that could tell.
  bool probe_taken_alone(Seq to) const {
    return probe == Probe::kOut && to == widen(rtx) + 1 && nxt == widen(lost) && to < nxt;
  }
  // roce: the probe was taken alone, and the silence after it says that no more ACKs were on their way.
  bool confirmed_alone() const { return probe == Probe::kAlone && nxt == widen(lost); }
};
static_assert(sizeof(Sender) == 56);

struct SenderAccount {
  std::uint64_t sent = 0;     // path bytes of packets that left
  std::uint64_t settled = 0;  // of those, acknowledged, or given up at a time-out
  Seq timed{};                // this packet's acknowledgement will tell a round trip
  Time timed_at = kNever;     // when it left; kNever: none is being timed
};

// What only time-outs look at.
struct SenderSilence {
  Time probed_at{};        // roce: the last probe left
  Time forgiven = kNever;  // what `timer` was put to when a stall of the world was forgiven (rc/timers.cc)
};

// How long a sender waits for an answer: the verbs time-out that a program chose, and what the path takes.
class Waits {
 public:
  const DeviceConfig& config;
  RoundTrip& round_trip;
  std::uint8_t verbs_code = 0;
  bool own_timeouts = false;  // the dialect's

  Duration verbs() const {
    if (config.roce_timeout.ps != 0 && !own_timeouts) return config.roce_timeout;
    if (verbs_code == 0) return kForever;
    return nanoseconds(4096) * (std::int64_t{1} << std::min<unsigned>(verbs_code, 31));
  }
  // `few`: so few packets are in flight that none of them may tell of a loss (IRN §3.1).
  Duration retransmission(bool few, unsigned backoff) const {
    Duration d = few ? config.rto_low : config.rto_high;
    if (config.rto != Rto::kStatic) d = of_the_path(d);
    if (d == kForever || !config.rto_backs_off) return d;
    const Duration doubled = d * (std::int64_t{1} << std::min(backoff, 10U));
    if (config.rto != Rto::kFloored) return doubled;
    // Each retry that verbs counts was one.
    return std::min(std::max(doubled, round_trip.least()), std::max(d, verbs()));
  }
  Duration retransmission(const Sender& s) const { return retransmission(few(s), s.backoff); }
  Duration probe(unsigned probes) const;  // roce
  // Until something was timed the time-out is a guess. Then even an answer that came after it tells a time:
  // no round trip is longer than since the first copy left.
  bool guesses() const { return config.rto == Rto::kFloored && !round_trip.measured(); }
  // A silence has raised the time-outs, or nothing was timed yet: the next measurement is wanted.
  bool unsure() const { return round_trip.held() || guesses(); }
  bool few(const SendStream& s) const { return s.in_flight() <= config.rto_low_packets; }

  // With something in flight: when the time-out strikes.
  Time strikes(const Sender& s) const { return s.timer.after(own_timeouts ? retransmission(s) : verbs()); }
  // roce: when to ask for an ACK before that.
  Time probes(const Sender& s, const SenderSilence& silence) const {
    if (own_timeouts || config.tail_probe.ps == 0 || s.una == s.nxt) return kNever;
    if (!round_trip.measured() && !guesses()) return kNever;
    return (s.probes == 0 ? s.timer : std::max(s.timer, silence.probed_at)).after(probe(s.probes));
  }

 private:
  Duration of_the_path(Duration configured) const;
};

// Where a packet that leaves comes from.
enum class Origin : std::uint8_t {
  kNext,    // what stands at nxt
  kRepair,  // next_repair() named it
  kProbe,   // the oldest packet once more, to ask for an ACK
};

// A packet that leaves.
struct Departure {
  Seq seq{};
  std::uint32_t numbers = 1;  // sequence numbers that it takes
  std::uint64_t cost = 0;     // path bytes
  Origin origin = Origin::kNext;
  bool timed = true;  // its acknowledgement tells a round trip
};

class Sending {
 public:
  Sender& s;
  SenderAccount& account;
  SenderSilence& silence;
  const LossScheme& scheme;
  LossContext loss;
  Path& path;
  Waits waits;

  bool guesses() const { return waits.guesses(); }
  // A packet that is sent again before whatever stands at nxt.
  bool next_repair(Seq& seq) { return s.recovering() && scheme.next_lost(loss, s, seq); }
  // What leaves next was sent before: a repair, or a rewound packet that the receiver is not known to have.
  bool again() {
    Seq seq;
    return next_repair(seq) || (s.nxt < s.max && scheme.skip_received(loss, s, s.nxt) < s.max);
  }
  // Sending begins after everything was acknowledged.
  void begin(Time now) {
    s.timer = now;
    s.backoff = 0;
  }
  void left(const Departure& d, Time now) {
    const bool fresh = d.seq == s.max;
    if (d.origin == Origin::kNext) {
      s.nxt += d.numbers;
      if (s.nxt > s.max) s.max = s.nxt;
    } else if (d.origin == Origin::kRepair) {
      s.resent(d.seq);
    } else {
      probed(now);
    }
    if (fresh) {
      path.in_flight += d.cost;
      account.sent += d.cost;
      if (d.timed && account.timed_at == kNever) {
        account.timed = d.seq;
        account.timed_at = now;
      }
    } else {
      // What is sent twice tells no time (Karn's rule): nobody knows which copy is answered.
      if (d.seq == account.timed && !guesses()) account.timed_at = kNever;
      // Going over what was refused repairs what was lost of it, too.
      if (d.origin == Origin::kNext && s.recovering() && s.widen(s.rtx) < s.nxt)
        s.rtx = SendStream::low(s.nxt);
      if (d.timed && retimes(d)) {
        account.timed = d.seq;
        account.timed_at = now;
      }
      count_again();
    }
    loss.counters.add(Counter::tx_packets);
  }
  // Something was acknowledged since the last silence. Copies that left before it are on their way no longer,
  // so the copy that leaves now tells a time.
  bool retimes(const Departure& d) const {
    return waits.unsure() && account.timed_at == kNever && d.origin != Origin::kProbe &&
           (s.backoff | s.probes) == 0;
  }
  void count_again() {
    loss.counters.add(Counter::tx_retransmitted);
    if (s.after_timeout()) loss.counters.add(Counter::tx_after_timeout);
  }
  // Everything before `to` has arrived, as an acknowledgement says. Zero: it tells no time.
  Duration acknowledge(Seq to, Time now) {
    // A silence may end with an answer that tells no time. The path takes no longer than the silence did.
    const Duration waited = silent() ? now - s.progress : Duration{};
    s.timer = s.progress = now;
    const std::uint64_t acked = to - s.una;
    s.una = to;
    const Duration rtt =
        account.timed_at != kNever && to > account.timed ? sample(to, acked, now) : Duration{};
    if (rtt.ps == 0 && waited.ps != 0) waits.round_trip.hold(waited + waited / 4);
    passed(acked);
    return rtt;
  }
  // The same, as something implies that tells neither time nor progress.
  void pass(Seq to) {
    const std::uint64_t acked = to - s.una;
    s.una = to;
    passed(acked);
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
  void strike(Time now);
  void resend();
  // roce: it is time to ask for an ACK.
  void ask(Time now);

 private:
  void passed(std::uint64_t acked) {
    const bool plain = s.plain();  // read before its neighbour is written: the load would wait for the store
    s.backoff = s.probes = 0;
    if (s.nxt < s.una) s.nxt = s.una;
    if (!plain) scheme.on_ack(loss, s, acked);
  }
  void probed(Time now);
  bool silent() const { return s.probes != 0 || (loss.adaptive && s.backoff != 0); }
  Duration sample(Seq to, std::uint64_t acked, Time now);
};

}  // namespace weft
