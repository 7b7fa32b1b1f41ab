// A congestion window in whole packets, as TCP counts one (RFC 5681): what AIMD and DCTCP share.
//
//   below `threshold`   one more per packet acknowledged (slow start; only after a time-out, for flows
//                       begin at the BDP)
//   above               one more per window acknowledged
#pragma once
#include "core/transport/cc/controller.h"

namespace weft {

struct Window {
  std::uint32_t packets = 1;
  std::uint32_t most = 1;
  std::uint32_t threshold = 0;
  std::uint32_t credit = 0;  // acknowledged since the last increase

  void start(std::uint32_t bdp) {
    most = std::max(bdp, 1U);
    packets = most;
    threshold = 0;
    credit = 0;
  }
  void grow(std::uint32_t acked) {
    if (packets < threshold) {
      const std::uint32_t step = std::min(acked, threshold - packets);
      packets += step;
      acked -= step;
    }
    credit += std::min(acked, most);
    while (credit >= packets && packets < most) {
      credit -= packets;
      ++packets;
    }
    credit = std::min(credit, packets);
    packets = std::min(packets, most);
  }
  void shrink_to(std::uint32_t n) {
    packets = std::max(n, 1U);
    threshold = 0;
    credit = 0;
  }
  // RFC 5681 §3.1: back to one packet. A repeated time-out does not halve what was already halved.
  void time_out() {
    if (packets > 1) threshold = std::max(packets / 2, 2U);
    packets = 1;
    credit = 0;
  }
};

}  // namespace weft
