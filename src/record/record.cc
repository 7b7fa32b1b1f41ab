#include "record/record.h"

#include <nlohmann/json.hpp>

namespace weft::record {

struct Record::Tree {
  nlohmann::ordered_json value = nlohmann::ordered_json::object();
};

Record::Record() : tree_(std::make_unique<Tree>()) {}
Record::~Record() = default;
Record::Record(Record&&) noexcept = default;
Record& Record::operator=(Record&&) noexcept = default;

Record& Record::set(std::string_view name, std::int64_t value) {
  tree_->value[std::string(name)] = value;
  return *this;
}
Record& Record::set(std::string_view name, std::uint64_t value) {
  tree_->value[std::string(name)] = value;
  return *this;
}
Record& Record::set(std::string_view name, double value) {
  tree_->value[std::string(name)] = value;
  return *this;
}
Record& Record::set(std::string_view name, bool value) {
  tree_->value[std::string(name)] = value;
  return *this;
}
Record& Record::set(std::string_view name, std::string_view value) {
  tree_->value[std::string(name)] = std::string(value);
  return *this;
}
Record& Record::set(std::string_view name, Record value) {
  tree_->value[std::string(name)] = std::move(value.tree_->value);
  return *this;
}
Record& Record::append(std::string_view name, Record value) {
  tree_->value[std::string(name)].push_back(std::move(value.tree_->value));
  return *this;
}

std::string Record::json() const { return tree_->value.dump(2) + "\n"; }

}  // namespace weft::record
