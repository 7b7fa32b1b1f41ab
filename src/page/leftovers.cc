#include "page/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace weft::page {
namespace {

constexpr std::size_t kNames = 256;
constexpr pid_t kNobody = 0;
constexpr pid_t kTaken = -1;  // and its path is being written

struct Name {
  std::atomic<pid_t> owner = kNobody;
  std::array<char, 64> path{};
};
using Names = std::array<Name, kNames>;

// Never freed: the exit handler may be the last thing that runs.
Names& names() {
  static auto* const all = new Names;
  return *all;
}

void unlink_names() {
  const pid_t self = getpid();
  for (const Name& n : names()) {
    if (n.owner.load(std::memory_order_acquire) == self) unlink(n.path.data());
  }
}

bool stale(const std::string& path, std::uint32_t uid) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat s {};
  Header h;
  const Header right;
  const bool whole = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == uid &&
                     pread(fd, &h, sizeof h, 0) == static_cast<ssize_t>(sizeof h);
  close(fd);
  return whole && std::memcmp(h.magic, right.magic, sizeof h.magic) == 0 && h.version == kVersion &&
         gone(h.pid, h.began, h.space);
}

}  // namespace

bool gone(std::uint64_t pid, std::uint64_t began_then, std::uint64_t space) {
  if (space == 0 || space != process_space() || began_then == 0) return false;
  if (pid == 0 || pid > INT_MAX) return true;
  const std::uint64_t now = began(pid);
  if (now != 0) return now != began_then;
  return kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

void sweep(const std::string& directory, std::uint32_t uid) {
  DIR* const d = opendir(directory.c_str());
  if (d == nullptr) return;
  const std::string begin = "weft-" + std::to_string(uid) + "-";
  while (const dirent* const e = readdir(d)) {
    if (std::strncmp(e->d_name, begin.c_str(), begin.size()) != 0) continue;
    const std::string path = directory + "/" + e->d_name;
    if (stale(path, uid)) unlink(path.c_str());
  }
  closedir(d);
}

int hold(const std::string& path) {
  static const int registered = std::atexit(unlink_names);
  Names& all = names();
  if (registered != 0 || path.size() >= all[0].path.size()) return -1;
  const pid_t self = getpid();
  for (std::size_t i = 0; i < all.size(); ++i) {
    pid_t nobody = kNobody;
    if (!all[i].owner.compare_exchange_strong(nobody, kTaken)) continue;
    std::memcpy(all[i].path.data(), path.c_str(), path.size() + 1);
    all[i].owner.store(self, std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;
}

void let_go(int place) {
  if (place >= 0) names()[static_cast<std::size_t>(place)].owner.store(kNobody);
}

}  // namespace weft::page
