// Which process does a MAD belong to? Several processes of one host share the general services of its address
// (docs/protocol/connection-manager.md#several-processes-on-one-address). The kernel gives a MAD to any of
// their sockets, and that process hands it to the owner.
//
//   an answer                   the slot in the id that the owner chose
//   REQ, SIDR_REQ               the process that listens at the port
//   CAP_QUERY                   the process of the queue pair that it asks about
//   a REJ of a peer that never  names no id of ours, so every process looks whether it knows the peer's
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
