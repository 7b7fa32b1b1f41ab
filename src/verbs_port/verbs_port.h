// The port (core/verbs/port.h) over libibverbs as any program links it, so over hardware and over our soft
// NIC alike.
//
// Connections by address are made over TCP (handshake.h), on the address that the device's GID names; a
// service is a TCP port. Nothing here waits: sockets and channels are looked at when poll_event() is called.
// The mode of a connection is the device's affair: libibverbs has no word for it (`weft run --mode`).
//
// One thread. A kernel that has no room left shows as kNoMemory.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/verbs/port.h"

namespace weft {

// The first device with an IPv4 GID, or the named one.
Result<std::unique_ptr<VerbsPort>> open_ibverbs(const std::string& device = "");

}  // namespace weft
