#include "lab/account.h"

#include <fmt/format.h>

#include <charconv>

#include "account/quantities.h"

namespace weft::lab {

Result<Computed> account_quantity(const std::string& name) {
  const std::size_t dot = name.find('.');
  const std::string id = name.substr(0, dot);
  const account::Quantity* quantity = account::find_quantity(id.c_str());
  if (quantity == nullptr) {
    std::string all;
    for (const account::Quantity& q : account::quantities())
      all += fmt::format("{}{}", all.empty() ? "" : ", ", q.id);
    return fail(fmt::format("there is no quantity '{}'; there are {}", id, all));
  }
  std::size_t which = 0;
  const auto figures = quantity->figures();
  if (dot != std::string::npos) {
    const char* end = name.data() + name.size();
    const auto [read, error] = std::from_chars(name.data() + dot + 1, end, which);
    if (error != std::errc() || read != end) which = figures.size();
  }
  if (which >= figures.size())
    return fail(fmt::format("quantity '{}' has figures {}.0 to {}.{}, no '{}'", id, id, id,
                            figures.size() - 1, name));
  return Computed{figures[which].value, quantity->unit,
                  fmt::format("{}: {}", quantity->text, figures[which].what)};
}

}  // namespace weft::lab
