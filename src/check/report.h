// What the observers found: a list of broken rules, each with its time and the facts. The list keeps
// the first kKept findings (one bug tends to break a rule a thousand times) and counts the rest.
//
// An observer never aborts: a world runs on after a finding, so that the trace shows what followed.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/units.h"

namespace weft::check {

struct Violation {
  Time at;
  const char* rule;  // short name of the rule, a string literal
  std::string text;  // the facts
};

class Report {
 public:
  static constexpr std::size_t kKept = 16;

  __attribute__((format(printf, 4, 5))) void add(Time at, const char* rule, const char* format, ...);
  bool clean() const { return total_ == 0; }
  std::uint64_t total() const { return total_; }
  std::span<const Violation> violations() const { return kept_; }
  // One line per kept finding.
  std::string text() const;

 private:
  std::vector<Violation> kept_;
  std::uint64_t total_ = 0;
};

}  // namespace weft::check
