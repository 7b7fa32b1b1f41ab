// What programs read about a device in sysfs. The kernel knows nothing of ours, so the files below its folder
// are answered here, for whoever reads them through libibverbs; all others are read.
#include <fcntl.h>
#include <net/if.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "live/abi/handles.h"

namespace weft::live::abi {
namespace {

constexpr std::string_view kFolder = "/sys/class/infiniband/weft0/";

// Groups of four digits, as the kernel prints GUIDs and GIDs.
std::string in_groups(const std::uint8_t* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    char two[4];
    std::snprintf(two, sizeof two, "%02x", bytes[i]);
    if (i != 0 && i % 2 == 0) text += ':';
    text += two;
  }
  return text;
}

std::string guid_text(std::uint64_t guid) {
  std::uint8_t bytes[8];
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(guid >> (56U - 8U * i));
  return in_groups(bytes, sizeof bytes);
}

std::string interface_text(const wire::Address& address) {
  char name[IF_NAMESIZE] = "";
  if (const std::uint32_t index = interface_of(address); index != 0) if_indextoname(index, name);
  return name;
}

// A file of the GID table, named by its entry.
std::optional<std::string> gid_content(std::string_view file, const Addresses& own) {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  for (std::size_t i = 0; i < own.count(); ++i) {
    if (file.substr(slash + 1) != std::to_string(i)) continue;
    const std::string_view table = file.substr(0, slash);
    if (table == "gids") return in_groups(own.at(i).bytes.data(), own.at(i).bytes.size());
    if (table == "gid_attrs/types") return "RoCE v2";
    if (table == "gid_attrs/ndevs") return interface_text(own.at(i));
  }
  return std::nullopt;
}

// The content of a file in the device's folder; an empty entry of a table, like a file that is not there, has
// none.
std::optional<std::string> content_of(std::string_view file, const Addresses& own) {
  if (file == "node_type") return "1: CA";
  if (file == "node_desc" || file == "hca_type") return "weft";
  if (file == "fw_ver") return kFirmware;
  if (file == "node_guid" || file == "sys_image_guid") return guid_text(guid_of(own.first));
  constexpr std::string_view kPort = "ports/1/";
  if (file.substr(0, kPort.size()) != kPort) return std::nullopt;
  file.remove_prefix(kPort.size());
  if (file == "state") return "4: ACTIVE";
  if (file == "phys_state") return "5: LinkUp";
  if (file == "link_layer") return "Ethernet";
  if (file == "rate") return "100 Gb/sec (4X EDR)";  // ibv_query_port's width and speed
  if (file == "lid" || file == "sm_lid") return "0x0";
  if (file == "pkeys/0") return "0xffff";
  return gid_content(file, own);
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
  if (path.compare(0, kFolder.size(), kFolder) != 0) return read_file(path, out, size);
  const auto options = options_from_environment(std::getenv);
  if (!options) return -1;
  const auto content = content_of(std::string_view(path).substr(kFolder.size()), options->own);
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
