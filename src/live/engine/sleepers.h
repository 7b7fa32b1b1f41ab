// For tests: which threads of this process the kernel lists as asleep, so that a test need not guess how long
// it takes until one is.
#pragma once
#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace weft::live {

inline bool asleep(int thread) {
  std::FILE* const f = std::fopen(("/proc/self/task/" + std::to_string(thread) + "/stat").c_str(), "re");
  if (f == nullptr) return false;
  char state = 0;
  const bool known = std::fscanf(f, "%*d (%*[^)]) %c", &state) == 1;
  std::fclose(f);
  return known && state == 'S';
}

// The thread waits in read() of this descriptor; it may be asleep elsewhere as well.
inline bool reads(int thread, int fd) {
  std::FILE* const f = std::fopen(("/proc/self/task/" + std::to_string(thread) + "/syscall").c_str(), "re");
  if (f == nullptr) return asleep(thread);  // a kernel that does not tell
  long call = -1;
  unsigned long first = 0;
  const bool known = std::fscanf(f, "%ld %lx", &call, &first) == 2;
  std::fclose(f);
  return known && call == SYS_read && first == static_cast<unsigned long>(fd);
}

inline bool others_asleep() {
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  bool all = true;
  while (const dirent* const task = readdir(tasks)) {
    const int thread = std::atoi(task->d_name);
    if (thread != 0 && thread != gettid()) all = all && asleep(thread);
  }
  closedir(tasks);
  return all;
}

// Looks until `quiet` holds at twenty looks in a row, a millisecond apart. False: it does not in 20 s.
template <class Quiet>
bool stays(const Quiet& quiet) {
  int in_a_row = 0;
  for (int i = 0; i < 20'000 && in_a_row < 20; ++i) {
    in_a_row = quiet() ? in_a_row + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return in_a_row == 20;
}

}  // namespace weft::live
