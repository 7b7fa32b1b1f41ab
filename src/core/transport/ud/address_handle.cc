#include "core/transport/ud/address_handle.h"

#include "core/transport/device.h"
#include "core/transport/engine.h"

namespace weft {

Outcome<AhId> Device::create_ah(PdId pd, PathId path) {
  Engine& e = *engine_;
  if (pd.v >= e.pds.size() || !e.pds[pd.v] || path.v >= e.paths.size()) return fail(Errc::kInvalid);
  AddressHandles& table = e.address_handles;
  if (table.freed.empty()) {
    if (table.rows.size() == e.config.max_ah) return fail(Errc::kNoMemory);
    table.freed.reserve(table.rows.size() + 1);  // destroying needs no memory
    table.rows.emplace_back();
    table.freed.push_back(static_cast<std::uint32_t>(table.rows.size() - 1));
  }
  const AhId id{table.freed.back()};
  table.freed.pop_back();
  table.rows[id.v] = {pd, path, true};
  return id;
}

Outcome<void> Device::destroy_ah(AhId id) {
  AddressHandles& table = engine_->address_handles;
  if (table.find(id) == nullptr) return fail(Errc::kNotFound);
  table.rows[id.v].live = false;
  table.freed.push_back(id.v);
  return {};
}

}  // namespace weft
