// The far end of `weft ping` and `weft perf`, and what makes a mesh of them: it answers requests, and pings
// others when it is asked to. Whoever may open a channel to it may make it ping; `deny` names addresses that
// may not.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "channel_tools/plans.h"
#include "channel_tools/session.h"

namespace weft::tools {

Result<void> serve(const Session& session, const AgentPlan& plan);

}  // namespace weft::tools
