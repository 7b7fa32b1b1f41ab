// Memory of the program's own, registered with a context (X-RDMA §4.4, step 2): messages are sent from it
// without a copy. A message of it takes a block of the memory cache for its descriptor and head; its bytes
// stay where they are, and must not change until its outcome is told or it was refused.
#pragma once
#include <cstdint>

#include "core/verbs/port.h"

namespace weft::channel {

struct Registered {
  PortMemory memory;
  std::uint32_t messages = 0;  // of it, that somebody has or that are on their way
};

}  // namespace weft::channel
