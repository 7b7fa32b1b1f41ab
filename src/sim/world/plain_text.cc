#include "sim/world/plain_text.h"

#include <string>

namespace weft::sim {

namespace {
// A string begins where a name or a value does. A quote behind anything else is a mistake, and the parser
// goes on as if it were no quote.
bool begins(char before) { return std::string_view("\n=[,{.").find(before) != std::string_view::npos; }
}  // namespace

std::size_t line_beyond_ascii(std::string_view toml) {
  std::size_t line = 1;
  char before = '\n';      // the last character outside strings and comments that is no blank
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
        if (c == '\n') before = c;
        until = {};
      }
      continue;
    }
    if (static_cast<unsigned char>(c) >= 0x80) return line;
    if (c == '#') {
      until = "\n";
    } else if ((c == '"' || c == '\'') && begins(before)) {
      const bool three = toml.substr(i, 3) == std::string(3, c);
      until = c == '"' ? (three ? std::string_view("\"\"\"") : std::string_view("\""))
                       : (three ? std::string_view("'''") : std::string_view("'"));
      if (three) i += 2;
    }
    if (c != ' ' && c != '\t' && c != '\r') before = c;
  }
  return 0;
}

}  // namespace weft::sim
