// weft turns into another program: over the soft NIC (`weft run`), or a program of weft's own that lies
// beside it.
#pragma once
#include <string>
#include <vector>

#include "core/base/result.h"

namespace weft::cli {

// The directory in which this program lies.
Result<std::string> own_directory();
// Where the drop-in libraries lie.
Result<std::string> library_directory();
// Over the soft NIC, as the WEFT_* variables say. Returns only to say why not.
Result<void> become(const std::vector<std::string>& program);

}  // namespace weft::cli
