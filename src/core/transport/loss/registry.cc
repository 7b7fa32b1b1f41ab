// The table of loss-recovery schemes.
#include "core/transport/loss/scheme.h"

namespace weft {
namespace {

constexpr const LossScheme* kSchemes[] = {&kGoBackN,        &kIrn,        &kSrnic,
                                          &kIrnWithoutSack, &kIrnGoBackN, &kSrnicStateless};

}  // namespace

std::span<const LossScheme* const> loss_schemes() { return kSchemes; }
const LossScheme& loss_scheme(wire::Mode mode) { return *kSchemes[static_cast<std::size_t>(mode)]; }
const LossScheme* find_loss_scheme(std::string_view name) {
  for (const LossScheme* s : kSchemes) {
    if (name == s->name) return s;
  }
  return nullptr;
}
bool mode_known(wire::Mode mode) { return static_cast<std::size_t>(mode) < wire::kModeCount; }

}  // namespace weft
