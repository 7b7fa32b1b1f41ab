// Time-outs (rc/timers.cc).
#pragma once
#include "core/transport/engine.h"

namespace weft {

Time rc_deadline(Engine& e, QueuePair& q);
void rc_on_timer(Engine& e, QueuePair& q, Time now);
void rc_forgive(Engine& e, QueuePair& q, Time now, Duration stall);

}  // namespace weft
