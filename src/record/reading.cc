#include "record/reading.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace weft::record {
namespace {

using Json = nlohmann::ordered_json;

std::string names_in(const Json& node) {
  if (node.is_array()) return node.empty() ? "nothing" : "0 to " + std::to_string(node.size() - 1);
  if (!node.is_object()) return "nothing below it";
  std::string all;
  for (const auto& [name, value] : node.items()) all += (all.empty() ? "" : ", ") + name;
  return all.empty() ? "nothing" : all;
}

Result<const Json*> find(const Json& root, std::string_view place) {
  const Json* at = &root;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = std::min(place.find('.', begin), place.size());
    const std::string name(place.substr(begin, dot - begin));
    const Json* next = nullptr;
    if (at->is_object()) {
      if (const auto it = at->find(name); it != at->end()) next = &*it;
    } else if (at->is_array()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
      if (error == std::errc() && end == name.data() + name.size() && index < at->size())
        next = &(*at)[index];
    }
    if (next == nullptr) {
      const std::string where = begin == 0 ? "the record" : fmt::format("'{}'", place.substr(0, begin - 1));
      return fail(
          fmt::format("metric '{}': there is no '{}' in {}; there is {}", place, name, where, names_in(*at)));
    }
    at = next;
    if (dot == place.size()) return at;
    begin = dot + 1;
  }
}

// Reads an expression from left to right. Without a record it only checks the grammar.
class Evaluator {
 public:
  Evaluator(const Reading* reading, std::string_view text) : reading_(reading), text_(text) {}

  Result<double> all() {
    const auto value = sum();
    if (value && next() != '\0') return wrong(fmt::format("'{}' is left over", text_.substr(at_)));
    return value;
  }

 private:
  static constexpr int kDeepest = 32;

  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  tl::unexpected<Error> wrong(const std::string& what) const {
    return fail(fmt::format("metric '{}': {}", text_, what));
  }
  Result<double> sum() {
    auto left = product();
    while (left && (next() == '+' || next() == '-')) {
      const bool minus = text_[at_++] == '-';
      const auto right = product();
      if (!right) return right;
      left = minus ? *left - *right : *left + *right;
    }
    return left;
  }
  Result<double> product() {
    auto left = factor();
    while (left && (next() == '*' || next() == '/')) {
      const bool divide = text_[at_++] == '/';
      const auto right = factor();
      if (!right) return right;
      if (divide && *right == 0) {
        if (reading_ != nullptr) return wrong("it divides by zero");
        continue;
      }
      left = divide ? *left / *right : *left * *right;
    }
    return left;
  }
  Result<double> factor() {
    const char c = next();
    if (c == '(' || c == '-') {
      if (++depth_ > kDeepest) return wrong("it nests too deep");
      ++at_;
      auto inner = c == '(' ? sum() : factor();
      --depth_;
      if (!inner) return inner;
      if (c == '-') return -*inner;
      if (next() != ')') return wrong("a ')' is missing");
      ++at_;
      return inner;
    }
    if (c >= '0' && c <= '9') return constant();
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return place();
    return wrong(fmt::format("a number, a name such as totals.packets_sent or a '(' must stand at '{}'",
                             text_.substr(at_)));
  }
  Result<double> constant() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return wrong(fmt::format("'{}' is no number", text_.substr(at_)));
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  Result<double> place() {
    const std::size_t begin = at_;
    const auto part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
             c == '.';
    };
    while (at_ < text_.size() && part(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    const bool optional = at_ < text_.size() && text_[at_] == '?';
    if (optional) ++at_;
    if (reading_ == nullptr) return 1;
    if (optional && !reading_->has(name)) return 0;
    return reading_->number(name);
  }

  const Reading* reading_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

struct Reading::Tree {
  Json value;
};

Reading::Reading(std::unique_ptr<Tree> tree) : tree_(std::move(tree)) {}
Reading::~Reading() = default;
Reading::Reading(Reading&&) noexcept = default;
Reading& Reading::operator=(Reading&&) noexcept = default;

Result<Reading> Reading::parse(std::string_view json) {
  auto tree = std::make_unique<Tree>();
  tree->value = Json::parse(json, nullptr, false);
  if (tree->value.is_discarded()) return fail("a recorded result is not JSON");
  return Reading(std::move(tree));
}

Result<double> Reading::number(std::string_view place) const {
  const auto node = find(tree_->value, place);
  if (!node) return tl::unexpected(node.error());
  if ((*node)->is_boolean()) return (*node)->get<bool>() ? 1.0 : 0.0;
  if ((*node)->is_number()) return (*node)->get<double>();
  return fail(fmt::format("metric '{}' is no number; below it there is {}", place, names_in(**node)));
}

bool Reading::has(std::string_view place) const { return find(tree_->value, place).has_value(); }

Result<double> Reading::evaluate(std::string_view expression) const {
  const auto value = Evaluator(this, expression).all();
  if (value && !std::isfinite(*value)) return fail("metric '" + std::string(expression) + "' is not finite");
  return value;
}

Result<void> check_expression(std::string_view expression) {
  const auto value = Evaluator(nullptr, expression).all();
  if (!value) return tl::unexpected(value.error());
  return {};
}

}  // namespace weft::record
