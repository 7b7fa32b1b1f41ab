// What programs read about a device in sysfs. The kernel knows nothing of ours, so the files below its folder
// (live/engine/sysfs_files.h) are answered here, for whoever reads them through libibverbs; all others are
// read. `weft run --device-files` shows them to everybody else.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "live/abi/handles.h"
#include "live/engine/sysfs_files.h"

namespace weft::live::abi {
namespace {

// The content of a file in the device's folder; an empty entry of a table, like a file that is not there, has
// none.
std::optional<std::string> content_of(std::string_view file, const Addresses& own) {
  for (const SysfsFile& f : sysfs_files(own)) {
    if (f.path == file) return f.content;
  }
  return std::nullopt;
}

// -1: none, or no room for it and its end.
int give(const std::string& text, char* out, std::size_t size) {
  if (text.size() >= size) return -1;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return static_cast<int>(text.size());
}

int read_file(const std::string& path, char* out, std::size_t size) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t n = read(fd, out, size);
  close(fd);
  if (n <= 0) return static_cast<int>(n);
  if (out[n - 1] == '\n') {
    out[--n] = '\0';
  } else if (static_cast<std::size_t>(n) < size) {
    out[n] = '\0';
  } else {
    return -1;
  }
  return static_cast<int>(n);
}

int read_sysfs(const char* directory, const char* file, char* out, std::size_t size) {
  const std::string path = std::string(directory) + "/" + file;
  constexpr std::string_view kFolder = kDeviceFolder;
  if (path.compare(0, kFolder.size() + 1, std::string(kFolder) + "/") != 0) return read_file(path, out, size);
  const auto options = options_from_environment(std::getenv);
  if (!options) return -1;
  const auto content = content_of(std::string_view(path).substr(kFolder.size() + 1), options->own);
  return content ? give(*content, out, size) : -1;
}

}  // namespace
}  // namespace weft::live::abi

WEFT_EXPORT const char* ibv_get_sysfs_path() { return "/sys"; }

WEFT_EXPORT int ibv_read_sysfs_file(const char* directory, const char* file, char* out, std::size_t size) {
  try {
    return weft::live::abi::read_sysfs(directory, file, out, size);
  } catch (const std::exception&) {
    return -1;
  }
}
