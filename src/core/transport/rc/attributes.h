// States and attributes of a queue pair (rc/attributes.cc).
#pragma once
#include "core/transport/engine.h"

namespace weft {

// SQD: every message that had begun is complete. Tells the user, if asked to.
bool rc_drained(const QueuePair& q);
void rc_check_drained(Engine& e, QueuePair& q);
Outcome<void> rc_modify(Engine& e, QueuePair& q, const QpAttr& attr, std::uint32_t mask, Time now);

}  // namespace weft
