// The table of congestion controllers.
#include "core/transport/cc/controller.h"

namespace weft {
namespace {

constexpr const Controller* kTable[] = {
    &kNoController, &kAimd,      &kDctcp,    &kDcqcnSigcomm15,   &kDcqcnHpcc,       &kDcqcnConweave,
    &kDcqcnAuthors, &kTimely100, &kTimely40, &kTimely100BackOff, &kTimely40BackOff, &kDcqcnBackOff,
};
static_assert(std::size(kTable) < 0xFF);

}  // namespace

std::span<const Controller* const> controllers() { return kTable; }

std::optional<std::uint8_t> find_controller(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kTable); ++i) {
    if (name == kTable[i]->name) return static_cast<std::uint8_t>(i);
  }
  return std::nullopt;
}

}  // namespace weft
