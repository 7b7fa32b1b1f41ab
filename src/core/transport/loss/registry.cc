// The table of loss-recovery schemes. srnic's row arrives with its scheme.
#include <iterator>

#include "core/transport/loss/scheme.h"

namespace weft {
namespace {

constexpr const LossScheme* kSchemes[] = {&kGoBackN, &kIrn};

}  // namespace

std::span<const LossScheme* const> loss_schemes() { return kSchemes; }
const LossScheme& loss_scheme(wire::Mode mode) { return *kSchemes[static_cast<std::size_t>(mode)]; }
bool mode_known(wire::Mode mode) { return static_cast<std::size_t>(mode) < std::size(kSchemes); }

}  // namespace weft
