// What X-RDMA's paper counts and derives, out of the middleware's own constants.
#pragma once
#include <array>
#include <span>

#include "lab/quantity.h"

namespace weft::lab {

std::span<const ComputedQuantity> xrdma_quantities();

// The calls of the paper's Table I and ours; (de)reg_mem is two.
struct CallRow {
  const char* theirs;
  const char* ours;  // of weft/channel.h
};
inline constexpr std::array<CallRow, 8> kTableOne{{{"send_msg", "weft_send"},
                                                   {"polling", "weft_poll"},
                                                   {"get_event_fd", "weft_event_fd"},
                                                   {"reg_mem", "weft_register"},
                                                   {"dereg_mem", "weft_deregister"},
                                                   {"set_flag", "weft_set"},
                                                   {"process_event", "weft_arm"},
                                                   {"trace_request", "weft_trace"}}};
inline constexpr std::array<const char*, 3> kStructures{"weft_context", "weft_channel", "weft_message"};

}  // namespace weft::lab
