#include "lab/table.h"

#include "record/input.h"
#include "sim/world/toml_text.h"

namespace weft::lab {

std::string list_text(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& w : words) all += (all.empty() ? "" : ", ") + w;
  return all.empty() ? "none" : all;
}

toml::table parse_file(const std::string& file) {
  const auto text = record::read_file(file);
  if (!text) throw Mistake{"experiment file " + text.error().message};
  auto table = sim::read_toml(*text, file);
  if (!table) throw Mistake{table.error().message};
  return std::move(*table);
}

bool Table::has(const char* name) {
  asked_.insert(name);
  return table_.contains(name);
}

const toml::node* Table::node(const char* name) {
  asked_.insert(name);
  return table_.get(name);
}

std::string Table::text(const char* name) {
  const toml::node* n = node(name);
  if (n == nullptr) return {};
  if (const auto* s = n->as_string()) return s->get();
  wrong(std::string("'") + name + "' must be a text in quotes");
}

std::string Table::needed(const char* name) {
  std::string t = text(name);
  if (t.empty()) wrong(std::string("'") + name + "' is missing");
  return t;
}

bool Table::flag(const char* name) {
  const toml::node* n = node(name);
  if (n == nullptr) return false;
  if (const auto* b = n->as_boolean()) return b->get();
  wrong(std::string("'") + name + "' must be true or false");
}

std::vector<std::string> Table::texts(const char* name) {
  const toml::node* n = node(name);
  if (n == nullptr) return {};
  if (const auto* s = n->as_string()) return {s->get()};
  const toml::array* a = n->as_array();
  std::vector<std::string> all;
  for (std::size_t i = 0; a != nullptr && i < a->size(); ++i) {
    if (const auto* s = (*a)[i].as_string()) all.push_back(s->get());
  }
  if (a == nullptr || all.size() != a->size())
    wrong(std::string("'") + name + "' must be a text or a list of texts");
  return all;
}

std::vector<std::string> Table::changes() {
  std::vector<std::string> all = texts("set");
  for (const std::string& c : all) {
    const std::size_t equals = c.find('=');
    if (equals == std::string::npos || equals == 0)
      wrong("set: '" + c + "' is not NAME=VALUE, such as traffic.flows=1500");
    if (c.substr(0, equals) == "seed") wrong("set: seeds are chosen by 'seeds' of a size");
  }
  return all;
}

void Table::skip() {
  for (const auto& [key, value] : table_) asked_.insert(std::string(key.str()));
}

void Table::finish() const {
  for (const auto& [key, value] : table_) {
    if (!asked_.contains(std::string(key.str())))
      wrong("there is no '" + std::string(key.str()) + "' here; there are " +
            list_text({asked_.begin(), asked_.end()}));
  }
}

}  // namespace weft::lab
