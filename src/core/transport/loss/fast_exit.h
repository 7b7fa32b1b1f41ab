// The receiver's way out of loss recovery (SRNIC §4.4.2, Figure 8).
//
// While packets are missing, whoever fills the bitmap lags behind whoever receives: SRNIC's software behind
// its hardware. The expected number that it computes may be old when it arrives. So the receiver remembers
// the most advanced run of consecutive packets, [psn_left, psn_right]; once the computed number falls into
// [psn_left, psn_right + 1] nothing is missing before psn_right, and the expected number is psn_right + 1.
//
// Without a lag it is a short cut: at psn_left the rest of the bitmap need not be walked.
#pragma once
#include <cstdint>

#include "core/base/seq.h"

namespace weft {

struct FastExit {
  Seq left{};
  Seq right{};
  std::uint32_t messages = 0;  // of the packets in the run, how many end a message
  bool any = false;

  // A packet ahead of the expected one arrived for the first time.
  void observe(Seq s, bool message_end) {
    if (any && s == right + 1) {
      right = s;
      messages += message_end ? 1U : 0U;
    } else if (!any || s > right) {
      left = right = s;
      messages = message_end ? 1U : 0U;
      any = true;
    }
  }
  bool open(Seq expected) const { return any && expected >= left && expected <= right + 1; }
};

}  // namespace weft
