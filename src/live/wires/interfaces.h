// The network interfaces of this host, as far as a wire has to know them.
#pragma once
#include <cstdint>
#include <vector>

#include "core/wire/packet.h"

namespace weft::live {

struct Interface {
  std::uint32_t index = 0;  // the kernel's number of it; 0: none has the address
  std::uint32_t mtu = 1500;
  bool loopback = false;
  bool others = false;  // have the address, too
};

// The interface that an address belongs to; an Ethernet's values when none claims it.
Interface find_interface(const wire::Address& address);

std::vector<wire::Address> own_addresses();

}  // namespace weft::live
