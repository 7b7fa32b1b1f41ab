#include "live/abi/objects.h"

#include <algorithm>
#include <iterator>

namespace weft::live::abi {

// Never freed: threads of the program may call us until the process has ended.
Objects& objects() {
  static Objects& all = *new Objects;
  return all;
}

void Objects::add(const void* object, const Entry& entry) {
  const std::lock_guard lock(mutex_);
  table_.emplace(object, entry);
}

void Objects::publish(const void* object, std::uint32_t number, const Needs& needs) {
  const std::lock_guard lock(mutex_);
  Entry& entry = table_.at(object);
  entry.number = number;
  entry.needs = needs;
}

void Objects::set_first_need(const void* object, const void* need) {
  const std::lock_guard lock(mutex_);
  if (const auto it = table_.find(object); it != table_.end()) it->second.needs[0] = need;
}

bool Objects::needed(const void* object) {
  const std::lock_guard lock(mutex_);
  return std::any_of(table_.begin(), table_.end(), [object](const auto& row) {
    const Needs& needs = row.second.needs;
    return std::find(needs.begin(), needs.end(), object) != needs.end();
  });
}

std::optional<std::uint32_t> Objects::find(const void* object, Free type, ibv_context* context) {
  const std::lock_guard lock(mutex_);
  const auto it = table_.find(object);
  if (it == table_.end() || it->second.free != type) return std::nullopt;
  if (context != nullptr && it->second.context != context) return std::nullopt;
  return it->second.number;
}

Objects::Table::node_type Objects::take(const void* object) {
  const std::lock_guard lock(mutex_);
  return table_.extract(object);
}

void Objects::put_back(Table::node_type taken) {
  const std::lock_guard lock(mutex_);
  table_.insert(std::move(taken));
}

void Objects::free_all_of(ibv_context* context) {
  const std::lock_guard lock(mutex_);
  for (auto it = table_.begin(); it != table_.end();) {
    const auto next = std::next(it);
    if (it->second.context == context) {
      const auto node = table_.extract(it);
      if (!node.mapped().elsewhere) node.mapped().free(const_cast<void*>(node.key()));
    }
    it = next;
  }
}

}  // namespace weft::live::abi
