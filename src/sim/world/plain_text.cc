#include "sim/world/plain_text.h"

#include <string>

namespace weft::sim {

std::size_t line_beyond_ascii(std::string_view toml) {
  std::size_t line = 1;
  std::string_view until;  // what ends the string or comment that we are in
  for (std::size_t i = 0; i < toml.size(); ++i) {
    const char c = toml[i];
    if (c == '\n') ++line;
    if (!until.empty()) {
      // A string of one line ends with it, whatever the parser will say.
      const bool broken = c == '\n' && until.size() == 1;
      if (until[0] == '"' && c == '\\') {
        if (i + 1 < toml.size() && toml[i + 1] != '\n') ++i;
      } else if (broken || toml.substr(i, until.size()) == until) {
        if (!broken) i += until.size() - 1;
        until = {};
      }
      continue;
    }
    if (static_cast<unsigned char>(c) >= 0x80) return line;
    if (c == '#') {
      until = "\n";
    } else if (c == '"' || c == '\'') {
      const bool three = toml.substr(i, 3) == std::string(3, c);
      until = c == '"' ? (three ? std::string_view("\"\"\"") : std::string_view("\""))
                       : (three ? std::string_view("'''") : std::string_view("'"));
      if (three) i += 2;
    }
  }
  return 0;
}

}  // namespace weft::sim
