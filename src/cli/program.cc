#include "cli/program.h"

#include "cli/become.h"
#include "cli/commands.h"
#include "cli/stopwatch.h"

namespace weft::cli {

lab::Program this_program() {
  const auto here = own_directory();
  return {simulator_id(), version_line(), wall_seconds, live_id(), here.value_or("") + "/weft"};
}

}  // namespace weft::cli
