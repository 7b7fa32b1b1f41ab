// What commands of `weft wan` read alike.
#pragma once
#include <string>

#include "core/base/result.h"

namespace weft::cli {

// "1e-5", "0.00001", "0.001%". Lines lose less than a millionth, so this is no parse_probability.
Result<double> parse_loss(const std::string& text);

}  // namespace weft::cli
