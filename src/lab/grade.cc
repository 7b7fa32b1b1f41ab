#include "lab/grade.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::lab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool two_sided(const Band& b) { return std::isfinite(b.low) && std::isfinite(b.high); }

double high_of(const Estimate& e) { return e.at_least ? kInfinity : e.high; }

bool lies_in(const Band& b, const Estimate& e) {
  if (b.contains_all(e.low, high_of(e))) return true;
  return !e.at_least && two_sided(b) && b.contains(e.mean) && e.high - e.low < b.high - b.low;
}

bool overlaps(const Band& b, const Estimate& e) {
  const bool beyond_both = two_sided(b) && e.low < b.low && high_of(e) > b.high;
  return b.meets(e.low, high_of(e)) && (!beyond_both || e.at_least);
}

// Between these, on the scale of intervals, is no difference that is worth the name. Only a rule that claims
// one, "> 1" or "< 0 %", is refuted there.
struct Margin {
  double low, high;
};
std::optional<Margin> margin_of(const std::optional<Band>& band, const std::optional<Band>& trend,
                                const Scale& scale) {
  if (!scale.factors || (!trend && !band)) return std::nullopt;
  const Band& rule = trend ? *trend : *band;
  if (two_sided(rule)) return std::nullopt;
  const double none = scale.from(0);
  if (rule.contains(none) || (band && band->contains(none))) return std::nullopt;
  const bool more = std::isfinite(rule.low);
  if ((more ? rule.low : rule.high) != none) return std::nullopt;
  Margin m{-std::log1p(kWorthTheName), std::log1p(kWorthTheName)};
  if (band && more && std::isfinite(band->low) && band->low > none)
    m.high = std::min(m.high, scale.to(band->low));
  if (band && !more && std::isfinite(band->high) && band->high < none)
    m.low = std::max(m.low, scale.to(band->high));
  return m;
}

// Whether some cell lies above `limit` for sure.
bool some_above(const Scale& scale, const std::vector<Cell>& cells, double limit) {
  std::vector<double> p;
  for (const Cell& c : cells) p.push_back(c.estimate.decides() ? doubt_above(c.values, scale.to(limit)) : 1);
  const auto rejected = holm_rejects(p, kAlpha);
  return std::find(rejected.begin(), rejected.end(), true) != rejected.end();
}

}  // namespace

const char* grade_text(Grade g) {
  switch (g) {
    case Grade::kReproduced:
      return "yes";
    case Grade::kCompatible:
      return "overlaps";
    case Grade::kTrend:
      return "trend";
    case Grade::kOpen:
      return "open";
    case Grade::kRefuted:
      return "no";
    default:
      return "?";
  }
}

bool is_tie(const std::optional<Band>& band, const std::optional<Band>& trend, const Scale& scale,
            const Estimate& e) {
  const auto margin = margin_of(band, trend, scale);
  if (!margin || e.at_least || !e.decides()) return false;
  const double low = scale.to(e.low), high = scale.to(e.high);
  return low <= 0 && high >= 0 && low > margin->low && high < margin->high;
}

Grade grade_of(const std::optional<Band>& band, const std::optional<Band>& trend, const Scale& scale,
               const Estimate& e) {
  if (!e.decides()) return Grade::kOpen;
  if (band && lies_in(*band, e)) return Grade::kReproduced;
  if (is_tie(band, trend, scale, e)) return Grade::kRefuted;
  const bool off_band = band && !band->meets(e.low, high_of(e));
  const bool in_trend = !trend || trend->contains_all(e.low, high_of(e));
  if (!in_trend) return trend->meets(e.low, high_of(e)) && !off_band ? Grade::kOpen : Grade::kRefuted;
  if (!band) return Grade::kTrend;
  if (trend) return overlaps(*band, e) ? Grade::kCompatible : Grade::kTrend;
  if (!band->meets(e.low, high_of(e))) return Grade::kRefuted;
  return two_sided(*band) && overlaps(*band, e) ? Grade::kCompatible : Grade::kOpen;
}

double Scale::to(double v) const {
  if (!factors) return v;
  const double factor = as == As::kPercentMore ? 1 + v / 100 : as == As::kPercentLess ? 1 - v / 100 : v;
  const double log = factor > 0 ? std::log(factor) : -kInfinity;
  return as == As::kPercentLess ? -log : log;
}

double Scale::from(double y) const {
  if (!factors) return y;
  if (as == As::kPercentMore) return 100 * std::expm1(y);
  if (as == As::kPercentLess) return -100 * std::expm1(-y);
  return std::exp(y);
}

double doubt(const std::optional<Band>& band, const std::optional<Band>& trend, const Scale& scale,
             const Cell& c) {
  const Band& rule = band ? *band : *trend;
  if (c.estimate.exact) return rule.contains(c.estimate.mean) ? 1 : 0;
  if (!c.estimate.decides()) return 1;
  // The truth behind a lower bound may be far above it.
  const double below =
      std::isfinite(rule.low) && !c.estimate.at_least ? doubt_below(c.values, scale.to(rule.low)) : 1;
  const double above = std::isfinite(rule.high) ? doubt_above(c.values, scale.to(rule.high)) : 1;
  double tie = 1;
  if (is_tie(band, trend, scale, c.estimate)) {
    const Margin m = *margin_of(band, trend, scale);
    tie = std::max(doubt_below(c.values, m.high), doubt_above(c.values, m.low));
  }
  return std::min({below, above, tie});
}

Grade grade_up_to(const std::optional<Band>& band, const std::optional<Band>& trend, const Scale& scale,
                  const std::vector<Cell>& cells) {
  const auto any = [&](auto is) { return std::any_of(cells.begin(), cells.end(), is); };
  if (!any([](const Cell& c) { return c.estimate.decides(); })) return Grade::kOpen;
  if (trend && !some_above(scale, cells, trend->low))
    return any([&](const Cell& c) { return trend->meets(c.estimate.low, high_of(c.estimate)); })
               ? Grade::kOpen
               : Grade::kRefuted;
  if (!band) return Grade::kTrend;
  const bool above = some_above(scale, cells, band->high);
  const bool higher = any([&](const Cell& c) { return c.estimate.mean > band->high || c.estimate.at_least; });
  const bool near = any([&](const Cell& c) { return overlaps(*band, c.estimate); });
  if (!above && !higher && some_above(scale, cells, band->low)) return Grade::kReproduced;
  if (!above && near) return Grade::kCompatible;
  if (trend) return Grade::kTrend;
  const bool touches = any([&](const Cell& c) { return band->meets(c.estimate.low, high_of(c.estimate)); });
  return !above && touches ? Grade::kOpen : Grade::kRefuted;
}

}  // namespace weft::lab
