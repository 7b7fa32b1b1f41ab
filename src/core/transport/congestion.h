// Between queue pairs and controllers: what a controller hears of, and what its answer does.
//
//   samples   ACKs, losses, CNPs, bytes sent  ->  the row's functions  ->  QueuePair::window, next_send
//   window    packets in flight of requests and (irn) READ responses together: they share the way to the
//             peer. One of each may always be in flight, so neither waits for the other's acknowledgements.
//   pacing    a queue pair whose rate does not let it send yet waits in Engine::pacing, marked kQueued: it is
//             queued once, either there or in the ready queue, and costs no turn until its time has come.
//   marks     a packet that the network marked is echoed in its ACK (BECN, and the flag of a NACK) and
//             answered by a CNP, one in an interval (docs/protocol/congestion.md#notification-point).
//
// A queue pair of row 0 (`none`) never comes here: callers ask controlled() first.
//
// Time that the oldest packet waits for its rate is not time that the peer is silent: its clocks are put
// forward by as much.
#pragma once
#include "core/transport/engine.h"

namespace weft {

inline bool controlled(const QueuePair& q) { return q.controller_row != 0; }

void congestion_start(Engine& e, QueuePair& q, std::uint8_t row, Time now);
void congestion_acked(Engine& e, QueuePair& q, std::uint64_t packets, Duration rtt, Time now);
void congestion_lost(Engine& e, QueuePair& q, Time now, bool timeout);
// After a time-out of this sender. What is to go again waits for the rate as well.
void congestion_timed_out(Engine& e, QueuePair& q, Sender& s, Time now);
// How many packets may be in flight of a stream, `other` being the queue pair's other one; at most `cap`.
std::uint64_t congestion_window(const Engine& e, const QueuePair& q, const SendStream& other,
                                std::uint64_t cap);

// --- around a turn (device.cc) ---
Budget congestion_budget(Engine& e, QueuePair& q, Time now, Budget budget);
void congestion_sent(Engine& e, QueuePair& q, Time now, wire::Burst& burst);
void pacing_wait(Engine& e, QueuePair& q, Time now);  // until next_send
void pacing_release(Engine& e);                       // the first that waits
void pacing_leave(Engine& e, QueuePair& q);

// --- marks ---
void congestion_experienced(Engine& e, QueuePair& q, Time now);  // a marked packet with data arrived
void congestion_echoed(Engine& e, QueuePair& q, Time now);       // an ACK says that one of ours was marked
void congestion_notified(Engine& e, QueuePair& q, Time now);     // a CNP arrived

// roce: the mark of an earlier packet that asked for no ACK goes into the next.
inline bool take_echo(QueuePair& q) {
  const bool owed = (q.level & kEchoOwed) != 0;
  q.level &= kServiceLevel;
  return owed;
}

}  // namespace weft
