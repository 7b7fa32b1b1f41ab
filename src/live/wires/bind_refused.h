// Why a UDP wire does not get its address, and what to do, in one sentence.
#pragma once
#include <cstdint>
#include <string>

#include "core/wire/packet.h"

namespace weft::live {

// After a bind() that failed, by its errno.
std::string bind_sentence(const wire::Address& address, std::uint16_t port);
// Where the kernel has no IPv6.
std::string no_v6_sentence(const wire::Address& address);

}  // namespace weft::live
