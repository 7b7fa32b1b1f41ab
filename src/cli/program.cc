#include "cli/program.h"

#include "cli/commands.h"
#include "cli/stopwatch.h"

namespace weft::cli {

lab::Program this_program() { return {simulator_id(), version_line(), wall_seconds}; }

}  // namespace weft::cli
