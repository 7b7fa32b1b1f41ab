#include "adm/settings.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "channel/params.h"

namespace weft::adm {
namespace {

constexpr std::string_view kFirstLine = "weft parameters 1";
constexpr std::string_view kVersion = "version ";

bool comes_before(const Setting& s, std::string_view program, std::string_view name) {
  return std::tie(s.program, s.name) < std::tuple(program, name);
}

bool sound_program(std::string_view program) {
  return program.size() <= kMostProgram && std::all_of(program.begin(), program.end(), [](char c) {
           return c > ' ' && c <= '~' && c != '=' && c != '/';
         });
}
bool sound_name(std::string_view name) {
  return !name.empty() && name.size() < 32 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool number_in(std::string_view text, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

bool split(std::string_view text, Setting& out) {
  const std::size_t slash = text.find('/');
  const std::string_view name = slash == std::string_view::npos ? text : text.substr(slash + 1);
  const std::string_view program = text.substr(0, slash == std::string_view::npos ? 0 : slash);
  if (!sound_name(name) || !sound_program(program) || slash == 0) return false;
  out.program = std::string(program);
  out.name = std::string(name);
  return true;
}

std::string_view line_of(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

bool Settings::set(Setting setting) {
  const auto at = std::lower_bound(all_.begin(), all_.end(), setting, [](const Setting& a, const Setting& b) {
    return comes_before(a, b.program, b.name);
  });
  if (at != all_.end() && at->program == setting.program && at->name == setting.name) {
    at->value = setting.value;
    return true;
  }
  if (all_.size() == kMostSettings) return false;
  all_.insert(at, std::move(setting));
  return true;
}

bool Settings::unset(std::string_view program, std::string_view name) {
  return std::erase_if(all_, [&](const Setting& s) { return s.program == program && s.name == name; }) != 0;
}

std::optional<std::uint64_t> Settings::wanted(std::string_view program, std::string_view name) const {
  std::optional<std::uint64_t> value;
  for (const Setting& s : all_) {
    if (s.name != name) continue;
    if (s.program == program && !program.empty()) return s.value;
    if (s.program.empty()) value = s.value;
  }
  return value;
}

Result<Setting> read_name(std::string_view text) {
  Setting s;
  if (!split(text, s))
    return fail(std::string("'").append(text).append(
        "': write NAME or PROGRAM/NAME, with a program's name of at most 15 characters"));
  if (const auto there = channel::expect_param(s.name); !there) return tl::unexpected(there.error());
  return s;
}

Result<Setting> read_setting(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  auto s = read_name(assignment.substr(0, equals));
  if (!s) return s;
  // Offline first: whatever the value, it cannot be set in use.
  const channel::Param* const p = channel::find_param(s->name);
  if (!p->online) return fail(channel::offline_sentence(s->name));
  channel::Config config;
  const std::string_view value = equals == std::string_view::npos ? "" : assignment.substr(equals);
  if (const auto set = channel::set_param(config, s->name + std::string(value)); !set)
    return tl::unexpected(set.error());
  s->value = p->get(config);
  return s;
}

std::string name_of(const Setting& s) {
  std::string out = s.program;
  if (!out.empty()) out += '/';
  out += s.name;
  return out;
}

std::string text_of(const Settings& settings) {
  std::string out(kFirstLine);
  out += '\n';
  out += kVersion;
  out += std::to_string(settings.version);
  out += '\n';
  for (const Setting& s : settings.all()) {
    out += name_of(s);
    out += '=';
    out += std::to_string(s.value);
    out += '\n';
  }
  return out;
}

Result<Settings> read_settings(std::string_view text) {
  Settings all;
  if (text.size() > kMostText) return fail("it is longer than 64 KiB");
  if (line_of(text) != kFirstLine) return fail("its first line is not '" + std::string(kFirstLine) + "'");
  std::string_view line = line_of(text);
  if (!line.starts_with(kVersion) || !number_in(line.substr(kVersion.size()), all.version))
    return fail("its second line is not 'version NUMBER'");
  while (!text.empty()) {
    line = line_of(text);
    const std::size_t equals = line.find('=');
    Setting s;
    if (equals == std::string_view::npos || !split(line.substr(0, equals), s) ||
        !number_in(line.substr(equals + 1), s.value))
      return fail("its line '" + std::string(line.substr(0, 80)) + "' is not NAME=NUMBER");
    if (!all.set(std::move(s))) return fail("it has more than 512 lines");
  }
  return all;
}

}  // namespace weft::adm
