#include "wan/plan/loss.h"

#include <cmath>

namespace weft::wan {
namespace {

constexpr int kMostRounds = 10'000;   // loss close to 1 has no finite answer worth printing
constexpr double kNegligible = 1e-9;  // of a round

// At least one of n, each of which happens with probability p.
double any(double n, double p) { return p >= 1 ? 1 : -std::expm1(n * std::log1p(-p)); }

// Rounds after the first: one of `units` is still missing with probability `first`, then first * loss, …
double further_rounds(double units, double first, double loss) {
  double sum = 0;
  double p = first;
  for (int j = 0; j < kMostRounds; ++j, p *= loss) {
    const double more = any(units, p);
    sum += more;
    if (more < kNegligible) break;
  }
  return sum;
}

double further_rounds_within(double units, double first, double loss, double probability) {
  double p = first;
  int j = 0;
  for (; j < kMostRounds && any(units, p) > 1 - probability; ++j) p *= loss;
  return j;
}

double groups(double packets, const Parity& parity) { return std::ceil(packets / parity.data); }

}  // namespace

double go_back_n_share(double window, double loss) {
  const double w = window < 1 ? 1 : window;
  return (1 - loss) / (1 - loss + loss * w);
}

double rounds(double packets, double loss) { return 1 + further_rounds(packets, loss, loss); }

double rounds_within(double packets, double loss, double probability) {
  return 1 + further_rounds_within(packets, loss, loss, probability);
}

double group_fails(const Parity& parity, double loss) {
  if (loss <= 0) return 0;
  if (loss >= 1) return 1;
  const unsigned n = parity.data + parity.repair;
  double sum = 0;
  for (unsigned lost = parity.repair + 1; lost <= n; ++lost) {
    const double ways = std::lgamma(n + 1.0) - std::lgamma(lost + 1.0) - std::lgamma(n - lost + 1.0);
    sum += std::exp(ways + lost * std::log(loss) + (n - lost) * std::log1p(-loss));
  }
  return sum < 1 ? sum : 1;
}

double rounds(double packets, double loss, const Parity& parity) {
  return 1 + further_rounds(groups(packets, parity), group_fails(parity, loss), loss);
}

double rounds_within(double packets, double loss, const Parity& parity, double probability) {
  return 1 + further_rounds_within(groups(packets, parity), group_fails(parity, loss), loss, probability);
}

}  // namespace weft::wan
