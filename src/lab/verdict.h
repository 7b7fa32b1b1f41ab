// What runs say of claims: every measure with its interval, and whether it bears its claim out (grade.h has
// the rules).
//
//   reproduced        every measure is: its interval lies in the paper's band
//   compatible        every measure's interval at least overlaps its band, within its trend
//   trend reproduced  every measure's interval lies within its trend
//   not reproduced    some measure lies outside of its rule, also by Holm's correction over all of the claim;
//   or
//                     it differs by nothing that is worth the name, where a difference is claimed
//   undecided         none does, but some reach across it, or there are fewer than three seeds
//   incomplete        runs are missing, or something was not computed
//
// A claim that is only computed from parameters is "consistent" or "not consistent": it says that the paper's
// own numbers agree with each other, and nothing of a network.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "lab/experiment.h"
#include "lab/finding.h"
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
  static constexpr const char* kNotRun = "not run yet";
  struct Value {
    double number = 0;
    std::string missing = kNotRun;  // why there is no number; empty if there is one
    bool at_least = false;          // a lower bound: the run was cut off
  };
  const Value& at(std::size_t metric, std::size_t variant, std::size_t point, std::uint64_t seed) const;
  std::uint32_t seeds() const { return seeds_; }

 private:
  std::size_t index(std::size_t metric, std::size_t variant, std::size_t point, std::uint64_t seed) const;
  const Experiment& e_;
  std::uint32_t seeds_;
  std::vector<Value> values_;
};

enum class Verdict : unsigned char { kIncomplete, kOpen, kNot, kTrend, kCompatible, kReproduced };
const char* verdict_text(Verdict v);

struct Judgement {
  const Claim* claim = nullptr;
  std::vector<Finding> findings;
  Verdict verdict = Verdict::kIncomplete;
  std::string because;    // the rule's reason; the author's `why` stands beside it
  std::string needs;      // one sentence, where the verdict is undecided: what would decide it
  bool computed = false;  // every measure is computed, none is run
};
const char* verdict_text(const Judgement& j);

// A quantity that is computed instead of run; the error says which there are.
struct Computed {
  double value = 0;
  std::string unit;
  std::string text;
};
using Account = Result<Computed> (*)(const std::string& name);

std::vector<Judgement> judge(const Experiment& e, const Samples& samples, Account account);

// What a measure says at one point.
Finding at_point(const Experiment& e, const Measure& m, const Samples& samples, std::size_t point);

// What is known of a metric of one variant at one point.
Finding summary(const Experiment& e, const Samples& samples, std::size_t metric, std::size_t variant,
                std::size_t point);

}  // namespace weft::lab
