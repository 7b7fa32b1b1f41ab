#include "core/transport/ud/address_handle.h"

#include "core/transport/device.h"
#include "core/transport/engine.h"
#include "core/wire/ip.h"

namespace weft {
namespace {

// 224.0.0.0/4 as an IPv4-mapped address, or ff00::/8.
bool multicast(const wire::Address& a) {
  return wire::is_v4_mapped(a) ? (a.bytes[12] & 0xF0U) == 0xE0U : a.bytes[0] == 0xFF;
}

}  // namespace

Outcome<AhId> Device::create_ah(PdId pd, PathId path) {
  Engine& e = *engine_;
  if (pd.v >= e.pds.size() || !e.pds[pd.v] || path.v >= e.paths.size()) return fail(Errc::kInvalid);
  // Groups need membership, which is the network's business and not built.
  if (multicast(e.paths[path.v].attr.peer)) return fail(Errc::kUnsupported);
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
