#include "core/transport/sender.h"

namespace weft {

Duration Sending::sample(Seq to, Time now) {
  const Duration rtt = now - account.timed_at;
  account.timed_at = kNever;
  // While packets are missing, an ACK that jumps beyond the timed packet tells when a hole was filled.
  if ((s.flags & (kInRecovery | kRewound)) != 0 && to != account.timed + 1) return {};
  round_trip.sample(rtt);
  return rtt;
}

Duration Sending::nack(const Nack& n, bool names, Time now) {
  scheme.on_nack(loss, s, n);
  s.timer = now;
  const bool timed = names && account.timed_at != kNever && n.trigger == account.timed;
  return timed ? sample(n.trigger + 1, now) : Duration{};
}

void Sending::strike(bool low, Time now) {
  loss.counters.add(low ? Counter::timeout_low : Counter::timeout_high);
  // What went unanswered twice is on its way no longer.
  if (s.backoff > 0) give_credit_back();
  path.shrink();
  account.timed_at = kNever;
  if (s.backoff < 10) ++s.backoff;
  s.timer = now;
}

}  // namespace weft
