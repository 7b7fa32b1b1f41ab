// The statistics pages of a host as JSON: what `weft stat -j` prints and a monitor serves. Keys are the
// columns' names, with the unit where there is one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "monitor/history.h"
#include "page/reader.h"

namespace weft::monitor {

// `now` of the machine's steady clock, as pages have it.
std::string state_json(const page::Found& found, std::uint64_t now, bool pretty);

// The slow lines of all pages; `now_ms` is Unix time at `now`.
std::vector<Slow> slow_lines(const page::Found& found, std::uint64_t now, std::int64_t now_ms);

}  // namespace weft::monitor
