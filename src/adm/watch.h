// Tells when a file may have changed, by inotify on its folder: it need not be there yet, and it is replaced
// by renaming. Where the folder is not there either, its parent is watched until it is.
#pragma once
#include <string>

namespace weft::adm {

class Watch {
 public:
  // Without inotify, or with an empty path, fd() is -1 and nothing ever changes.
  explicit Watch(const std::string& path);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  int fd() const { return fd_; }  // readable when changed() has something to tell
  // One system call where nothing happened. It never waits.
  bool changed();

 private:
  bool follow();

  int fd_ = -1;
  int watched_ = -1;
  bool parent_ = false;  // it is the folder's parent that is watched
  std::string folder_;
  std::string name_;
};

}  // namespace weft::adm
