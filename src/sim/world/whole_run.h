// For tests: a scenario from its text, and a simulation of it that has come to its end.
#pragma once
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "sim/world/simulation.h"

namespace weft::sim {

inline Scenario scenario(const std::string& text, const std::vector<std::string>& changes = {}) {
  const auto s = parse_scenario(text, "test", changes);
  CHECK(s.has_value());
  return *s;
}

// `rows` takes a line for each flow; `events` is how many are simulated at a time.
inline std::unique_ptr<Simulation> finished(const Scenario& s, std::ostream* rows = nullptr,
                                            std::uint64_t events = 100'000) {
  auto run = std::make_unique<Simulation>(s, nullptr, rows);
  while (run->run(events)) {
  }
  return run;
}

}  // namespace weft::sim
