// Settings that a scenario states and nothing reads: two scenarios that differ in these alone are the same
// run, so one of them is simulated and stands for both.
//
// Each row of the table is a rule with its reason, and unread_test.cc runs both sides of it: under the rule
// results are the same to the byte, without it they differ. What is not in the table counts as read. The
// record says so itself: such a configuration has the settings as 0 and names them under `unread`.
#pragma once
#include <span>
#include <vector>

#include "sim/world/scenario.h"

namespace weft::lab {

struct Unread {
  const char* settings;
  const char* because;
  bool (*holds)(const sim::Scenario& s);
  void (*forget)(sim::Scenario& s);
};

std::span<const Unread> unread_rules();

// Sets what is not read to 0; the rules that held. The scenario is resolved; it is not to be run afterwards.
std::vector<const Unread*> forget_unread(sim::Scenario& s);

}  // namespace weft::lab
