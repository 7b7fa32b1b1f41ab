#include "core/transport/sender.h"

namespace weft {

Duration Waits::of_the_path(Duration configured) const {
  if (config.rto == Rto::kDynamic) configured = round_trip.measured() ? config.rto_low : config.rto_high;
  return std::max({configured, round_trip.timeout(), config.rto_floor});
}

Duration Waits::probe(unsigned probes) const {
  const Duration d = std::max(config.tail_probe, round_trip.timeout());
  const Duration longest = std::max(d, verbs());
  return std::min(std::max(d * (std::int64_t{1} << std::min(probes, 10U)), round_trip.least()), longest);
}

Duration Sending::sample(Seq to, std::uint64_t acked, Time now) {
  const Duration rtt = now - account.timed_at;
  account.timed_at = kNever;
  // While packets are missing, an ACK that jumps beyond the timed packet tells when a hole was filled.
  // The timed packet itself may have filled it.
  const bool filled = waits.unsure() && account.timed + acked == to;
  if (s.repair != Repair::kNone && to != account.timed + 1 && !filled && !guesses()) return {};
  waits.round_trip.sample(rtt);
  return rtt;
}

Duration Sending::nack(const Nack& n, bool names, Time now) {
  scheme.on_nack(loss, s, n);
  // What was kept is acknowledged, so a silence ends here, although the oldest packet is still missing.
  if (loss.adaptive && waits.own_timeouts && n.kept && s.backoff != 0) {
    waits.round_trip.hold(waits.retransmission(s));
    s.backoff = 0;
  }
  s.timer = now;
  s.probes = 0;
  const bool timed = names && account.timed_at != kNever && n.trigger == account.timed;
  return timed ? sample(n.trigger + 1, 1, now) : Duration{};
}

void Sending::strike(Time now) {
  const bool low = waits.own_timeouts && waits.few(s);
  loss.counters.add(low ? Counter::timeout_low : Counter::timeout_high);
  // What went unanswered twice is on its way no longer. A silence shrinks the path once: what follows says
  // the same again. A guess says nothing.
  if (s.backoff > 0) give_credit_back();
  if (s.backoff == 0 && !guesses()) path.shrink();
  if (!guesses()) account.timed_at = kNever;
  if (s.backoff < 10) ++s.backoff;
  s.probes = 0;
  s.timer = now;
}

void Sending::resend() { scheme.on_timeout(loss, s); }

void Sending::ask(Time now) {
  s.probe = Probe::kDue;
  silence.probed_at = now;
  if (s.probes < kMostProbes) ++s.probes;
}

void Sending::probed(Time now) {
  s.probe = Probe::kOut;
  s.rtx = SendStream::low(s.una);
  s.lost = SendStream::low(s.nxt);
  silence.probed_at = now;
  loss.counters.add(Counter::tx_probes);
}

}  // namespace weft
