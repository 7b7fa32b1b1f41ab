// ACKs, NAKs and CNPs out (rc/control.cc).
#pragma once
#include "core/transport/engine.h"

namespace weft {

void rc_schedule_ack(Engine& e, QueuePair& q, Receiving half, bool congestion);
void rc_ack_duplicate(Engine& e, QueuePair& q, Receiving half, const wire::Header& trigger, bool congestion);
// A packet ahead of the expected one was placed: it is kept, and the NACK says so.
void rc_keep(Engine& e, QueuePair& q, Receiving half, const wire::Header& trigger, Seq seq, bool message_end,
             bool congestion);
// A packet that might have been kept, but is not: it is counted, and the NACK says so.
void rc_decline(Engine& e, QueuePair& q, Receiving half, Arrival why, const wire::Header& trigger,
                bool congestion);
void rc_nak(Engine& e, QueuePair& q,
            std::uint8_t syndrome);  // RNR, sequence and error NAKs at the expected number
void rc_nak_read(Engine& e, QueuePair& q, std::uint8_t syndrome,
                 Seq request);                                         // a READ being answered failed
void rc_raise_fault(Engine& e, const QueuePair& q, std::uint8_t nak);  // no receive tells of it
void rc_push_cnp(Engine& e, QueuePair& q);
void rc_repeat_ack(Engine& e, QueuePair& q);
void rc_withdraw_acks(Engine& e, QueuePair& q,
                      Seq from);                  // roce: responses from here on did not leave after all
void rc_forget_control(Engine& e, QueuePair& q);  // this life of it ends: nothing is sent any more
void rc_reads_drained(Engine& e, QueuePair& q);
void rc_answers_given_up(Engine& e, QueuePair& q);  // nobody takes the READ responses that are left
wire::Burst rc_poll_control(Engine& e, Time now);

}  // namespace weft
