// What an administrator wants of the parameters of running programs, as a text (X-RDMA §6.4):
//
//   weft parameters 1                   the format; another one is refused whole
//   version 12                          grows by one with every change
//   slow_threshold=1000                 for every program
//   chunk_server/filter_drop_ppm=500    for programs with this name alone, and before the line above
//
// `weft adm` writes it, and programs read it (file.h). A program knows the parameters of its own library, so
// that a text may name one that it does not have: whoever writes asks `read_setting`, whoever reads does not.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace weft::adm {

inline constexpr std::size_t kMostSettings = 512;
inline constexpr std::size_t kMostText = 64U << 10U;
inline constexpr std::size_t kMostProgram = 15;  // as the kernel keeps a program's name

struct Setting {
  std::string program;  // empty: every program
  std::string name;
  std::uint64_t value = 0;
  bool operator==(const Setting&) const = default;
};

class Settings {
 public:
  std::uint64_t version = 0;

  const std::vector<Setting>& all() const { return all_; }  // by program, then by name
  // False: there are kMostSettings.
  bool set(Setting setting);
  bool unset(std::string_view program, std::string_view name);
  // What a program of this name is to have; nothing: what it chose itself.
  std::optional<std::uint64_t> wanted(std::string_view program, std::string_view name) const;

 private:
  std::vector<Setting> all_;
};

// "slow_threshold" or "chunk_server/slow_threshold": the two names, with value 0.
Result<Setting> read_name(std::string_view text);
// The same with "=value", as people write it: a parameter of this library that may change in use, with a
// value that it can have.
Result<Setting> read_setting(std::string_view assignment);

std::string name_of(const Setting& setting);
std::string text_of(const Settings& settings);
Result<Settings> read_settings(std::string_view text);

}  // namespace weft::adm
