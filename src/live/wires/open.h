// The wires that a process may have, by name: one table for `weft run`, the drop-in library and their help.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "live/wires/wire.h"

namespace weft::live {

enum class WireKind : std::uint8_t {
  kAuto,    // shared memory and UDP, or of two addresses UDP alone: works everywhere, and needs no right
  kUdp,     // the kernel's UDP (udp.h)
  kShm,     // memory shared with other processes of this host, and UDP (shm.h)
  kPacket,  // raw frames (packet.h)
  kXdp,     // raw frames, received by AF_XDP
};

std::optional<WireKind> find_wire(std::string_view name);
std::string wire_names();  // for sentences: "auto, udp, shm, packet or xdp"

// At these addresses and RoCEv2's port.
Result<std::unique_ptr<Wire>> open_wire(WireKind kind, const Addresses& own);

}  // namespace weft::live
