#include "lab/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/number.h"

namespace weft::lab {
namespace {

bool apart(const Estimate& a, const Estimate& b) { return a.high < b.low || b.high < a.low; }

void compare_findings(const Finding& a, const Finding& b, const std::string& what, Difference place,
                      Comparison& out) {
  if (!a.missing.empty() || !b.missing.empty()) return;
  ++out.compared;
  if (!apart(a.ours, b.ours)) return;
  place.what = what;
  place.before = interval_text(a.ours, a.unit);
  place.after = interval_text(b.ours, b.unit);
  out.differences.push_back(std::move(place));
}

void compare_samples(const Experiment& e, const std::string& size, const Samples& a, const Samples& b,
                     Account account, Comparison& out) {
  const Difference place{e.name, size, {}, {}, {}};
  for (std::size_t p = 0; p < e.points() && !e.variants.empty(); ++p) {
    for (std::size_t v = 0; v < e.variants.size(); ++v) {
      for (const std::size_t m : e.shown) {
        const std::string at = point_text(e, p);
        compare_findings(
            summary(e, a, m, v, p), summary(e, b, m, v, p),
            fmt::format("{}, {}{}{}", e.metrics[m].text, e.variants[v].name, at.empty() ? "" : " at ", at),
            place, out);
      }
    }
  }
  const auto before = judge(e, a, account);
  const auto after = judge(e, b, account);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Judgement& x = before[i];
    const Judgement& y = after[i];
    for (std::size_t k = 0; k < x.findings.size(); ++k)
      compare_findings(x.findings[k], y.findings[k], fmt::format("{}: {}", x.claim->id, x.findings[k].what),
                       place, out);
    ++out.compared;
    if (x.verdict == y.verdict) continue;
    Difference d = place;
    d.what = fmt::format("verdict of {}", x.claim->id);
    d.before = verdict_text(x.verdict);
    d.after = verdict_text(y.verdict);
    out.differences.push_back(std::move(d));
  }
}

// The newest recorded simulator of this size, or null.
const Recorded* newest(const std::vector<Recorded>& all, const std::string& size) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const Recorded& r) { return r.size == size; });
  return it == all.end() ? nullptr : &*it;
}

}  // namespace

Result<void> compare(const std::vector<Experiment>& all, const std::string& size, const record::Store& before,
                     const record::Store& after, Account account, Comparison& out) {
  for (const Experiment& e : all) {
    const auto in_a = recorded(e, before);
    const auto in_b = recorded(e, after);
    if (!in_a) return tl::unexpected(in_a.error());
    if (!in_b) return tl::unexpected(in_b.error());
    const Recorded* a = newest(*in_a, size);
    const Recorded* b = newest(*in_b, size);
    if (a == nullptr || b == nullptr) continue;
    Recorded x = *a;
    Recorded y = *b;
    x.seeds = y.seeds = std::min(x.seeds, y.seeds);
    const auto of_a = read_samples(e, x, before);
    const auto of_b = read_samples(e, y, after);
    if (!of_a) return tl::unexpected(of_a.error());
    if (!of_b) return tl::unexpected(of_b.error());
    out.experiments.push_back(fmt::format("{} {}: simulators {} and {}, {} seeds", e.name, size, x.simulator,
                                          y.simulator, x.seeds));
    compare_samples(e, size, *of_a, *of_b, account, out);
  }
  return {};
}

}  // namespace weft::lab
