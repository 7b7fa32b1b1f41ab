#include "live/rsockets/table.h"

#include <pthread.h>

#include <utility>

namespace weft::live::rsockets {

// Never destroyed: a thread may still be in a call while the process ends.
Table& Table::all() {
  static Table* const table = new Table;
  return *table;
}

Table::Table() { pthread_atfork(before_fork, in_parent, in_child); }

void Table::before_fork() { all().mutex_.lock(); }
void Table::in_parent() { all().mutex_.unlock(); }

// The objects stay as they are: other threads of the parent may have been at work in them.
void Table::in_child() {
  Table& t = all();
  auto* const left = new std::map<int, std::shared_ptr<Socket>>(std::move(t.sockets_));
  t.sockets_.clear();
  for (const auto& [fd, s] : *left) t.inherited_.insert(fd);
  t.mutex_.unlock();
}

void Table::add(std::shared_ptr<Socket> s) {
  const std::lock_guard lock(mutex_);
  const int fd = s->descriptor();
  inherited_.erase(fd);
  sockets_[fd] = std::move(s);
}

std::shared_ptr<Socket> Table::find(int fd) {
  const std::lock_guard lock(mutex_);
  const auto it = sockets_.find(fd);
  return it == sockets_.end() ? nullptr : it->second;
}

std::shared_ptr<Socket> Table::take(int fd) {
  const std::lock_guard lock(mutex_);
  const auto it = sockets_.find(fd);
  if (it == sockets_.end()) return nullptr;
  std::shared_ptr<Socket> s = std::move(it->second);
  sockets_.erase(it);
  return s;
}

bool Table::forget_inherited(int fd) {
  const std::lock_guard lock(mutex_);
  return inherited_.erase(fd) != 0;
}

}  // namespace weft::live::rsockets
