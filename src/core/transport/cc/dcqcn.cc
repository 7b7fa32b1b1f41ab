// DCQCN's reaction point (Zhu et al., SIGCOMM 2015; docs/protocol/congestion.md#dcqcn). The notification
// point, which turns marks into CNPs, is in transport/congestion.cc: it is the same for all.
//
//   CNP              target = current; current *= 1 - alpha/2; alpha = (1-g) alpha + g; stages = 0
//   alpha timer      alpha = (1-g) alpha
//   increase timer   \ each counts its own stage, then
//   byte counter     /   both below F    current = (current + target) / 2       fast recovery
//                        one reached F   target += Rai, then the same           additive
//                        both did        target += Rhai, then the same          hyper
//
// Without a byte counter (HPCC's model of a ConnectX) the timer alone decides: fast recovery below F,
// one additive step at F, hyper beyond.
//
// Losses say nothing to it: recovery is the loss scheme's, congestion is told by marks (IRN §3.2). The row
// that backs off takes a loss for a CNP of alpha one, from which alpha learns nothing.
#include "core/transport/cc/controller.h"

namespace weft {
namespace {

struct Parameters {
  unsigned gain_shift;  // g = 2^-gain_shift
  Duration alpha_timer;
  Duration increase_timer;
  std::uint32_t byte_counter;  // 0: none
  std::uint8_t fast_stages;    // F
  Kbps additive;               // Rai
  Kbps hyper;                  // Rhai
  Kbps least;
};

struct State {
  Kbps current = 0;
  Kbps target = 0;
  Kbps line = 0;
  Fraction alpha = kOne;
  std::uint32_t bytes = 0;  // sent since the byte counter's last event
  std::uint8_t timer_stage = 0;
  std::uint8_t byte_stage = 0;
  Time alpha_at = kNever;     // next expiry; never: alpha is zero, or no CNP has come yet
  Time increase_at = kNever;  // never: at line rate
};
static_assert(sizeof(State) == 40);

template <const Parameters& P, OnLoss L>
struct Dcqcn {
  static void start(ControllerState& state, const ControllerStart& w) {
    State& s = state_new<State>(state);
    s.current = s.target = s.line = to_kbps(w.line_rate);
  }

  static void count(std::uint8_t& stage) {
    if (stage != UINT8_MAX) ++stage;
  }
  static void increase(State& s) {
    const bool by_timer = s.timer_stage >= P.fast_stages;
    const bool by_bytes = P.byte_counter != 0 ? s.byte_stage >= P.fast_stages : s.timer_stage > P.fast_stages;
    if (by_timer || by_bytes) s.target += by_timer && by_bytes ? P.hyper : P.additive;
    s.target = std::min(s.target, s.line);
    s.current += (s.target - s.current + 1) / 2;
  }

  // What the timers have done by now. At most one step per period, and none once alpha is zero and the
  // rate is back: a few thousand after the longest pause.
  static void catch_up(State& s, Time now) {
    while (s.alpha_at <= now) {
      s.alpha -= (s.alpha + (1U << P.gain_shift) - 1U) >> P.gain_shift;
      s.alpha_at = s.alpha == 0 ? kNever : s.alpha_at.after(P.alpha_timer);
    }
    while (s.increase_at <= now) {
      increase(s);
      count(s.timer_stage);
      s.increase_at = s.current == s.line ? kNever : s.increase_at.after(P.increase_timer);
    }
  }

  static void decrease(State& s, Fraction by, Time now) {
    s.target = s.current;
    s.current = std::max(reduced(s.current, by), std::min(P.least, s.line));
    s.increase_at = now.after(P.increase_timer);
    s.timer_stage = s.byte_stage = 0;
    s.bytes = 0;
  }

  static void on_ack(ControllerState&, const AckSample&) {}
  static void on_loss(ControllerState& state, const LossSample& l) {
    if (L == OnLoss::kNothing) return;
    State& s = state_as<State>(state);
    catch_up(s, l.now);
    decrease(s, kOne / 2, l.now);
  }

  static void on_cnp(ControllerState& state, Time now) {
    State& s = state_as<State>(state);
    catch_up(s, now);
    decrease(s, s.alpha / 2, now);
    s.alpha = s.alpha - (s.alpha >> P.gain_shift) + (kOne >> P.gain_shift);
    s.alpha = std::min(s.alpha, kOne);
    s.alpha_at = now.after(P.alpha_timer);
  }

  static void on_sent(ControllerState& state, const SendSample& sent) {
    State& s = state_as<State>(state);
    catch_up(s, sent.now);
    if (P.byte_counter == 0 || s.current == s.line) return;
    s.bytes += std::min(sent.bytes, UINT32_MAX / 2);
    while (s.bytes >= P.byte_counter && s.current != s.line) {
      s.bytes -= P.byte_counter;
      increase(s);
      count(s.byte_stage);
    }
  }

  static Permit permit(ControllerState& state, Time now) {
    State& s = state_as<State>(state);
    catch_up(s, now);
    return {UINT32_MAX, s.current == s.line ? Rate{} : to_rate(s.current)};
  }
};

template <const Parameters& P, OnLoss L = OnLoss::kNothing>
constexpr Controller row(const char* name, const char* source, Duration cnp_interval) {
  using D = Dcqcn<P, L>;
  return {name,
          L == OnLoss::kNothing ? "a rate: reduced by congestion notification packets, recovered in stages"
                                : "dcqcn's rate, halved by every loss (IRN §4.3)",
          source,
          true,
          cnp_interval,
          D::start,
          D::on_ack,
          D::on_loss,
          D::on_cnp,
          D::on_sent,
          D::permit};
}

constexpr Kbps kMega = 1000;
constexpr Kbps kLeast = to_kbps(kLeastRate);

constexpr Parameters kSigcomm15{8, microseconds(55), microseconds(55), 10'000'000,
                                5, 40 * kMega,       40 * kMega,       kLeast};
constexpr Parameters kHpcc{8, microseconds(1), microseconds(300), 0, 1, 20 * kMega, 200 * kMega, kLeast};
constexpr Parameters kConweave{8, microseconds(1), microseconds(300), 0, 1, 40 * kMega, 100 * kMega, kLeast};
constexpr Parameters kAuthors{8, microseconds(55), microseconds(60), 300'000'000,
                              5, 40 * kMega,       200 * kMega,      kLeast};

}  // namespace

constinit const Controller kDcqcnSigcomm15 =
    row<kSigcomm15>("dcqcn", "Zhu et al., SIGCOMM 2015, as usually quoted; 40G", microseconds(50));
constinit const Controller kDcqcnHpcc =
    row<kHpcc>("dcqcn-hpcc", "HPCC's ns-3 configuration at 100G", microseconds(4));
constinit const Controller kDcqcnConweave =
    row<kConweave>("dcqcn-conweave", "ConWeave's ns-3 configuration at 100G", microseconds(4));
constinit const Controller kDcqcnAuthors =
    row<kAuthors>("dcqcn-ns3", "the authors' ns-3 sample at 40G", microseconds(50));
constinit const Controller kDcqcnBackOff = row<kSigcomm15, OnLoss::kHalve>(
    "dcqcn-backoff", "IRN §4.3 over dcqcn's row; by half is our choice", microseconds(50));

}  // namespace weft
