#include "check/progress.h"

#include <algorithm>

#include "core/base/check.h"

namespace weft::check {

Duration progress_bound(const ProgressFacts& facts) {
  CHECK_OP(facts.loss, <, 1'000'000U);
  // Fixed point with 10^6 for probabilities and 10^15 for their product.
  const std::uint64_t good = 1'000'000U - facts.loss;
  const std::uint64_t q = 1'000'000U - good * good / 1'000'000U;
  std::uint64_t product = 1'000'000'000'000'000U;
  std::int64_t n = 0;
  while (product >= 1'000'000U) {
    product = product / 1'000'000U * q;
    ++n;
  }
  return facts.step * std::max<std::int64_t>(n, 2);
}

bool Progress::waiting(Time now) {
  const Duration gap = now - last_;
  longest_ = std::max(longest_, gap);
  if (gap <= bound_) return true;
  report_.add(now, "progress", "nothing happened for %lld us, the bound is %lld us",
              static_cast<long long>(gap.us()), static_cast<long long>(bound_.us()));
  last_ = now;
  return false;
}

}  // namespace weft::check
