// From here to each host, or every host to every other: a coordinator asks the agent of each for its row.
#pragma once
#include <string>
#include <vector>

#include "channel_tools/prober.h"

namespace weft::tools {

// The cells from here; `names` in the matrix: "here" first.
Matrix ping_row(const Session& session, const std::vector<std::string>& hosts, const PingPlan& plan);
Matrix ping_mesh(const Session& session, const std::vector<std::string>& hosts, const PingPlan& plan);

// A host a line; # begins a comment. Refused: no host, one twice, no address, too many.
Result<std::vector<std::string>> read_hosts(const std::string& name, const std::string& text);
Result<void> check_hosts(const std::vector<std::string>& hosts);

}  // namespace weft::tools
