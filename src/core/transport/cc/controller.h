// Congestion control as a plug-in: one file per algorithm, one row per named parameter set. A controller
// sees samples and answers with a window and a rate; it never sees a queue pair. Its state is a
// value inside the queue pair's fourth cache line, 40 bytes beside the 8 of the pacer.
//
// Controllers have no timers of their own: whoever asks for the permit says what time it is, and what a
// timer would have done since the last call is done then, in the same order. A rate that nobody asks for
// need not change.
//
// Arithmetic is integer or fixed point, so that every compiler and both worlds compute the same bits:
// rates in kb/s in 32 bits (up to 4.29 Tb/s), fractions in 1/65536.
//
// Published parameter sets of one algorithm differ fourfold, so a set has a name and a source.
//
// To add one: write its file, add its row to the table in registry.cc; the conformance suite in
// controller_test.cc then runs over it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/base/units.h"

namespace weft {

struct alignas(8) ControllerState {
  unsigned char bytes[40] = {};
};

struct ControllerStart {
  Rate line_rate;                 // of the port; every controller starts there, as IRN's flows do (IRN §4.1)
  std::uint32_t bdp_packets = 1;  // the largest useful window
  Time now;
};

struct AckSample {
  Time now;
  std::uint32_t packets = 0;     // of ours, newly covered by this acknowledgement
  bool congestion_echo = false;  // one packet of ours arrived with a congestion mark
  Duration rtt{};                // of one packet that this acknowledgement covers; zero: none was timed
};

// One per recovery: it began, by a NAK or by a time-out.
struct LossSample {
  Time now;
  bool timeout = false;
};

struct SendSample {
  Time now;
  std::uint32_t bytes = 0;  // of frames
};

struct Permit {
  std::uint32_t window_packets = UINT32_MAX;  // in flight
  Rate rate{};                                // zero: as fast as the port can
};

struct Controller {
  const char* name;
  const char* text;
  const char* source;     // where its parameters come from
  bool wants_marks;       // its packets say that the network may mark them (ECT)
  Duration cnp_interval;  // as notification point: at most one CNP per queue pair within this long
  void (*start)(ControllerState&, const ControllerStart&);
  void (*on_ack)(ControllerState&, const AckSample&);
  void (*on_loss)(ControllerState&, const LossSample&);
  void (*on_cnp)(ControllerState&, Time now);
  void (*on_sent)(ControllerState&, const SendSample&);
  Permit (*permit)(ControllerState&, Time now);
};

// No controller answers a lower rate, unless the line itself is slower: what HPCC's configuration bounds
// its rates by (docs/protocol/congestion.md#dcqcn).
inline constexpr Rate kLeastRate = megabits(100);

// All rows; row 0 is `none`.
std::span<const Controller* const> controllers();
std::optional<std::uint8_t> find_controller(std::string_view name);

extern const Controller kNoController;
extern const Controller kAimd;
extern const Controller kDctcp;
extern const Controller kDcqcnSigcomm15;
extern const Controller kDcqcnHpcc;
extern const Controller kDcqcnConweave;
extern const Controller kDcqcnAuthors;
extern const Controller kDcqcnBackOff;
extern const Controller kTimely40;
extern const Controller kTimely100BackOff;
extern const Controller kTimely40BackOff;
extern const Controller kTimely100;

// --- for the files of the controllers ---

// docs/protocol/congestion.md#notification-point, DCQCN's. Others keep to it, too: a peer may listen.
inline constexpr Duration kCnpInterval = microseconds(50);

template <class T>
T& state_as(ControllerState& s) {
  static_assert(sizeof(T) <= sizeof s.bytes && alignof(T) <= alignof(ControllerState));
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  return *std::launder(reinterpret_cast<T*>(s.bytes));
}
template <class T>
T& state_new(ControllerState& s) {
  static_assert(sizeof(T) <= sizeof s.bytes && alignof(T) <= alignof(ControllerState));
  return *new (s.bytes) T{};
}

using Kbps = std::uint32_t;
constexpr Kbps to_kbps(Rate r) {
  return static_cast<Kbps>(std::clamp<std::uint64_t>(r.bps / 1000U, 1, UINT32_MAX / 2));
}
constexpr Rate to_rate(Kbps r) { return {std::uint64_t{r} * 1000U}; }

using Fraction = std::uint32_t;  // in 1/65536
inline constexpr Fraction kOne = 65536;
// v - v x f, f at most one.
constexpr std::uint32_t reduced(std::uint32_t v, Fraction f) {
  return v - static_cast<std::uint32_t>((std::uint64_t{v} * f) >> 16U);
}

// What a rate does about losses. Timely and DCQCN as published do nothing; IRN §4.3 also tried them
// "explicitly backing off on losses", to make go-back-N bearable, and does not say by how much. Here by half,
// once per recovery, as TCP's window.
enum class OnLoss : std::uint8_t { kNothing, kHalve };

}  // namespace weft
