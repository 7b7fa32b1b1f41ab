// The process's network card: wire, shard and background thread. One per process and address; the
// drop-in library keeps it, contexts share it. It closes when the last holder lets go.
//
// Today one process has an address to itself: a second one is refused with a sentence that names the
// ways out. (Processes can come to share an address through an SO_REUSEPORT group and a slot in the
// queue pair number; the slot is there, zero bits wide.)
#pragma once
#include <memory>

#include "core/base/result.h"
#include "live/engine/options.h"

namespace weft::live {

class Nic;

// An EUI-64 with the local bit set, from the address: equal addresses give equal guids.
std::uint64_t guid_of(const wire::Address& address);

// Binds UDP 4791 on the address and starts the background thread.
Result<std::shared_ptr<Nic>> open_nic(const Options& options);

}  // namespace weft::live
