#include "sim/world/toml_text.h"

#include <algorithm>
#include <string_view>

#include "sim/world/fields.h"

namespace weft::sim {

namespace {

bool beyond_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }

// The byte at a place as the parser counts it: from 1, in a text of ASCII.
char at(std::string_view text, toml::source_position place) {
  for (toml::source_index line = 1; line < place.line && !text.empty(); ++line)
    text.remove_prefix(std::min(text.size(), text.find('\n')) + (text.find('\n') < text.size() ? 1 : 0));
  return place.column >= 1 && place.column <= text.size() ? text[place.column - 1] : '\0';
}

}  // namespace

// toml++ has undefined behaviour for some characters beyond ASCII where a name or a value begins. So it
// first reads the text with a question mark for each of their bytes: outside of strings and comments no
// question mark is valid. What passes has such characters only where toml++ is at home with them.
Result<toml::table> read_toml(const std::string& text, const std::string& name) {
  const auto sentence = [&](toml::source_position place, std::string_view what) {
    return fail(one_line(name + ", line " + std::to_string(place.line) + ": " + std::string(what)));
  };
  std::string ascii = text;
  std::ranges::replace_if(ascii, beyond_ascii, '?');
  try {
    toml::table read = toml::parse(ascii, name);
    return ascii == text ? std::move(read) : toml::parse(text, name);
  } catch (const toml::parse_error& e) {
    const toml::source_position place = e.source().begin;
    if (beyond_ascii(at(text, place)))
      return sentence(place, "characters beyond ASCII belong in strings and comments");
    return sentence(place, e.description());
  }
}

}  // namespace weft::sim
