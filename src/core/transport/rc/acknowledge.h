// ACKs, NAKs and READ ACKs in; completion of requests (rc/acknowledge.cc).
#pragma once
#include "core/transport/engine.h"

namespace weft {

void rc_on_acknowledge(Engine& e, QueuePair& q, const wire::Header& h, Time now);
void rc_on_read_acknowledge(Engine& e, QueuePair& q, const wire::Header& h, Time now);
// Everything before `to` is acknowledged, as far as no unanswered READ stands in the way (roce).
// Returns false when one does: its response is missing.
bool rc_acknowledge(Engine& e, QueuePair& q, Seq to, Time now);
// Moves una to `to` unconditionally. `ours`: the numbers are of packets that we sent, not of READ responses.
void rc_advance(Engine& e, QueuePair& q, Seq to, Time now, bool ours = true);
void rc_complete_requests(Engine& e, QueuePair& q, Time now);
void rc_reads_progress(Engine& e, QueuePair& q, Seq reached,
                       Time now);  // issued READs whose responses are all here
void rc_implied_nak(Engine& e, QueuePair& q, Time now);

}  // namespace weft
