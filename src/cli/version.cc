// The one file that is compiled anew for every commit: what `weft --version` prints.
#include "version.h"

#include "cli/commands.h"
#include "cli/program.h"

namespace weft::cli {

std::string version_line() { return "weft " WEFT_VERSION " (commit " WEFT_COMMIT ")"; }

std::string simulator_id() { return WEFT_SIMULATOR; }

std::string live_code() { return WEFT_LIVE; }

}  // namespace weft::cli
