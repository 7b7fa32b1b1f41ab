// Messages out that nobody acknowledges, UC and UD (uc/requester.cc).
#pragma once
#include "core/transport/engine.h"

namespace weft {

bool uc_sendable(Engine& e, QueuePair& q);
PathNeed uc_need(Engine& e, QueuePair& q);
Filled uc_send(Engine& e, QueuePair& q, Time now, Budget budget);
void uc_settle(Engine& e);  // what the last transmit sent has left, and is complete
void uc_gather_failed(Engine& e, QueuePair& q, WirePsn psn);
void uc_on_timer(Engine& e, QueuePair& q, Time now);
void uc_release(Engine& e, QueuePair& q);

}  // namespace weft
