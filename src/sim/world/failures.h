// Links that fail and are repaired as the scenario says, and routes that learn of it some time later.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/fabric/network.h"
#include "sim/world/scenario.h"

namespace weft::sim {

class Failures {
 public:
  Failures(const Scenario& scenario, Network& network, Timeline& timeline);
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;

 private:
  void on_change(Time now);
  void on_reconverged(Time) { network_.reroute(); }

  Network& network_;
  Timeline& timeline_;
  Duration reconverge_;
  ActorId change_;
  ActorId reconverged_;
  std::vector<LinkChange> changes_;  // in order of time
  std::size_t next_ = 0;
  std::vector<std::uint32_t> failed_;  // how many failures of a link are not repaired yet
};

// The link changes that the scenario's [[failure]] tables ask for. Links that they leave open are drawn from
// the seed.
Result<std::vector<LinkChange>> link_changes(const Scenario& scenario);

}  // namespace weft::sim
