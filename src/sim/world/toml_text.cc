#include "sim/world/toml_text.h"

#include "sim/world/fields.h"
#include "sim/world/plain_text.h"

namespace weft::sim {

Result<toml::table> read_toml(const std::string& text, const std::string& name) {
  if (const std::size_t line = line_beyond_ascii(text); line != 0)
    return fail(name + ", line " + std::to_string(line) +
                ": characters beyond ASCII belong in strings and comments");
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& e) {
    return fail(one_line(name + ", line " + std::to_string(e.source().begin.line) + ": " +
                         std::string(e.description())));
  }
}

}  // namespace weft::sim
