// What holds of every detailed NIC, checked from outside on every audited run:
//
//   always    a place where jobs wait holds no more of them than have come
//   at rest   Little's law in every such place: items, integrated over time, are the times that they stayed
//             every byte over PCIe is accounted for: payload read and written is what packets carried, and
//             each WQE, completion and event is as long as the design says
#pragma once
#include "check/report.h"
#include "sim/nic/detailed_nic.h"

namespace weft::sim {

// `at_rest`: no event is to come.
void audit_nic(const DetailedNic& nic, Time now, bool at_rest, check::Report& report);

}  // namespace weft::sim
