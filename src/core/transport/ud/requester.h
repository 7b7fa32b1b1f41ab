// Datagrams: their destinations (ud/requester.cc); uc/requester.cc sends them.
#pragma once
#include "core/transport/engine.h"

namespace weft {

Outcome<void> ud_check_address(const Engine& e, const QueuePair& q, const SendWr& wr);
void ud_address(const Engine& e, const SendWr& wr, SendWqe& w);
PathId ud_path(const SendWqe& w);
void ud_header(const Engine& e, const QueuePair& q, const SendWqe& w, wire::Header& h);

}  // namespace weft
