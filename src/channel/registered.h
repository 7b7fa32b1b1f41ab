// Memory of the program's own, registered with a context (X-RDMA §4.4, step 2): messages are sent from it
// without a copy. A message of it takes a block of the memory cache for its descriptor, its head and the list
// of its parts; its bytes stay where they are, and must not change until its outcome is told or it was
// refused.
//
// A short message is gathered by the device as it is sent. Of a long one the announcement names every part,
// and the peer READs them one behind the other.
#pragma once
#include <cstdint>

#include "core/verbs/port.h"

namespace weft::channel {

struct Registered {
  PortMemory memory;
  std::uint32_t messages = 0;  // of it, that somebody has or that are on their way
};

// Some of its bytes.
struct Part {
  Registered* memory = nullptr;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint64_t address() const { return memory->memory.address + offset; }
  std::uint8_t* data() const { return memory->memory.bytes.data() + offset; }
};

}  // namespace weft::channel
