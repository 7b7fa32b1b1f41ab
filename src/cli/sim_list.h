// weft sim --list: everything that a scenario may name, from the tables where it is registered.
#pragma once
#include <string>

namespace weft::cli {

std::string sim_list_text();

}  // namespace weft::cli
