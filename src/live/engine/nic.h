// The process's network card: wire, shard and background thread. One per process and address; the
// drop-in library keeps it, contexts share it. It closes when the last holder lets go.
//
// Other processes of the user may have the same address
// (docs/ARCHITECTURE.md#several-processes-on-one-address).
#pragma once
#include <memory>

#include "core/base/result.h"
#include "live/engine/options.h"

namespace weft::live {

class Nic;

// An EUI-64 with the local bit set, from the address: equal addresses give equal guids.
std::uint64_t guid_of(const wire::Address& address);

// The kernel's number of the network interface that has the address; 0: none has.
std::uint32_t interface_of(const wire::Address& address);

// Binds UDP 4791 on the address and starts the background thread.
Result<std::shared_ptr<Nic>> open_nic(const Options& options);

// Whether this process has it from the one that it was forked from, and so has no use of it (forks.h).
bool is_inherited(const Nic& nic);

}  // namespace weft::live
