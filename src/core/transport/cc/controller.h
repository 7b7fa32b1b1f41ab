// Congestion control as a plug-in: one file and one row per controller. A controller sees samples and
// answers with a window and a rate; it never sees a queue pair (DESIGN §4.3). Its state is a value of
// at most 48 bytes inside the queue pair's fourth cache line.
//
// To add one: write its file, add its row to the table in registry.cc; the conformance suite in
// controller_test.cc then runs over it.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/units.h"

namespace weft {

struct alignas(8) ControllerState {
  unsigned char bytes[48] = {};
};

struct AckSample {
  Time now;
  std::uint32_t packets = 0;  // newly covered by this acknowledgement
  std::uint32_t bytes = 0;
  bool congestion_echo = false;
};

struct Permit {
  std::uint32_t window_packets = UINT32_MAX;
  Rate rate{};  // zero: no pacing
};

struct Controller {
  const char* name;
  const char* text;
  void (*start)(ControllerState&, Rate line_rate, std::uint32_t bdp_packets, Time now);
  void (*on_ack)(ControllerState&, const AckSample&);
  void (*on_loss)(ControllerState&, Time now);
  void (*on_cnp)(ControllerState&, Time now);
  Permit (*permit)(const ControllerState&);
};

std::span<const Controller* const> controllers();
extern const Controller kNoController;

}  // namespace weft
