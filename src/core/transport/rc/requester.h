// Requests out (rc/requester.cc), and those that send nothing (rc/local.cc).
#pragma once
#include "core/transport/engine.h"

namespace weft {

bool rc_requests_sendable(Engine& e, QueuePair& q);
PathNeed rc_requests_need(Engine& e, QueuePair& q);  // if it were called now
bool rc_request_again(Engine& e, QueuePair& q);      // of what is sendable: the next was sent before
Filled rc_send_requests(Engine& e, QueuePair& q, Time now, Budget budget);
void rc_ask_in_time(Engine& e, const QueuePair& q, std::size_t packets, Time next);  // for an ACK
void rc_rewind(Engine& e, QueuePair& q);  // after nxt moved back to una: cursor and READs follow
std::uint16_t rc_slot_of(Engine& e, QueuePair& q, Seq seq);
// Appends the memory of `length` bytes from `from` of a message to the burst. False: a key does not allow it.
bool rc_gather(Engine& e, const ColdQueuePair& c, const SendWqe& w, std::uint16_t slot, std::uint32_t from,
               std::uint32_t length, std::uint32_t& count);

// The request at sq_send, and those behind it, that send nothing: memory windows.
void rc_run_local(Engine& e, QueuePair& q, Time now);

}  // namespace weft
