// The table of congestion controllers.
#include "core/transport/cc/controller.h"

namespace weft {

std::span<const Controller> controllers() {
  static const Controller kTable[] = {kNoController};
  return kTable;
}

}  // namespace weft
