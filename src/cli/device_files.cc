#include "cli/device_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "live/engine/sysfs_files.h"

namespace weft::cli {
namespace {

constexpr const char* kFile = "/dev/infiniband/uverbs0";
constexpr std::array kShown{"uverbs0", "rdma_cm"};

tl::unexpected<Error> refused(const char* step) {
  return fail(std::string("--device-files: cannot ") + step + " (" + std::strerror(errno) +
              "); start it as root, or let users make namespaces");
}

bool write_file(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return written;
}

// Who may make a namespace of mounts keeps all other rights; who may not makes one of users around it, as the
// user that he is.
bool leave() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNS) == 0) return true;
  if (errno != EPERM || unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  const auto same = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  return write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/uid_map", same(user)) &&
         write_file("/proc/self/gid_map", same(group));
}

bool empty_file(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  close(fd);
  return true;
}

bool write_new_file(const std::string& path, const std::string& text) {
  return empty_file(path) && write_file(path.c_str(), text);
}

// With all folders on the way.
bool make_folder(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  return !failed;
}

// One entry of a folder, at its place in the new one. What cannot be shown there is missing.
void show(const std::string& from, const std::string& to) {
  struct stat s {};
  if (lstat(from.c_str(), &s) != 0) return;
  if (S_ISLNK(s.st_mode)) {
    std::array<char, PATH_MAX> target{};
    if (readlink(from.c_str(), target.data(), target.size() - 1) > 0)
      static_cast<void>(symlink(target.data(), to.c_str()) == 0);
  } else if (S_ISDIR(s.st_mode) ? mkdir(to.c_str(), 0755) == 0 : empty_file(to)) {
    static_cast<void>(mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0);
  }
}

// All entries but one.
bool show_all(const std::string& from, const std::string& to, const std::string& but) {
  DIR* const folder = opendir(from.c_str());
  if (folder == nullptr) return false;
  while (const dirent* const entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && name != but) show(from + "/" + name, to + "/" + name);
  }
  closedir(folder);
  return true;
}

bool fill_dev(const std::string& folder) {
  if (!show_all("/dev", folder, "infiniband") || !make_folder(folder + "/infiniband")) return false;
  for (const char* const name : kShown) {
    const std::string file = folder + "/infiniband/" + name;
    if (!empty_file(file) || mount("/dev/null", file.c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
  }
  return true;
}

// Links of sysfs name their targets from where they are, and they stay there.
bool fill_classes(const std::string& folder, const live::Addresses& own) {
  const std::string devices = folder + "/infiniband";
  const std::string device = devices + "/weft0";
  if (!show_all("/sys/class", folder, "infiniband") || !make_folder(device)) return false;
  static_cast<void>(show_all("/sys/class/infiniband", devices, "weft0"));  // a host without a NIC has none
  for (const live::SysfsFile& f : live::sysfs_files(own)) {
    const std::string path = device + "/" + f.path;
    if (!make_folder(path.substr(0, path.rfind('/'))) || !write_new_file(path, f.content + "\n"))
      return false;
  }
  for (const std::string& name : live::interfaces_of(own)) {
    if (!make_folder(device + "/device/net/" + name)) return false;
  }
  return true;
}

// A folder in place of this host's, as `fill` makes it.
template <class Fill>
Result<void> show_instead(const char* what, const Fill& fill) {
  std::string folder = "/tmp/weft-files-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return refused("make a folder in /tmp");
  if (mount("tmpfs", folder.c_str(), "tmpfs", MS_NOSUID, "mode=755") != 0) {
    const int why = errno;
    rmdir(folder.c_str());
    errno = why;
    return refused("mount a tmpfs");
  }
  const bool shown = fill(folder) && mount(folder.c_str(), what, nullptr, MS_MOVE, nullptr) == 0;
  const int why = errno;
  if (!shown) umount2(folder.c_str(), MNT_DETACH);
  rmdir(folder.c_str());
  errno = why;
  if (!shown) return refused("show the files");
  return {};
}

}  // namespace

Result<void> show_device_files(const live::Addresses& own) {
  const bool in_dev = access(kFile, F_OK) == 0;
  const bool in_sysfs = access(live::kDeviceFolder, F_OK) == 0 || access("/sys/class", F_OK) != 0;
  if (in_dev && in_sysfs) return {};
  if (!leave()) return refused("make a namespace of mounts");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return refused("keep mounts to itself");
  if (!in_dev) {
    if (auto shown = show_instead("/dev", fill_dev); !shown) return shown;
  }
  if (in_sysfs) return {};
  return show_instead("/sys/class", [&](const std::string& folder) { return fill_classes(folder, own); });
}

}  // namespace weft::cli
