// Settings are ASCII, but for strings and comments. The TOML parser's own behaviour is undefined for some
// other characters where a name or a value begins, so they are looked for before it.
#pragma once
#include <cstddef>
#include <string_view>

namespace weft::sim {

// The line of the first character beyond ASCII outside strings and comments; 0 if there is none.
std::size_t line_beyond_ascii(std::string_view toml);

}  // namespace weft::sim
