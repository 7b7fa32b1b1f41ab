// Timely (Mittal et al., SIGCOMM 2015; docs/protocol/congestion.md#timely): the round-trip time, and how it
// changes, tell how long the queues are. With each RTT that was measured, about one per round trip:
//
//   diff     = (1-a) diff + a (rtt - last)       gradient = diff / minRTT
//   rtt < T_low      rate += delta
//   rtt > T_high     rate *= 1 - b (1 - T_high / rtt)
//   gradient <= 0    rate += delta; from the fifth in a row on, hyper-active: += hyper
//   else             rate *= 1 - b gradient
//
// The gradient alone has many points of rest, so two flows need not come to share evenly; the
// conformance suite says how unevenly they may.
#include "core/transport/cc/controller.h"

namespace weft {
namespace {

struct Parameters {
  Kbps delta;
  Kbps hyper;  // step of hyper-active increase
  Duration low;
  Duration high;
  Duration least_rtt;
  Fraction beta;
  std::uint8_t hyper_after;
  Kbps least;
};

struct State {
  Kbps rate = 0;
  Kbps line = 0;
  std::int64_t last_ps = 0;  // RTT; zero: none yet
  std::int64_t diff_ps = 0;
  std::uint8_t falling = 0;  // gradients in a row that were not positive
};

constexpr std::int64_t kLongest = seconds(1).ps;  // RTTs beyond count as this

template <const Parameters& P, OnLoss L>
struct Timely {
  static void start(ControllerState& state, const ControllerStart& w) {
    State& s = state_new<State>(state);
    s.rate = s.line = to_kbps(w.line_rate);
  }

  static void on_ack(ControllerState& state, const AckSample& a) {
    if (a.rtt.ps <= 0) return;
    State& s = state_as<State>(state);
    const std::int64_t rtt = std::min(a.rtt.ps, kLongest);
    if (s.last_ps == 0) s.last_ps = rtt;
    s.diff_ps = (s.diff_ps + 7 * (rtt - s.last_ps)) / 8;  // a = 0.875
    s.last_ps = rtt;
    if (rtt < P.low.ps) {
      s.falling = 0;
      raise(s, P.delta);
    } else if (rtt > P.high.ps) {
      s.falling = 0;
      // 1 - T_high / rtt, between 0 and 1.
      cut(s, static_cast<std::uint64_t>(kOne - P.high.ps * kOne / rtt));
    } else if (s.diff_ps <= 0) {
      if (s.falling != UINT8_MAX) ++s.falling;
      raise(s, s.falling >= P.hyper_after ? P.hyper : P.delta);
    } else {
      s.falling = 0;
      cut(s, static_cast<std::uint64_t>(s.diff_ps * kOne / P.least_rtt.ps));
    }
  }

  static void on_loss(ControllerState& state, const LossSample&) {
    if (L == OnLoss::kNothing) return;
    State& s = state_as<State>(state);
    s.rate = std::max(s.rate / 2, std::min(P.least, s.line));
    s.falling = 0;
  }
  static void on_cnp(ControllerState&, Time) {}
  static void on_sent(ControllerState&, const SendSample&) {}
  static Permit permit(ControllerState& state, Time) {
    const State& s = state_as<State>(state);
    return {UINT32_MAX, s.rate == s.line ? Rate{} : to_rate(s.rate)};
  }

 private:
  static void raise(State& s, Kbps by) { s.rate = std::min(s.rate + by, s.line); }
  // rate *= 1 - beta x by; `by` in 1/65536 and maybe above one.
  static void cut(State& s, std::uint64_t by) {
    const std::uint64_t most = std::min<std::uint64_t>(by * P.beta / kOne, kOne);
    s.rate = std::max(reduced(s.rate, static_cast<Fraction>(most)), std::min(P.least, s.line));
  }
};

template <const Parameters& P, OnLoss L = OnLoss::kNothing>
constexpr Controller row(const char* name, const char* source) {
  using T = Timely<P, L>;
  return {name,
          L == OnLoss::kNothing ? "a rate: follows the round-trip time and its gradient"
                                : "timely's rate, halved by every loss (IRN §4.3)",
          source,
          false,
          kCnpInterval,
          T::start,
          T::on_ack,
          T::on_loss,
          T::on_cnp,
          T::on_sent,
          T::permit};
}

constexpr Kbps kMega = 1000;
constexpr Fraction kBeta = kOne * 8 / 10;

constexpr Parameters kAt100{100 * kMega, 500 * kMega, microseconds(50),   microseconds(500), microseconds(20),
                            kBeta,       5,           to_kbps(kLeastRate)};
constexpr Parameters kAt40{40 * kMega, 200 * kMega, microseconds(50),   microseconds(500), microseconds(20),
                           kBeta,      5,           to_kbps(kLeastRate)};

}  // namespace

constinit const Controller kTimely100 =
    row<kAt100>("timely", "HPCC's and ConWeave's ns-3 configurations at 100G");
constinit const Controller kTimely40 =
    row<kAt40>("timely-40g", "HPCC's and ConWeave's ns-3 configurations at 40G");
constinit const Controller kTimely100BackOff =
    row<kAt100, OnLoss::kHalve>("timely-backoff", "IRN §4.3 over timely's row; by half is our choice");
constinit const Controller kTimely40BackOff =
    row<kAt40, OnLoss::kHalve>("timely-40g-backoff", "IRN §4.3 over timely-40g's row; by half is our choice");

}  // namespace weft
