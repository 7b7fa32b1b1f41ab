// The one file that is compiled anew for every commit: what `weft --version` prints.
#include "version.h"

#include "cli/commands.h"

namespace weft::cli {

std::string version_line() { return "weft " WEFT_VERSION " (commit " WEFT_COMMIT ")"; }

}  // namespace weft::cli
