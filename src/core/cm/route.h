// Whose MAD is it? Several processes of one host share the general services of its address
// (docs/protocol/connection-manager.md#several-processes-on-one-address): a MAD goes to whoever's socket it
// hits, and from there to its owner.
//
//   what answers something      names its owner's slot in an id that the owner chose
//   REQ, SIDR_REQ               belong to whoever listens at that port
//   CAP_QUERY                   to the process of the queue pair that it asks about
//   a REJ of a peer that never  knows its own id only: everyone may look whether it means them
//     got an answer
#pragma once
#include <cstdint>
#include <span>

#include "core/wire/mad.h"

namespace weft::cm {

enum class Owner : std::uint8_t { kNobody, kSlot, kListener, kEveryone };

struct Route {
  Owner owner = Owner::kNobody;                   // kNobody: no MAD that weft speaks
  std::uint8_t slot = 0;                          // kSlot
  wire::PortSpace space = wire::PortSpace::kTcp;  // kListener
  std::uint16_t port = 0;
  bool operator==(const Route&) const = default;
};

// `slot_bits`: how many top bits of a queue pair number are its process slot.
Route route_of(std::span<const std::uint8_t> mad, unsigned slot_bits);

}  // namespace weft::cm
