// A TOML file that people write, as tables; a text that cannot be read is one sentence with its line.
#pragma once
#include <string>

#include "core/base/result.h"
#include "sim/world/toml.h"

namespace weft::sim {

Result<toml::table> read_toml(const std::string& text, const std::string& name);

}  // namespace weft::sim
