#include "check/report.h"

#include <cstdarg>
#include <cstdio>

namespace weft::check {

void Report::add(Time at, const char* rule, const char* format, ...) {
  ++total_;
  if (kept_.size() == kKept) return;
  char text[400];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  kept_.push_back({at, rule, text});
}

std::string Report::text() const {
  std::string out;
  for (const Violation& v : kept_) {
    char head[96];
    std::snprintf(head, sizeof head, "  %.6f us  %s: ", static_cast<double>(v.at.ps) / 1e6, v.rule);
    out += head;
    out += v.text;
    out += '\n';
  }
  if (total_ > kept_.size()) out += "  and " + std::to_string(total_ - kept_.size()) + " more\n";
  return out;
}

}  // namespace weft::check
