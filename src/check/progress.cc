#include "check/progress.h"

#include <algorithm>

namespace weft::check {

namespace {
// For how many turns a queue pair may wait for its rate while nothing else happens. Requests and responses
// take turns. Between two charged time-outs the oldest packet is retransmitted a few times at most, because
// each retransmission doubles the time to the next.
constexpr std::int64_t kTurns = 64;

// Time-outs that do not double expire more often, and each retransmission waits for the rate again.
Duration turns_within(const QpFacts& f, Duration patience) {
  const std::int64_t more =
      f.rto_backs_off || f.selective_rto.ps == 0 ? 0 : patience.ps / f.selective_rto.ps + 1;
  return f.slowest_turn * (kTurns + more);
}
}  // namespace

void Progress::connected(const QpFacts& facts) {
  held_ += facts.credit_hold;
  patience_ = std::max(patience_, facts.answers_kept + turns_within(facts, facts.answers_kept));
  if (verbs_timeout(facts) == kForever) return;
  // What a probe's answer makes go out again has a time-out of its own, uncharged.
  const bool probes = facts.mode == wire::Mode::kRoce && facts.probe.ps != 0;
  const std::int64_t timeouts = facts.retry_count + 1 + (probes ? 1 : 0);
  const Duration silence = verbs_timeout(facts) * timeouts + facts.peer_rnr_delay;
  patience_ = std::max(patience_, silence + turns_within(facts, silence));
}

bool Progress::waiting(Time now) {
  const Duration gap = now - last_;
  longest_ = std::max(longest_, gap);
  if (gap <= bound()) return true;
  report_.add(now, "progress", "nothing happened for %lld us, the bound is %lld us",
              static_cast<long long>(gap.us()), static_cast<long long>(bound().us()));
  last_ = now;
  return false;
}

}  // namespace weft::check
