#include "check/progress.h"

#include <algorithm>

namespace weft::check {

namespace {
// Turns that a queue pair may wait for its rate while nothing else happens: requests and responses take
// turns, and between two charges there are at most a few retransmissions of the oldest packet (each doubles
// the time to the next).
constexpr std::int64_t kTurns = 64;
}  // namespace

void Progress::connected(const QpFacts& facts) {
  held_ += facts.credit_hold;
  const Duration turns = facts.slowest_turn * kTurns;
  patience_ = std::max(patience_, facts.answers_kept + turns);
  if (verbs_timeout(facts) == kForever) return;
  const std::int64_t charges = facts.retry_count + 1;
  patience_ = std::max(patience_, verbs_timeout(facts) * charges + facts.peer_rnr_delay + turns);
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
