// The table of congestion controllers.
#include "core/transport/cc/controller.h"

namespace weft {

namespace {
constexpr const Controller* kTable[] = {&kNoController};
}

std::span<const Controller* const> controllers() { return kTable; }

}  // namespace weft
