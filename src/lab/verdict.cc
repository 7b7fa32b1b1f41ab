#include "lab/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "lab/number.h"

namespace weft::lab {
namespace {

struct Point {
  std::size_t number;
  std::vector<std::size_t> at;
};

std::vector<Point> chosen_points(const Experiment& e, const Measure& m) {
  std::vector<Point> all;
  for (std::size_t p = 0; p < e.points(); ++p) {
    Point point{p, point_of(e, p)};
    bool wanted = true;
    for (std::size_t i = 0; i < e.axes.size(); ++i) {
      const auto& list = m.points[i];
      wanted = wanted && std::find(list.begin(), list.end(), point.at[i]) != list.end();
    }
    if (wanted) all.push_back(std::move(point));
  }
  return all;
}

// The measure at one point with one seed.
Samples::Value value_at(const Experiment& e, const Measure& m, const Samples& s, const Point& point,
                        std::uint64_t seed) {
  const Samples::Value a = s.at(m.metric, m.of, point.number, seed);
  if (!a.missing.empty() || m.as == As::kValue) return a;
  std::vector<std::size_t> over = point.at;
  for (std::size_t i = 0; i < m.over_points.size(); ++i) {
    if (m.over_points[i] != kSamePoint) over[i] = m.over_points[i];
  }
  const Samples::Value b = s.at(m.metric, m.over, number_of(e, over), seed);
  if (!b.missing.empty()) return b;
  if (b.at_least) return {0, fmt::format("what is compared with was cut off with seed {}", seed), false};
  if (b.number == 0) return {0, fmt::format("what is compared with is 0 with seed {}", seed), false};
  const double ratio = a.number / b.number;
  switch (m.as) {
    case As::kPercentLess:
      // A lower bound is an upper one here.
      if (a.at_least)
        return {0, fmt::format("{} was cut off with seed {}", e.variants[m.of].name, seed), false};
      return {100 * (1 - ratio), "", false};
    case As::kPercentMore:
      return {100 * (ratio - 1), "", a.at_least};
    default:
      return {ratio, "", a.at_least};
  }
}

double reduced(Reduce how, const std::vector<double>& values) {
  switch (how) {
    case Reduce::kMax:
      return *std::max_element(values.begin(), values.end());
    case Reduce::kMin:
      return *std::min_element(values.begin(), values.end());
    case Reduce::kIncreasing:
      return rising(values);
    case Reduce::kDecreasing:
      return rising(values) == 0 ? 0 : -rising(values);
    default:
      return estimate(values).mean;
  }
}

std::string what_text(const Experiment& e, const Measure& m) {
  std::string text = e.metrics[m.metric].text + ", " + e.variants[m.of].name;
  if (m.as == As::kRatio) text += " over " + e.variants[m.over].name;
  if (m.as == As::kPercentLess) text += " less than " + e.variants[m.over].name;
  if (m.as == As::kPercentMore) text += " more than " + e.variants[m.over].name;
  for (std::size_t i = 0; i < m.over_points.size(); ++i) {
    if (m.over_points[i] != kSamePoint)
      text += " at " + e.axes[i].name + "=" + e.axes[i].points[m.over_points[i]].label;
  }
  if (m.reduce == Reduce::kMax) text += ", highest";
  if (m.reduce == Reduce::kMin) text += ", lowest";
  if (m.reduce == Reduce::kMean) text += ", mean";
  if (m.reduce == Reduce::kIncreasing) text += ", rises with " + e.axes[m.along].name;
  if (m.reduce == Reduce::kDecreasing) text += ", falls with " + e.axes[m.along].name;
  return text;
}

// Where: only axes that the measure leaves more than one way to read.
std::string where_text(const Experiment& e, const Measure& m, const std::vector<Point>& group) {
  std::string text;
  for (std::size_t i = 0; i < e.axes.size(); ++i) {
    const bool one = std::all_of(group.begin(), group.end(),
                                 [&](const Point& p) { return p.at[i] == group.front().at[i]; });
    if (!one || e.axes[i].points.size() == 1) continue;
    text += fmt::format("{}{}={}", text.empty() ? ", at " : ", ", e.axes[i].name,
                        e.axes[i].points[group.front().at[i]].label);
  }
  (void)m;
  return text;
}

std::string unit_of(const Experiment& e, const Measure& m) {
  if (m.reduce == Reduce::kIncreasing || m.reduce == Reduce::kDecreasing) return "tau";
  if (m.as == As::kValue) return e.metrics[m.metric].unit;
  return m.as == As::kRatio ? "x" : "%";
}

void apply_bands(const Measure& m, Finding& f) {
  f.band = m.reproduced ? m.reproduced->text : "";
  f.trend = m.trend ? m.trend->text : "";
  if (!f.missing.empty()) return;
  // Of a lower bound it is only known that the truth lies above.
  const double high = f.ours.at_least ? std::numeric_limits<double>::infinity() : f.ours.high;
  f.in_trend = m.trend && m.trend->contains_all(f.ours.low, high);
  const bool meets = m.reproduced && (f.ours.at_least ? m.reproduced->contains_all(f.ours.low, high)
                                                      : m.reproduced->meets(f.ours.low, high));
  f.in_band = meets && (!m.trend || f.in_trend);
  const Band* rule = m.trend ? &*m.trend : m.reproduced ? &*m.reproduced : nullptr;
  f.open = !f.in_band && !f.in_trend && rule != nullptr && rule->meets(f.ours.low, high);
}

Finding finding_of(const Experiment& e, const Measure& m, const Samples& s, const std::vector<Point>& group) {
  Finding f;
  f.what = what_text(e, m) + where_text(e, m, group);
  f.unit = unit_of(e, m);
  std::vector<double> by_seed;
  const bool order = m.reduce == Reduce::kIncreasing || m.reduce == Reduce::kDecreasing;
  bool at_least = false;
  for (std::uint64_t seed = 1; seed <= s.seeds(); ++seed) {
    std::vector<double> values;
    for (const Point& p : group) {
      const Samples::Value v = value_at(e, m, s, p, seed);
      if (!v.missing.empty() && f.missing.empty()) f.missing = v.missing;
      if (v.at_least && order && f.missing.empty()) f.missing = "a run was cut off, so there is no order";
      at_least = at_least || v.at_least;
      values.push_back(v.number);
    }
    by_seed.push_back(reduced(m.reduce, values));
  }
  if (f.missing.empty()) f.ours = estimate(by_seed);
  f.ours.at_least = at_least;
  apply_bands(m, f);
  return f;
}

// Points that are reduced to one number together.
std::vector<std::vector<Point>> groups_of(const Experiment& e, const Measure& m) {
  std::vector<Point> points = chosen_points(e, m);
  std::vector<std::vector<Point>> groups;
  const bool order = m.reduce == Reduce::kIncreasing || m.reduce == Reduce::kDecreasing;
  if (!order && m.reduce != Reduce::kEach) return {points};
  for (Point& p : points) {
    auto same = groups.end();
    if (order) {
      same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Point>& g) {
        for (std::size_t i = 0; i < p.at.size(); ++i) {
          if (i != m.along && g.front().at[i] != p.at[i]) return false;
        }
        return true;
      });
    }
    if (same == groups.end()) {
      groups.push_back({p});
    } else {
      same->push_back(p);
    }
  }
  return groups;
}

Finding account_finding(const Measure& m, Account account) {
  Finding f;
  f.what = m.account;
  const auto computed = account(m.account);
  if (computed) {
    f.what = computed->text.empty() ? m.account : computed->text;
    f.unit = computed->unit;
    f.ours = {computed->value, computed->value, computed->value, 1, false};
  } else {
    f.missing = computed.error().message;
  }
  apply_bands(m, f);
  return f;
}

void decide(Judgement& j) {
  const auto& all = j.findings;
  const auto missing =
      std::find_if(all.begin(), all.end(), [](const Finding& f) { return !f.missing.empty(); });
  if (missing != all.end()) {
    j.verdict = Verdict::kIncomplete;
    j.because = missing->what + ": " + missing->missing;
    return;
  }
  const auto good = [&](bool Finding::*which) {
    return std::all_of(all.begin(), all.end(), [&](const Finding& f) { return f.*which; });
  };
  const bool banded = good(&Finding::in_band);
  const bool trended = good(&Finding::in_trend);
  const bool open =
      std::all_of(all.begin(), all.end(), [](const Finding& f) { return f.in_band || f.in_trend || f.open; });
  j.verdict = banded    ? Verdict::kReproduced
              : trended ? Verdict::kTrend
              : open    ? Verdict::kOpen
                        : Verdict::kNot;
  if (banded) return;
  for (const Finding& f : all) {
    const bool ok = trended ? f.in_band : f.in_trend || (f.trend.empty() && f.in_band);
    if (ok || (f.open && !open)) continue;
    const std::string& rule = trended || f.trend.empty() ? f.band : f.trend;
    if (rule.empty()) continue;  // a claim of which only a trend is known
    if (!j.because.empty()) j.because += "; ";
    j.because += fmt::format("{} is {}, the rule {}", f.what, interval_text(f.ours, f.unit), rule);
  }
}

}  // namespace

Samples::Samples(const Experiment& e, std::uint32_t seeds)
    : e_(e), seeds_(seeds), values_(e.metrics.size() * e.variants.size() * e.points() * seeds) {}

std::size_t Samples::index(std::size_t metric, std::size_t variant, std::size_t point,
                           std::uint64_t seed) const {
  CHECK(metric < e_.metrics.size() && variant < e_.variants.size() && point < e_.points());
  CHECK(seed >= 1 && seed <= seeds_);
  return ((metric * e_.variants.size() + variant) * e_.points() + point) * seeds_ + (seed - 1);
}
void Samples::set(std::size_t metric, std::size_t variant, std::size_t point, std::uint64_t seed,
                  double value, bool at_least) {
  values_[index(metric, variant, point, seed)] = {value, "", at_least};
}
void Samples::set_missing(std::size_t metric, std::size_t variant, std::size_t point, std::uint64_t seed,
                          std::string why) {
  values_[index(metric, variant, point, seed)] = {0, std::move(why), false};
}
const Samples::Value& Samples::at(std::size_t metric, std::size_t variant, std::size_t point,
                                  std::uint64_t seed) const {
  return values_[index(metric, variant, point, seed)];
}

const char* verdict_text(Verdict v) {
  switch (v) {
    case Verdict::kReproduced:
      return "reproduced";
    case Verdict::kTrend:
      return "trend reproduced";
    case Verdict::kOpen:
      return "undecided";
    case Verdict::kNot:
      return "not reproduced";
    default:
      return "incomplete";
  }
}

std::vector<Judgement> judge(const Experiment& e, const Samples& samples, Account account) {
  std::vector<Judgement> all;
  for (const Claim& c : e.claims) {
    Judgement& j = all.emplace_back();
    j.claim = &c;
    for (const Measure& m : c.measures) {
      if (!m.account.empty()) {
        j.findings.push_back(account_finding(m, account));
        continue;
      }
      for (const auto& group : groups_of(e, m)) j.findings.push_back(finding_of(e, m, samples, group));
    }
    decide(j);
  }
  return all;
}

Finding summary(const Experiment& e, const Samples& samples, std::size_t metric, std::size_t variant,
                std::size_t point) {
  Finding f;
  f.what = e.metrics[metric].text;
  f.unit = e.metrics[metric].unit;
  std::vector<double> values;
  bool at_least = false;
  for (std::uint64_t seed = 1; seed <= samples.seeds(); ++seed) {
    const Samples::Value& v = samples.at(metric, variant, point, seed);
    if (!v.missing.empty()) f.missing = v.missing;
    at_least = at_least || v.at_least;
    values.push_back(v.number);
  }
  if (f.missing.empty()) f.ours = estimate(values);
  f.ours.at_least = at_least;
  return f;
}

}  // namespace weft::lab
