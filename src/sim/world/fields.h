// The tables of a TOML file that people write, value by value: scenarios, NIC designs.
#pragma once
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "core/base/parse.h"
#include "sim/world/toml.h"

namespace weft::sim {

// One table of the file: hands out values by name, keeps the first mistake, and knows at the end which names
// were never asked for.
class Fields {
 public:
  Fields(const toml::table& table, std::string path, std::string& mistake)
      : table_(table), path_(std::move(path)), mistake_(mistake) {}

  void text(const char* name, std::string& out) {
    if (const auto t = take(name)) out = *t;
  }
  template <class T>
  void integer(const char* name, T& out, std::uint64_t lowest, std::uint64_t highest) {
    parsed(
        name,
        [&](const std::string& field, const std::string& t) {
          return parse_integer(field, t, lowest, highest);
        },
        [&](std::uint64_t v) { out = static_cast<T>(v); }, true);
  }
  void duration(const char* name, Duration& out) {
    parsed(name, parse_duration, [&](Duration v) { out = v; });
  }
  void rate(const char* name, Rate& out) {
    parsed(name, parse_rate, [&](Rate v) { out = v; });
  }
  void distance(const char* name, std::optional<Distance>& out) {
    parsed(name, parse_distance, [&](Distance v) { out = v; });
  }
  void size(const char* name, Bytes& out) {
    parsed(name, parse_size, [&](Bytes v) { out = v; });
  }
  // "auto" leaves it to resolve().
  void size_or_auto(const char* name, Bytes& out, bool& automatic) {
    const toml::node* node = table_.get(name);
    automatic = node != nullptr && node->value_or(std::string_view()) == "auto";
    if (!automatic) return size(name, out);
    asked_.insert(name);
  }
  void probability(const char* name, std::uint32_t& out) {
    parsed(name, parse_probability, [&](std::uint32_t v) { out = v; });
  }
  // "2" or "1/8", in 64ths.
  void ratio_64(const char* name, std::uint32_t& out) {
    const auto t = take(name);
    if (!t) return;
    const std::size_t slash = t->find('/');
    const auto above = parse_integer(path_ + name, t->substr(0, slash), 1, 1024);
    const auto below =
        parse_integer(path_ + name, slash == std::string::npos ? "1" : t->substr(slash + 1), 1, 64);
    if (!above || !below || *above * 64 % *below != 0) {
      wrong(name, *t, "a number such as 2 or a fraction such as 1/8, in steps of 1/64");
    } else {
      out = static_cast<std::uint32_t>(*above * 64 / *below);
    }
  }
  void flag(const char* name, bool& out) {
    const auto t = take(name);
    if (!t) return;
    if (*t == "true" || *t == "false") {
      out = *t == "true";
    } else {
      wrong(name, *t, "true or false");
    }
  }
  template <class T, class Table>
  void choice(const char* name, T& out, const Table& table) {
    const auto t = take(name);
    if (!t) return;
    std::string allowed;
    for (const auto& row : table) {
      if (*t == row.word) {
        out = row.value;
        return;
      }
      allowed += (allowed.empty() ? "" : ", ") + std::string(row.word);
    }
    wrong(name, *t, "one of " + allowed);
  }
  bool has(const char* name) const { return table_.contains(name); }
  void known(const char* name) { asked_.insert(name); }  // a table of its own
  void finish() {
    for (const auto& [key, value] : table_) {
      if (asked_.contains(std::string(key.str()))) continue;
      std::string all;
      for (const std::string& a : asked_) all += (all.empty() ? "" : ", ") + a;
      say(path_ + std::string(key.str()) + ": there is no such setting here; there are " + all);
    }
  }

 private:
  // `whole`: where only a whole number may stand, one with a point is refused as that.
  std::optional<std::string> take(const char* name, bool whole = false) {
    asked_.insert(name);
    const toml::node* node = table_.get(name);
    if (node == nullptr) return std::nullopt;
    if (const auto* s = node->as_string()) return s->get();
    if (const auto* i = node->as_integer()) return std::to_string(i->get());
    if (const auto* b = node->as_boolean()) return b->get() ? "true" : "false";
    if (const auto* d = node->as_floating_point(); d != nullptr && whole) {
      std::ostringstream number;
      number << d->get();
      return number.str();
    }
    say(path_ + name + ": a quantity is written as a string, such as \"1%\" or \"64KiB\"");
    return std::nullopt;
  }
  template <class Parse, class Store>
  void parsed(const char* name, Parse parse, Store store, bool whole = false) {
    const auto t = take(name, whole);
    if (!t) return;
    const auto v = parse(path_ + name, *t);
    if (v) {
      store(*v);
    } else {
      say(v.error().message);
    }
  }
  void wrong(const char* name, const std::string& value, const std::string& allowed) {
    say(path_ + name + ": '" + value + "' is not " + allowed);
  }
  void say(std::string sentence) {
    if (mistake_.empty()) mistake_ = std::move(sentence);
  }

  const toml::table& table_;
  std::string path_;
  std::string& mistake_;
  std::set<std::string> asked_;
};

// A table of the file, if it is there: `read` takes its Fields.
template <class Read>
void read_part(const toml::table& root, const std::string& key, std::string& mistake, Read read) {
  const toml::node* node = root.get(key);
  if (node == nullptr) return;
  if (const toml::table* t = node->as_table()) {
    read(Fields(*t, key + ".", mistake));
  } else if (mistake.empty()) {
    mistake = key + ": write a table, [" + key + "]";
  }
}

// Values may contain line ends. A message about a value is one line.
inline std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = '?';
  }
  return text;
}

}  // namespace weft::sim
