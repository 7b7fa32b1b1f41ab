// A table of a TOML file: hands out its values by name, and knows at the end which names were never asked
// for. Every mistake is one sentence that starts with the file and the place in it, thrown as a Mistake; it
// does not leave experiment_file.cc.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "sim/world/toml.h"

namespace weft::lab {

struct Mistake {
  std::string sentence;
};

std::string list_text(const std::vector<std::string>& words);

toml::table parse_file(const std::string& file);

class Table {
 public:
  Table(const toml::table& table, std::string place) : table_(table), place_(std::move(place)) {}

  [[noreturn]] void wrong(const std::string& sentence) const { throw Mistake{place_ + ": " + sentence}; }
  const std::string& place() const { return place_; }
  bool has(const char* name);
  const toml::node* node(const char* name);  // null: not there
  std::string text(const char* name);        // empty: not there
  std::string needed(const char* name);
  bool flag(const char* name);
  std::vector<std::string> texts(const char* name);  // one text or a list of them
  std::vector<std::string> changes();                // 'set', as `weft sim --set`
  void skip();                                       // nothing more is asked
  void finish() const;

  // Calls read(Table) for each table of [[name]].
  template <class Read>
  void tables(const char* name, Read read) {
    const toml::node* n = node(name);
    if (n == nullptr) return;
    const toml::array* list = n->as_array();
    if (list == nullptr) wrong(std::string("'") + name + "' must be a list of tables");
    for (std::size_t i = 0; i < list->size(); ++i) {
      const toml::table* t = (*list)[i].as_table();
      if (t == nullptr) wrong(std::string("'") + name + "' must be a list of tables");
      Table each(*t, place_ + ", " + name + " " + std::to_string(i + 1));
      read(each);
      each.finish();
    }
  }

 private:
  const toml::table& table_;
  std::string place_;
  std::set<std::string> asked_;
};

}  // namespace weft::lab
