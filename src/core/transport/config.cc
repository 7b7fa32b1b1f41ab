#include "core/transport/config.h"

#include <algorithm>
#include <bit>

#include "core/transport/cc/controller.h"
#include "core/transport/stream.h"

namespace weft {

Result<void> DeviceConfig::validate() const {
  if (max_qp == 0 || max_qp > (1U << qpn_bits)) return fail("max_qp must be between 1 and 2^qpn_bits");
  if (qpn_bits == 0 || qpn_bits > 24) return fail("qpn_bits must be between 1 and 24");
  if (!std::has_single_bit(window_packets) || window_packets < 64 || window_packets > 32768)
    return fail("window_packets must be a power of two between 64 and 32768");
  if (bdp_cap == 0 || bdp_cap > window_packets) return fail("bdp_cap must be between 1 and window_packets");
  if (loss_blocks >= kNoBlock) return fail("loss_blocks must be below 65535");
  if (!std::has_single_bit(control_ring) || control_ring < 2)  // a CNP alone would keep every ACK out
    return fail("control_ring must be a power of two, at least 2");
  if (max_ring == 0 || max_ring > 32768) return fail("max_ring must be between 1 and 32768");
  if (burst_packets == 0 || burst_packets > 1024) return fail("burst_packets must be between 1 and 1024");
  if (burst_bytes < 4096 + 128) return fail("burst_bytes must hold one packet of 4096 bytes and its headers");
  if (ack_every == 0) return fail("ack_every must be at least 1");
  if (roce_window != 0 && ack_every > roce_window)
    return fail("ack_every must not exceed roce_window: nothing in a full window would ask for an ACK");
  if (nack_threshold == 0 || nack_threshold > bdp_cap)
    return fail("nack_threshold must be between 1 and bdp_cap");
  if (rto_low.ps <= 0 || rto_high < rto_low)
    return fail("rto_low must be positive and no larger than rto_high");
  if (roce_timeout.ps < 0) return fail("roce_timeout must not be negative");
  if (controller >= controllers().size()) return fail("controller must be a row of the table of controllers");
  if (line_rate.bps < 1'000'000) return fail("line_rate must be at least 1 Mb/s");
  if (pacing_quantum.ps < 0 || pacing_quantum > milliseconds(10))
    return fail("pacing_quantum must be between 0 and 10 ms");
  if (std::any_of(level_weights.begin(), level_weights.end(), [](std::uint8_t w) { return w == 0; }))
    return fail("level_weights must be at least 1");
  if (presumed_flight.ps <= 0) return fail("presumed_flight must be positive");
  if (port_mtu < 256 || port_mtu > 4096 || port_mtu % 4 != 0)
    return fail("port_mtu must be a multiple of 4 between 256 and 4096");
  if (max_mr == 0 || max_mr > (1U << 24U)) return fail("max_mr must be between 1 and 2^24");
  return {};
}

}  // namespace weft
