// Files that people write, read whole and within a bound: /dev/zero has no end.
#pragma once
#include <cstddef>
#include <string>

#include "core/base/result.h"

namespace weft::record {

inline constexpr std::size_t kLargestInput = std::size_t{256} << 20U;

// The text of a file or pipe, without the mark that some editors put in front of UTF-8. The sentence begins
// with the file's name in quotes.
Result<std::string> read_file(const std::string& path);

}  // namespace weft::record
