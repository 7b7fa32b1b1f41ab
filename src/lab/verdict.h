// What runs say of claims: every measure with its interval, and whether it bears its claim out.
//
//   reproduced        every measure's interval meets its band, and lies within its trend where it has one
//   trend reproduced  every measure's interval lies within its trend
//   not reproduced    some measure's interval lies outside of its rule, and the reasons name it
//   undecided         none does, but some reach across it: more seeds would decide
//   incomplete        runs are missing, or something was not computed
#pragma once
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "lab/experiment.h"
#include "lab/statistics.h"

namespace weft::lab {

// Values of one experiment's metrics, seed by seed.
class Samples {
 public:
  Samples(const Experiment& e, std::uint32_t seeds);

  void set(std::size_t metric, std::size_t variant, std::size_t point, std::uint64_t seed, double value,
           bool at_least = false);
  void set_missing(std::size_t metric, std::size_t variant, std::size_t point, std::uint64_t seed,
                   std::string why);
  struct Value {
    double number = 0;
    std::string missing = "not run yet";  // empty: there is one
    bool at_least = false;                // a lower bound: the run was cut off
  };
  const Value& at(std::size_t metric, std::size_t variant, std::size_t point, std::uint64_t seed) const;
  std::uint32_t seeds() const { return seeds_; }

 private:
  std::size_t index(std::size_t metric, std::size_t variant, std::size_t point, std::uint64_t seed) const;
  const Experiment& e_;
  std::uint32_t seeds_;
  std::vector<Value> values_;
};

// What a measure came to; one that is reduced point by point comes to several.
struct Finding {
  std::string what;  // "average FCT, RoCE+PFC over IRN, at load=30%"
  std::string unit;  // "x", "%", "us"
  std::string band;  // as the rule has it
  std::string trend;
  Estimate ours;
  std::string missing;  // why there is no number; then the rest means nothing
  bool in_band = false;
  bool in_trend = false;
  bool open = false;  // not in its trend, but the interval reaches into it
};

enum class Verdict : unsigned char { kIncomplete, kOpen, kNot, kTrend, kReproduced };
const char* verdict_text(Verdict v);

struct Judgement {
  const Claim* claim = nullptr;
  std::vector<Finding> findings;
  Verdict verdict = Verdict::kIncomplete;
  std::string because;  // of the rule; the author's `why` stands beside it
};

// A quantity that is computed instead of run; the error says which there are.
struct Computed {
  double value = 0;
  std::string unit;
  std::string text;
};
using Account = Result<Computed> (*)(const std::string& name);

std::vector<Judgement> judge(const Experiment& e, const Samples& samples, Account account);

// A metric of one variant at one point.
Finding summary(const Experiment& e, const Samples& samples, std::size_t metric, std::size_t variant,
                std::size_t point);

}  // namespace weft::lab
