// The [[line]] and [[accelerator]] tables of a scenario: where they are in the graph, and what follows for
// each box from the line and from the traffic.
#pragma once
#include "core/base/result.h"
#include "sim/box/box_node.h"
#include "sim/world/scenario.h"

namespace weft::sim {

// Gives lines their length, rate and impairments, and puts boxes into the graph.
Result<void> place_lines(Scenario& scenario);
// What each box is told; flows have been counted.
Result<void> configure_boxes(Scenario& scenario);
BoxCost cost_of(const AcceleratorSpec& spec);

}  // namespace weft::sim
