// What the kernel would show of the device in sysfs: the one list behind ibv_read_sysfs_file (abi/sysfs.cc)
// and the folder that `weft run --device-files` shows.
#pragma once
#include <string>
#include <vector>

#include "live/wires/addresses.h"

namespace weft::live {

inline constexpr char kFirmware[] = "weft 0.1";
inline constexpr char kDeviceFolder[] = "/sys/class/infiniband/weft0";

struct SysfsFile {
  std::string path;  // below the device's folder
  std::string content;
};
std::vector<SysfsFile> sysfs_files(const Addresses& own);

// The names of the interfaces that have the addresses, each once.
std::vector<std::string> interfaces_of(const Addresses& own);

}  // namespace weft::live
