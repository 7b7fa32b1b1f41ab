#include "lab/unread.h"

#include <array>

namespace weft::lab {
namespace {

using sim::Scenario;

// IRN, SRNIC: how long a sender waits, and up to how many packets in flight it waits the shorter time
// (device_config.cc, connect.cc). TCP takes its own limits from rto_high, so it is left out.
constexpr std::array kRules{
    Unread{"transport.rto_low, transport.rto_high, transport.rto_low_packets", "time-outs are off",
           [](const Scenario& s) { return !s.transport.timeouts && !s.transport.tcp; },
           [](Scenario& s) {
             s.transport.rto_low = {};
             s.transport.rto_high = {};
             s.transport.rto_low_packets = 0;
           }},
};

}  // namespace

std::span<const Unread> unread_rules() { return kRules; }

std::vector<const Unread*> forget_unread(Scenario& s) {
  std::vector<const Unread*> held;
  for (const Unread& rule : kRules) {
    if (!rule.holds(s)) continue;
    rule.forget(s);
    held.push_back(&rule);
  }
  return held;
}

}  // namespace weft::lab
