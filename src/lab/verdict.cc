#include "lab/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "lab/needs.h"
#include "lab/number.h"

namespace weft::lab {
namespace {

struct GridPoint {
  std::size_t number;
  std::vector<std::size_t> at;
};

std::vector<GridPoint> chosen_points(const Experiment& e, const Measure& m) {
  std::vector<GridPoint> all;
  for (std::size_t p = 0; p < e.points(); ++p) {
    GridPoint point{p, point_of(e, p)};
    bool wanted = true;
    for (std::size_t i = 0; i < e.axes.size(); ++i) {
      const auto& list = m.points[i];
      wanted = wanted && std::find(list.begin(), list.end(), point.at[i]) != list.end();
    }
    if (wanted) all.push_back(std::move(point));
  }
  return all;
}

// The point that this one is compared with.
std::size_t over_point(const Experiment& e, const Measure& m, const GridPoint& point) {
  std::vector<std::size_t> over = point.at;
  for (std::size_t i = 0; i < m.over_points.size(); ++i) {
    if (m.over_points[i] != kSamePoint) over[i] = m.over_points[i];
  }
  return number_of(e, over);
}

// The measure at one point with one seed.
Samples::Value value_at(const Experiment& e, const Measure& m, const Samples& s, const GridPoint& point,
                        std::uint64_t seed) {
  const Samples::Value a = s.at(m.metric, m.of, point.number, seed);
  if (!a.missing.empty() || m.as == As::kValue) return a;
  const Samples::Value b = s.at(m.metric, m.over, over_point(e, m, point), seed);
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

std::string what_text(const Experiment& e, const Measure& m) {
  std::string text = e.metrics[m.metric].text + ", " + e.variants[m.of].name;
  if (m.as == As::kRatio) text += " over " + e.variants[m.over].name;
  if (m.as == As::kPercentLess) text += " less than " + e.variants[m.over].name;
  if (m.as == As::kPercentMore) text += " more than " + e.variants[m.over].name;
  for (std::size_t i = 0; i < m.over_points.size(); ++i) {
    if (m.over_points[i] != kSamePoint)
      text += " at " + e.axes[i].name + "=" + e.axes[i].points[m.over_points[i]].label;
  }
  if (m.reduce == Reduce::kAlways) text += ", always";
  if (m.reduce == Reduce::kUpTo) text += ", up to";
  if (m.reduce == Reduce::kMean) text += ", mean";
  if (m.reduce == Reduce::kIncreasing) text += ", rises with " + e.axes[m.along].name;
  if (m.reduce == Reduce::kDecreasing) text += ", falls with " + e.axes[m.along].name;
  return text;
}

// The place of a group of points, by the axes that tell groups apart: axes of one point are left out, and so
// are axes along which the group reaches.
std::string where_text(const Experiment& e, const std::vector<GridPoint>& group) {
  std::string text;
  for (std::size_t i = 0; i < e.axes.size(); ++i) {
    const bool one = std::all_of(group.begin(), group.end(),
                                 [&](const GridPoint& p) { return p.at[i] == group.front().at[i]; });
    if (!one || e.axes[i].points.size() == 1) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", e.axes[i].name,
                        e.axes[i].points[group.front().at[i]].label);
  }
  return text;
}

std::string unit_of(const Experiment& e, const Measure& m) {
  if (m.reduce == Reduce::kIncreasing || m.reduce == Reduce::kDecreasing) return "tau";
  if (m.as == As::kValue) return e.metrics[m.metric].unit;
  return m.as == As::kRatio ? "x" : "%";
}

bool is_order(const Measure& m) { return m.reduce == Reduce::kIncreasing || m.reduce == Reduce::kDecreasing; }

// A value per seed of points that are reduced to one number together, or why there is none.
struct BySeed {
  std::vector<std::vector<double>> values;  // of each seed, at each point
  std::string missing;
  bool at_least = false;
};
BySeed read_group(const Experiment& e, const Measure& m, const Samples& s,
                  const std::vector<GridPoint>& group) {
  BySeed all;
  std::uint32_t seeds = s.seeds();  // that all of them have
  for (const GridPoint& p : group) {
    seeds = e.seeds_at(p.number, seeds);
    if (m.as != As::kValue) seeds = e.seeds_at(over_point(e, m, p), seeds);
  }
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    auto& values = all.values.emplace_back();
    for (const GridPoint& p : group) {
      const Samples::Value v = value_at(e, m, s, p, seed);
      if (!v.missing.empty() && all.missing.empty()) all.missing = v.missing;
      if (v.at_least && is_order(m) && all.missing.empty())
        all.missing = "a run was cut off, so there is no order";
      all.at_least = all.at_least || v.at_least;
      values.push_back(v.number);
    }
  }
  return all;
}

// What compares two variants is a factor; so is a quantity that is nowhere zero.
Scale scale_of(const Measure& m, const std::vector<BySeed>& groups) {
  Scale scale{m.as, !is_order(m)};
  for (const BySeed& g : groups) {
    for (const auto& values : g.values) {
      for (const double v : values) scale.factors = scale.factors && std::isfinite(scale.to(v));
    }
  }
  return scale;
}

double reduced(const Measure& m, const Scale& scale, const std::vector<double>& values) {
  if (m.reduce == Reduce::kIncreasing) return rising(values);
  if (m.reduce == Reduce::kDecreasing) return rising(values) == 0 ? 0 : -rising(values);
  double sum = 0;
  for (const double v : values) sum += scale.to(v);
  return sum / static_cast<double>(values.size());
}

Cell cell_of(const Measure& m, const Scale& scale, const BySeed& group, std::string where) {
  Cell c;
  c.where = std::move(where);
  for (const auto& values : group.values) c.values.push_back(reduced(m, scale, values));
  c.estimate.at_least = group.at_least;
  estimate_cell(c, scale, is_order(m));
  c.grade = grade_of(m.reproduced, m.trend, scale, c.estimate);
  return c;
}

// Of several cells, the one that the verdict hangs on: the largest, or the one that does worst and among
// those the one nearest to being outside.
void pick_cell(const Measure& m, Finding& f) {
  const auto worse = [&](const Cell& a, const Cell& b) {
    if (m.reduce == Reduce::kUpTo) return a.estimate.mean > b.estimate.mean;
    if (a.grade != b.grade) return a.grade < b.grade;
    const Band& rule = m.trend ? *m.trend : *m.reproduced;
    return std::isfinite(rule.low) ? a.estimate.mean < b.estimate.mean : a.estimate.mean > b.estimate.mean;
  };
  const auto it = std::min_element(f.cells.begin(), f.cells.end(), worse);
  f.ours = it->estimate;
  if (f.cells.size() == 1) return;
  std::size_t counts[6] = {};
  for (const Cell& c : f.cells) ++counts[static_cast<std::size_t>(c.grade)];
  f.note = fmt::format("{}; of {} cells", it->where, f.cells.size());
  const char* separator = " ";
  for (const Grade g :
       {Grade::kReproduced, Grade::kCompatible, Grade::kTrend, Grade::kOpen, Grade::kRefuted}) {
    const std::size_t n = counts[static_cast<std::size_t>(g)];
    if (n == 0) continue;
    f.note += fmt::format("{}{} {}", separator, n, grade_text(g));
    separator = ", ";
  }
}

// One finding of groups of points, each a cell.
Finding finding_of(const Experiment& e, const Measure& m, const Samples& s,
                   const std::vector<std::vector<GridPoint>>& groups) {
  Finding f;
  const std::string where = groups.size() == 1 ? where_text(e, groups[0]) : "";
  f.what = what_text(e, m) + (where.empty() ? "" : ", at " + where);
  f.unit = unit_of(e, m);
  f.band = m.reproduced;
  f.trend = m.trend;
  f.aside = m.aside;
  f.up_to = m.reduce == Reduce::kUpTo;
  f.order = is_order(m);
  std::vector<BySeed> read;
  for (const auto& group : groups) {
    read.push_back(read_group(e, m, s, group));
    if (f.missing.empty()) f.missing = read.back().missing;
  }
  if (s.seeds() == 0 && f.missing.empty()) f.missing = Samples::kNotRun;
  if (!f.missing.empty()) return f;
  f.scale = scale_of(m, read);
  for (std::size_t i = 0; i < groups.size(); ++i)
    f.cells.push_back(cell_of(m, f.scale, read[i], where_text(e, groups[i])));
  pick_cell(m, f);
  return f;
}

// Points that are reduced to one number together; of an order, in that in which the measure names them.
std::vector<std::vector<GridPoint>> groups_of(const Experiment& e, const Measure& m) {
  std::vector<GridPoint> points = chosen_points(e, m);
  std::vector<std::vector<GridPoint>> groups;
  const bool order = is_order(m);
  if (m.reduce == Reduce::kMean) return {points};
  if (order) {
    const auto& named = m.points[m.along];
    const auto place = [&](const GridPoint& p) {
      return std::find(named.begin(), named.end(), p.at[m.along]);
    };
    std::stable_sort(points.begin(), points.end(),
                     [&](const GridPoint& a, const GridPoint& b) { return place(a) < place(b); });
  }
  for (GridPoint& p : points) {
    auto same = groups.end();
    if (order) {
      same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<GridPoint>& g) {
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
  f.band = m.reproduced;
  f.trend = m.trend;
  const auto computed = account(m.account);
  if (!computed) {
    f.missing = computed.error().message;
    return f;
  }
  f.what = computed->text.empty() ? m.account : computed->text;
  f.unit = computed->unit;
  f.ours = {computed->value, computed->value, computed->value, 1, false, true};
  f.cells = {{"", f.ours, {}, grade_of(m.reproduced, m.trend, f.scale, f.ours)}};
  return f;
}

Verdict verdict_of(Grade worst) {
  switch (worst) {
    case Grade::kReproduced:
      return Verdict::kReproduced;
    case Grade::kCompatible:
      return Verdict::kCompatible;
    case Grade::kTrend:
      return Verdict::kTrend;
    case Grade::kOpen:
      return Verdict::kOpen;
    case Grade::kRefuted:
      return Verdict::kNot;
    default:
      return Verdict::kIncomplete;
  }
}

std::string sentence_of(const Finding& f, Grade worst) {
  if (f.missing == Samples::kNotRun) return f.missing;
  if (!f.missing.empty()) return f.what + ": " + f.missing;
  if (!f.ours.decides()) return f.ours.values == 1 ? "one seed decides nothing" : "two seeds decide nothing";
  const bool off_band = worst == Grade::kRefuted && f.trend && f.trend->meets(f.ours.low, f.ours.high);
  const Band& rule = (worst >= Grade::kTrend || !f.trend || off_band) && f.band ? *f.band : *f.trend;
  const bool outside = worst == Grade::kOpen && grade_of(f.band, f.trend, f.scale, f.ours) == Grade::kRefuted;
  const bool tie = worst == Grade::kRefuted && is_tie(f.band, f.trend, f.scale, f.ours);
  return fmt::format("{} is {}{}, the rule {}{}", f.what, interval_text(f.ours, f.unit),
                     f.note.empty() ? "" : fmt::format(" ({})", f.note), rule.text,
                     outside ? ", which Holm's correction over all cells leaves open"
                     : tie   ? ": no difference that is worth the name"
                             : "");
}

void decide(Judgement& j) {
  j.computed = std::all_of(j.claim->measures.begin(), j.claim->measures.end(),
                           [](const Measure& m) { return !m.account.empty(); });
  grade_findings(j.findings);
  const Grade worst = worst_of(j.findings);
  j.verdict = verdict_of(worst);
  if (worst == Grade::kOpen) j.needs = needs_text(j);
  if (worst == Grade::kReproduced) return;
  for (const Finding& f : j.findings) {
    if (f.aside || f.grade != worst || (worst == Grade::kTrend && !f.band)) continue;
    const std::string one = sentence_of(f, worst);
    if (j.because.find(one) != std::string::npos) continue;
    j.because += (j.because.empty() ? "" : "; ") + one;
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
    case Verdict::kCompatible:
      return "compatible";
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

const char* verdict_text(const Judgement& j) {
  if (!j.computed || j.verdict == Verdict::kIncomplete) return verdict_text(j.verdict);
  return j.verdict == Verdict::kReproduced ? "consistent" : "not consistent";
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
      const auto groups = groups_of(e, m);
      if (m.reduce == Reduce::kAlways || m.reduce == Reduce::kUpTo) {
        j.findings.push_back(finding_of(e, m, samples, groups));
        continue;
      }
      for (const auto& group : groups) j.findings.push_back(finding_of(e, m, samples, {group}));
    }
    decide(j);
  }
  return all;
}

Finding at_point(const Experiment& e, const Measure& m, const Samples& samples, std::size_t point) {
  return finding_of(e, m, samples, {{GridPoint{point, point_of(e, point)}}});
}

Finding summary(const Experiment& e, const Samples& samples, std::size_t metric, std::size_t variant,
                std::size_t point) {
  Finding f;
  f.what = e.metrics[metric].text;
  f.unit = e.metrics[metric].unit;
  std::vector<double> values;
  bool at_least = false;
  for (std::uint64_t seed = 1; seed <= e.seeds_at(point, samples.seeds()); ++seed) {
    const Samples::Value& v = samples.at(metric, variant, point, seed);
    if (!v.missing.empty()) f.missing = v.missing;
    at_least = at_least || v.at_least;
    values.push_back(v.number);
  }
  if (f.missing.empty()) f.ours = estimate_quantity(values);
  f.ours.at_least = at_least;
  return f;
}

}  // namespace weft::lab
