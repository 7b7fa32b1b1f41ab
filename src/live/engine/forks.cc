#include "live/engine/forks.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "live/engine/nic_state.h"

namespace weft::live {
namespace {

std::mutex& mutex() {
  static std::mutex m;
  return m;
}
// Never destroyed: a process may fork while it ends.
std::vector<Nic*>& nics() {
  static auto* const all = new std::vector<Nic*>;
  return *all;
}

void before() {
  mutex().lock();
  for (Nic* nic : nics()) nic->ownership().acquire();
}

void in_parent() {
  for (Nic* nic : nics()) nic->ownership().release();
  mutex().unlock();
}

void in_child() {
  for (Nic* nic : nics()) nic->still_owned();
  in_parent();
}

void at_exit() {
  const std::lock_guard lock(mutex());
  for (Nic* nic : nics()) nic->finish();
}

}  // namespace

void mind_forks(Nic& nic) {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(before, in_parent, in_child);
    std::atexit(at_exit);
  });
  const std::lock_guard lock(mutex());
  nics().push_back(&nic);
}

void forget_forks(Nic& nic) {
  const std::lock_guard lock(mutex());
  std::erase(nics(), &nic);
}

}  // namespace weft::live
