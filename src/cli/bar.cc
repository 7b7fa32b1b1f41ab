#include "cli/bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

namespace weft::cli {

Bar::Bar() : terminal_(isatty(STDERR_FILENO) != 0) {}

void Bar::show(std::size_t done, std::size_t all, double seconds) {
  if (all == 0) return;
  const double part = static_cast<double>(done) / static_cast<double>(all);
  if (!terminal_ && static_cast<int>(part * 10) == told_) return;
  told_ = static_cast<int>(part * 10);
  const std::string left = done == 0 ? "just begun" : fmt::format("{:.0f} s left", seconds / part - seconds);
  const auto full = static_cast<std::size_t>(part * 30);
  fmt::print(stderr, "{}weft: [{}{}] {} of {} runs, {}{}", terminal_ ? "\r\x1b[K" : "",
             std::string(full, '#'), std::string(30 - full, '.'), done, all, left, terminal_ ? "" : "\n");
}

void Bar::clear() const {
  if (terminal_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace weft::cli
