// The owner of a MAD, from the one field that tells.
#include "core/cm/route.h"

#include "core/base/check.h"

namespace weft::cm {
namespace {

Route to_slot(std::uint64_t slot) {
  Route r;
  r.owner = Owner::kSlot;
  r.slot = static_cast<std::uint8_t>(slot);
  return r;
}

Route to_listener(std::uint64_t service_id) {
  if (service_id >> 32U != 0) return {};
  Route r;
  r.owner = Owner::kListener;
  r.space = static_cast<wire::PortSpace>(static_cast<std::uint16_t>(service_id >> 16U));
  r.port = static_cast<std::uint16_t>(service_id);
  return r;
}

Route to_everyone() {
  Route r;
  r.owner = Owner::kEveryone;
  return r;
}

}  // namespace

Route route_of(std::span<const std::uint8_t> mad, unsigned slot_bits) {
  CHECK_OP(slot_bits, <=, 8U);
  wire::MadError error{};
  if (wire::Capability c; decode(mad, c, error)) {
    return to_slot(c.reply ? c.transaction >> 56U : (c.target.v & kPsnMask) >> (24U - slot_bits));
  }
  wire::CmMessage m;
  if (!decode(mad, m, error)) return {};
  switch (m.kind) {
    case wire::CmKind::kReq:
    case wire::CmKind::kSidrReq:
      return to_listener(m.service_id);
    case wire::CmKind::kSidrRep:
      return to_slot(m.local_id >> 24U);  // the asker's id
    case wire::CmKind::kRej:
      if (m.remote_id == 0) return to_everyone();
      [[fallthrough]];
    default:
      return to_slot(m.remote_id >> 24U);
  }
}

}  // namespace weft::cm
