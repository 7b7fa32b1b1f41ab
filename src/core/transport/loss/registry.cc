// The table of loss-recovery schemes. srnic's row arrives with its scheme.
#include <array>

#include "core/transport/loss/scheme.h"

namespace weft {
namespace {

const std::array<LossScheme, 2>& table() {
  static const std::array<LossScheme, 2> kSchemes{{kGoBackN, kIrn}};
  return kSchemes;
}

}  // namespace

std::span<const LossScheme> loss_schemes() { return table(); }
const LossScheme& loss_scheme(wire::Mode mode) { return table()[static_cast<std::size_t>(mode)]; }
bool mode_known(wire::Mode mode) { return static_cast<std::size_t>(mode) < table().size(); }

}  // namespace weft
