// Which descriptors are rsockets. A call holds what it has found, so that an rsocket which is closed
// meanwhile stays until the call has returned.
//
// A forked child has no use of its parent's rsockets (docs/VERBS.md): there they are no rsockets any more,
// and all that is left to do with them is to close their descriptors.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "live/rsockets/socket.h"

namespace weft::live::rsockets {

class Table {
 public:
  // The process's own.
  static Table& all();

  void add(std::shared_ptr<Socket> s);
  std::shared_ptr<Socket> find(int fd);  // nullptr: it is none
  std::shared_ptr<Socket> take(int fd);
  // True: it was the parent's, and is no more.
  bool forget_inherited(int fd);

 private:
  Table();
  static void before_fork();
  static void in_parent();
  static void in_child();

  std::mutex mutex_;
  std::map<int, std::shared_ptr<Socket>> sockets_;
  std::set<int> inherited_;
};

}  // namespace weft::live::rsockets
