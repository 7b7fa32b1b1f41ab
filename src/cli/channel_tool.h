// A command that is the program weft-channel: `weft` explains and refuses; then it becomes weft-channel,
// which is linked against libibverbs as any program is. With --addr it does so over the soft NIC, as `weft
// run --addr` does.
#pragma once
#include <string>

#include "cli/become.h"

namespace weft::cli {

// With the words of this process but --addr. Returns only to say why not.
Result<void> become_tool(const std::string& address);

}  // namespace weft::cli
