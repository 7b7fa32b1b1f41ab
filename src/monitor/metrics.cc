#include "monitor/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::monitor {
namespace {

std::string escaped(std::string_view text, bool quoted) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || (c == '"' && quoted)) out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void Metrics::add(std::string_view name, std::string_view help, Kind kind, Labels labels, double value) {
  auto at = std::find_if(families_.begin(), families_.end(), [&](const Family& f) { return f.name == name; });
  if (at == families_.end())
    at = families_.insert(families_.end(), Family{std::string(name), std::string(help), kind, {}});
  at->values.push_back({std::move(labels), value});
}

std::string series_of(const Family& family, const Value& value) {
  std::string out = family.name;
  for (std::size_t i = 0; i < value.labels.size(); ++i) {
    const auto& [name, text] = value.labels[i];
    out += fmt::format("{}{}=\"{}\"", i == 0 ? '{' : ',', name, escaped(text, true));
  }
  if (!value.labels.empty()) out += '}';
  return out;
}

std::string Metrics::text() const {
  std::string out;
  for (const Family& f : families_) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", f.name, escaped(f.help, false), f.name,
                       f.kind == Kind::kCounter ? "counter" : "gauge");
    for (const Value& v : f.values) out += fmt::format("{} {}\n", series_of(f, v), v.value);
  }
  return out;
}

}  // namespace weft::monitor
