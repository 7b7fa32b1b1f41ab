// weft run --config FILE: a TOML file of names and values, as the command line would have them.
#pragma once
#include <string>
#include <vector>

#include "core/base/result.h"

namespace weft::cli {

struct Written {
  std::string name;
  std::string value;  // true and false are on and off
  std::string place;  // "FILE, line 3: 'loss'", for sentences
};

Result<std::vector<Written>> read_run_config(const std::string& file);

}  // namespace weft::cli
