#include "cli/run_config.h"

#include <sstream>

#include "record/input.h"
#include "sim/world/toml_text.h"

namespace weft::cli {

Result<std::vector<Written>> read_run_config(const std::string& file) {
  const auto text = record::read_file(file);
  if (!text) return fail("--config: " + text.error().message);
  const auto table = sim::read_toml(*text, file);
  if (!table) return tl::unexpected(table.error());
  std::vector<Written> found;
  for (const auto& [key, value] : *table) {
    const std::string name(key.str());
    Written w{name, "", file + ", line " + std::to_string(key.source().begin.line) + ": '" + name + "'"};
    if (const auto* const flag = value.as_boolean()) {
      w.value = flag->get() ? "on" : "off";
    } else if (const auto* const word = value.as_string()) {
      w.value = word->get();
    } else if (value.is_number()) {
      std::ostringstream digits;
      value.is_integer() ? digits << value.as_integer()->get() : digits << value.as_floating_point()->get();
      w.value = digits.str();
    } else {
      return fail(w.place + " must be a string, a number, true or false");
    }
    found.push_back(std::move(w));
  }
  return found;
}

}  // namespace weft::cli
