// The one place where live code reads a clock. Everything below takes time as an argument.
//
// Time counts from the construction of the Clock: a Time in picoseconds holds 106 days, which is long
// for a process that uses verbs and short for a machine's uptime.
#pragma once
#include "core/base/units.h"

namespace weft::live {

class Clock {
 public:
  Clock();
  Time now() const;

 private:
  std::int64_t base_ns_;
};

}  // namespace weft::live
