// What a switch's buffer is, and where PFC's limits in it lie.
//
// The packet that takes a queue over its limit may have the largest size. More packets follow: those on the
// wire in both directions while X-OFF travels, the packet that X-OFF has to wait for (and an X-ON before it),
// and the packet that the far end has begun (IEEE 802.1Qbb, annex O). A buffer keeps that much headroom
// above the limit for every link, and then PFC never drops:
//
//   headroom = 2 x delay x rate + 3 largest frames + 2 PFC frames
//
//   input-queued    limit = the port's buffer / classes - headroom
//   output-queued   limit = alpha x (buffer - headroom of all ports and classes - what is in use)
//
// X-ON is two largest frames below the limit.
//
// Credits (IRN §7) instead: each ingress port and class has a share of the buffer that is its own, the sender
// knows how much of it is free, and begins a packet only when the largest frame would fit. A share of
// one round trip's worth keeps a link busy, and the headroom above is at least that much.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/units.h"

namespace weft::sim {

enum class SwitchKind : std::uint8_t { kOutputQueued, kInputQueued };

struct EcnConfig {
  enum class Kind : std::uint8_t { kNone, kStep, kRed };
  Kind kind = Kind::kNone;
  std::uint64_t low = 0;                  // step: mark from here on; red: probability begins to rise
  std::uint64_t high = 0;                 // red: here it has risen to `probability`, and beyond it is one
  std::uint32_t probability = 1'000'000;  // millionths
};

struct SwitchConfig {
  SwitchKind kind = SwitchKind::kOutputQueued;
  Bytes buffer{0};  // input-queued: of each ingress port; output-queued: of the switch. 0: no bound
  Bytes queue{0};   // bound of each output's queue; 0: none
  std::uint32_t alpha_64 = 64;  // dynamic threshold, in 64ths
  bool pfc = false;
  bool credits = false;
  std::uint32_t classes = 1;  // traffic classes in use: each may have to be stopped, with headroom of its own
  Bytes xoff{0};              // a fixed limit instead of the computed one
  Bytes xon{0};               // where it ends; 0: two largest frames below
  std::uint32_t largest_frame = 4096 + 128;
  EcnConfig ecn;
};

// The credit of one ingress port and class.
inline std::uint64_t credit_share(const SwitchConfig& c, std::uint64_t ports) {
  return c.buffer.n / c.classes / (c.kind == SwitchKind::kInputQueued ? 1U : ports);
}

// The limits of one ingress port.
struct PauseLimits {
  std::uint64_t headroom = 0;
  std::uint64_t xoff = 0;  // fixed; 0: dynamic
};

inline Bytes pfc_headroom(Rate rate, Duration delay, std::uint32_t largest_frame, std::uint32_t pfc_frame) {
  __extension__ using Wide = unsigned __int128;
  const Wide bits = Wide{rate.bps} * static_cast<std::uint64_t>(delay.ps) * 2U;
  const auto on_the_wire = static_cast<std::uint64_t>((bits + 7'999'999'999'999ULL) / 8'000'000'000'000ULL);
  return {on_the_wire + 3ULL * largest_frame + 2ULL * pfc_frame};
}

inline std::uint64_t pause_limit(const SwitchConfig& c, const PauseLimits& in, std::uint64_t reserved,
                                 std::uint64_t used) {
  if (in.xoff != 0 || c.buffer.n == 0) return in.xoff;
  const std::uint64_t shared = c.buffer.n - std::min(c.buffer.n, reserved);
  return (shared - std::min(shared, used)) * c.alpha_64 / 64U;
}

inline std::uint64_t resume_limit(const SwitchConfig& c, std::uint64_t pause_limit) {
  if (c.xon.n != 0) return std::min(c.xon.n, pause_limit);
  const std::uint64_t gap = 2ULL * c.largest_frame;
  return pause_limit > gap ? pause_limit - gap : 0;
}

}  // namespace weft::sim
