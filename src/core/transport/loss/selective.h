// What irn, its variants and srnic share: the receiver keeps what is out of order and answers each such
// packet with a NACK (first packet missing, trigger); the sender collects triggers in a bitmap.
//
//      una                 lost           max
//       |  x x o o x o o     o             |        o = SACKed   x = lost: below `lost`, not SACKed
//       |      ^ rtx                       |
//
// Within one recovery no packet is resent twice (`rtx` only moves forward); a retransmission that is
// lost again is found by time-out, which begins again at una. The packets in [rtx, lost) that are not SACKed
// are what SRNIC calls the retry queue: kept as a bitmap, sent before anything new, scheduled like any other
// work.
#pragma once
#include "core/transport/loss/scheme.h"

namespace weft::selective {

// Begins recovery: a bitmap block, or without one a rewind (go-back-N, counted) and false.
bool enter(LossContext& c, SendStream& s);
// Ends it; if packets sent meanwhile are SACKed above a hole, the next one begins.
void leave(LossContext& c, SendStream& s);
// Goes back to una and sends everything again.
void rewind(LossContext& c, SendStream& s);
// `una` moved by `acked`, and recovery goes on.
void advance(SendStream& s, std::uint64_t acked);

void on_ack(LossContext& c, SendStream& s, std::uint64_t acked);
void on_nack(LossContext& c, SendStream& s, const Nack& n);
void on_timeout(LossContext& c, SendStream& s);
bool next_lost(LossContext& c, SendStream& s, Seq& out);
Seq skip_received(LossContext& c, const SendStream& s, Seq from);
Arrival classify(LossContext& c, RecvStream& r, Seq seq);
void hold(LossContext& c, RecvStream& r, Seq seq, bool message_end);

}  // namespace weft::selective
