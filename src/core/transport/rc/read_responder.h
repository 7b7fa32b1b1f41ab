// Answers to READs out (rc/read_responder.cc).
#pragma once
#include "core/transport/engine.h"

namespace weft {

bool rc_responses_sendable(Engine& e, QueuePair& q);
bool rc_response_again(Engine& e, QueuePair& q);      // of what is sendable: the next was sent before
PathNeed rc_responses_need(Engine& e, QueuePair& q);  // if it were called now
Filled rc_send_responses(Engine& e, QueuePair& q, Time now, Budget budget);
void rc_release_served(Engine& e, QueuePair& q);  // irn: READs whose responses are all acknowledged
ReadServed* rc_find_served(Engine& e, QueuePair& q, Seq response);

}  // namespace weft
