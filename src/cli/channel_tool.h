// A command that is a program beside `weft`: `weft` explains and refuses; then it becomes that program,
// which is linked against libibverbs as any program is. With --addr it does so over the soft NIC, as `weft
// run --addr` does.
#pragma once
#include <string>
#include <vector>

#include "cli/become.h"

namespace weft::cli {

// The words behind `weft`, without --addr and its value.
std::vector<std::string> own_words();

// With the words of this process but --addr. Returns only to say why not.
Result<void> become_tool(const std::string& address, const std::string& program = "weft-channel");

}  // namespace weft::cli
