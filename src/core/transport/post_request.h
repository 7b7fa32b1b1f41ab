// Posting a request, for every service (post_request.cc).
#pragma once
#include "core/transport/engine.h"

namespace weft {

// Whether it would be taken behind `ahead` others that are posted before it.
Outcome<void> check_request(const Engine& e, const QueuePair& q, const SendWr& wr, std::uint32_t ahead);
Outcome<std::uint32_t> post_request(Engine& e, QueuePair& q, const SendWr& wr);

}  // namespace weft
