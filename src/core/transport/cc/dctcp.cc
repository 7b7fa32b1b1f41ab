// DCTCP (RFC 8257; SRNIC §5 uses it for its congestion control module; docs/protocol/congestion.md#dctcp).
//
// Every marked packet is echoed by itself, so there is no delayed-ACK state machine. Once per window
//
//   alpha = (1 - g) alpha + g F          F: marked / acknowledged packets, g = 1/16
//
// and a mark takes alpha/2 of the window away, unless less than a window was acknowledged since the last such
// reaction: what was under way then still brings marks (RFC 8257 §3.3; RFC 3168 §6.1.2). Meanwhile it does
// not grow. The windows that alpha is measured over end on their own. A loss counts as in AIMD (RFC 8257
// §3.5). Flows begin at the BDP, where IRN's begin; alpha begins at one, so the first mark halves.
#include "core/transport/cc/window.h"

namespace weft {
namespace {

constexpr unsigned kGainShift = 4;  // g = 1/16: Linux tcp_dctcp, HPCC's configuration

struct State {
  Window window;
  std::uint32_t round = 0;   // packets still to be acknowledged in this window
  std::uint32_t acked = 0;   // in this window
  std::uint32_t marked = 0;  // of them
  Fraction alpha = kOne;
  std::uint32_t reacting = 0;  // packets to be acknowledged before it may be reduced again
};

void begin_round(State& s) {
  s.round = s.window.packets;
  s.acked = s.marked = 0;
}

void reduce_to(State& s, std::uint32_t packets) {
  s.reacting = s.window.packets;
  s.window.shrink_to(packets);
}

void start(ControllerState& state, const ControllerStart& w) {
  State& s = state_new<State>(state);
  s.window.start(w.bdp_packets);
  begin_round(s);
}

void end_round(State& s) {
  const std::uint32_t acked = std::max({s.acked, s.marked, 1U});
  const auto fraction = static_cast<Fraction>((std::uint64_t{s.marked} * kOne) / acked);
  // Rounded up on the way down, so that alpha reaches zero.
  const Fraction faded = s.alpha - ((s.alpha + (1U << kGainShift) - 1U) >> kGainShift);
  s.alpha = std::min(faded + (fraction >> kGainShift), kOne);
  begin_round(s);
}

void on_ack(ControllerState& state, const AckSample& a) {
  State& s = state_as<State>(state);
  if (a.congestion_echo) {
    s.marked = std::min(s.marked + 1U, UINT32_MAX / 2);
    if (s.reacting == 0) {
      const std::uint32_t cut =
          static_cast<std::uint32_t>((std::uint64_t{s.window.packets} * s.alpha) >> 17U);
      reduce_to(s, s.window.packets - cut);
    }
  }
  if (a.packets == 0) return;
  s.acked = std::min(s.acked, UINT32_MAX / 2) + std::min(a.packets, UINT32_MAX / 4);
  if (s.reacting == 0) {
    s.window.grow(a.packets);
  } else {
    s.reacting -= std::min(s.reacting, a.packets);
  }
  if (s.acked >= s.round) end_round(s);
}

void on_loss(ControllerState& state, const LossSample& l) {
  State& s = state_as<State>(state);
  if (l.timeout) {
    s.window.time_out();
    s.reacting = 0;  // slow start begins at once
  } else if (s.reacting == 0) {
    reduce_to(s, s.window.packets / 2);
  }
  begin_round(s);
}

void on_cnp(ControllerState&, Time) {}
void on_sent(ControllerState&, const SendSample&) {}
Permit permit(ControllerState& s, Time) { return {state_as<State>(s).window.packets, {}}; }

}  // namespace

const Controller kDctcp{"dctcp",
                        "a window: reduced by how many packets the network marks",
                        "RFC 8257, SRNIC §5; g = 1/16 of Linux and HPCC's configuration",
                        true,
                        kCnpInterval,
                        start,
                        on_ack,
                        on_loss,
                        on_cnp,
                        on_sent,
                        permit};

}  // namespace weft
