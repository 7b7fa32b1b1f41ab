// What a NIC model asks of a Device for one queue pair, while others wait inside the NIC: a context that is
// not on the chip holds up its own queue pair only (csRNA §3). Packets may be given to the Device in any
// order across queue pairs anyway, and turns are taken by queue pair with pick and transmit; these are the
// rest.
//
//   poll_control(qpn)                 ACKs and NAKs that it owes, whatever others owe before it
//   pick_timer, then fire_timer(qpn)  its time-outs, as pick and transmit are its turns
//
// A queue pair that was picked has no deadline until it is given to fire_timer, or something new arms it.
#pragma once
#include "core/transport/device.h"

namespace weft {

// One burst, or empty.
wire::Burst poll_control(Device& device, Qpn qpn, Time now);
// The next queue pair that has a timer due; kNoQpn when none has. What is due and touches no queue pair is
// done on the way: void entries, early ones, rates.
Qpn pick_timer(Device& device, Time now);
void fire_timer(Device& device, Qpn qpn, Time now);

}  // namespace weft
