// Error states and flushing (rc/failure.cc).
#pragma once
#include "core/transport/engine.h"

namespace weft {

// The request in `slot` failed with `status`; everything else is flushed.
void rc_fail(Engine& e, QueuePair& q, WcStatus status, std::uint16_t slot, Time now);
void rc_fail_in_order(Engine& e, QueuePair& q, WcStatus status, std::uint16_t slot, Time now);
void rc_enter_error(Engine& e, QueuePair& q);  // flush both queues
void fail_overrun(Engine& e);                  // queue pairs whose completion queue overran
void rc_stop_sending(Engine& e, QueuePair& q, WcStatus status, std::uint16_t slot, Time now);
void rc_release(Engine& e, QueuePair& q);  // give back blocks, path credit, timers
// UC, UD: the request at sq_send failed with `status`, those behind it are flushed: SQE.
void rc_fail_send_queue(Engine& e, QueuePair& q, WcStatus status);

}  // namespace weft
