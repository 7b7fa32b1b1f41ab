// How a queue pair comes from RESET to RTS: three steps, and the attributes that each one takes
// (docs/protocol/verbs.md#attributes). The bits are those of libibverbs, so its users climb the same ladder.
#pragma once
#include <array>
#include <cstdint>
#include <utility>

#include "core/verbs/types.h"

namespace weft {

struct LadderStep {
  QpState state;
  std::uint32_t mask;
};

constexpr std::array<LadderStep, 3> ladder(QpType type) {
  std::uint32_t init = kAttrState | kAttrPkeyIndex | kAttrPort;
  std::uint32_t rtr = kAttrState;
  std::uint32_t rts = kAttrState | kAttrSqPsn;
  init |= type == QpType::kUd ? kAttrQkey : kAttrAccess;
  if (type != QpType::kUd) rtr |= kAttrPath | kAttrMtu | kAttrDestQpn | kAttrRqPsn;
  if (type == QpType::kRc) {
    rtr |= kAttrMaxDestRdAtomic | kAttrMinRnrTimer;
    rts |= kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrMaxRdAtomic;
  }
  return {{{QpState::kInit, init}, {QpState::kRtr, rtr}, {QpState::kRts, rts}}};
}

// Calls `modify(attr, mask)` for each step up to the first false answer, and returns the last answer.
template <class Modify>
auto climb(QpType type, QpAttr attr, Modify&& modify) {
  const auto steps = ladder(type);
  decltype(modify(std::as_const(attr), 0U)) done{};
  for (const LadderStep& step : steps) {
    attr.state = step.state;
    done = modify(std::as_const(attr), step.mask);
    if (!done) break;
  }
  return done;
}

}  // namespace weft
