// Connections of a plain program: by librdmacm, one after the other, each with a queue pair of its own, as
// rping makes them; and by TCP. What the storm of channels is measured beside.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace weft::bench {

inline constexpr std::uint16_t kPlainService = 4779;

// The far end: accepts whoever comes to `kPlainService` until `called` says so. `ready` hears when it
// listens, or why it cannot.
void accept_plain(const std::function<void(Result<void>)>& ready, const std::function<bool()>& called);

// Microseconds of each of `count` connections; all are open at the end, and then closed.
Result<std::vector<double>> connect_plain(const std::string& address, std::uint32_t count);
// Over TCP, to this process itself on `address`.
Result<std::vector<double>> connect_tcp(const std::string& address, std::uint32_t count);

}  // namespace weft::bench
