// Address handles: where a datagram goes, made once and named by every request that goes there.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/ids.h"

namespace weft {

struct AddressHandle {
  PdId pd{};
  PathId path{};
  bool live = false;
};

struct AddressHandles {
  std::vector<AddressHandle> rows;   // by AhId
  std::vector<std::uint32_t> freed;  // rows to use again

  const AddressHandle* find(AhId id) const {
    return id.v < rows.size() && rows[id.v].live ? &rows[id.v] : nullptr;
  }
  bool uses(PdId pd) const {
    for (const AddressHandle& a : rows) {
      if (a.live && a.pd == pd) return true;
    }
    return false;
  }
};

}  // namespace weft
