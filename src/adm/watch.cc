#include "adm/watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace weft::adm {
namespace {

constexpr std::uint32_t kOfFolder = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB |
                                    IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr std::uint32_t kOfParent =
    IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR;  // a folder may open to us
constexpr std::uint32_t kFolderGone = IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Watch::Watch(const std::string& path) : folder_(folder_of(path)), name_(path.substr(path.rfind('/') + 1)) {
  if (path.empty()) return;
  fd_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd_ >= 0) follow();
}

Watch::~Watch() {
  if (fd_ >= 0) close(fd_);
}

// True: it is the folder. A folder that is made between the two calls is found by the third.
bool Watch::follow() {
  if (watched_ >= 0) inotify_rm_watch(fd_, watched_);
  parent_ = false;
  watched_ = inotify_add_watch(fd_, folder_.c_str(), kOfFolder);
  if (watched_ >= 0) return true;
  const int parent = inotify_add_watch(fd_, folder_of(folder_).c_str(), kOfParent);
  watched_ = inotify_add_watch(fd_, folder_.c_str(), kOfFolder);
  if (watched_ >= 0) {
    if (parent >= 0) inotify_rm_watch(fd_, parent);
    return true;
  }
  watched_ = parent;
  parent_ = true;
  return false;
}

bool Watch::changed() {
  if (fd_ < 0) return false;
  bool any = false;
  bool again = false;
  alignas(inotify_event) std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t n = read(fd_, bytes.data(), bytes.size());
    if (n <= 0) break;
    for (ssize_t at = 0; at < n;) {
      inotify_event e;
      std::memcpy(&e, bytes.data() + at, sizeof e);
      const char* const name = e.len == 0 ? "" : bytes.data() + at + sizeof e;
      at += static_cast<ssize_t>(sizeof e + e.len);
      if ((e.mask & IN_Q_OVERFLOW) != 0) any = again = true;
      if (e.wd != watched_) continue;  // of a watch that was removed
      again = again || parent_ || (e.mask & kFolderGone) != 0;
      any = any || (!parent_ && name_ == name);
    }
  }
  if (again) any = follow() || any;
  return any || again;
}

}  // namespace weft::adm
