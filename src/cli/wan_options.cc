#include "cli/wan_options.h"

#include <charconv>
#include <string_view>

namespace weft::cli {

Result<double> parse_loss(const std::string& text) {
  double v = 0;
  const char* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, v);
  const std::string_view rest(read, static_cast<std::size_t>(end - read));
  if (error != std::errc() || !(rest.empty() || rest == "%") || !(v >= 0))
    return fail("--loss: '" + text + "' is not a probability such as 1e-5, 0.001 or 1%");
  return rest.empty() ? v : v / 100;
}

}  // namespace weft::cli
