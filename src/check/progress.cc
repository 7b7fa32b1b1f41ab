#include "check/progress.h"

#include <algorithm>

namespace weft::check {

void Progress::connected(const QpFacts& facts) {
  if (facts.timeout == 0) return;
  const std::int64_t charges = facts.retry_count + 1;
  patience_ = std::max(patience_, verbs_timeout(facts.timeout) * charges + facts.peer_rnr_delay);
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
