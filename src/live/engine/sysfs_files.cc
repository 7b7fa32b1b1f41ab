#include "live/engine/sysfs_files.h"

#include <net/if.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "live/engine/nic.h"

namespace weft::live {
namespace {

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

}  // namespace

std::vector<SysfsFile> sysfs_files(const Addresses& own) {
  const std::string guid = guid_text(guid_of(own.first));
  std::vector<SysfsFile> files{
      {"node_type", "1: CA"},
      {"node_desc", "weft"},
      {"hca_type", "weft"},
      {"fw_ver", kFirmware},
      {"node_guid", guid},
      {"sys_image_guid", guid},
      {"ports/1/state", "4: ACTIVE"},
      {"ports/1/phys_state", "5: LinkUp"},
      {"ports/1/link_layer", "Ethernet"},
      {"ports/1/rate", "100 Gb/sec (4X EDR)"},  // ibv_query_port's width and speed
      {"ports/1/lid", "0x0"},
      {"ports/1/sm_lid", "0x0"},
      {"ports/1/pkeys/0", "0xffff"},
  };
  for (std::size_t i = 0; i < Addresses::kMost; ++i) {
    std::string entry = std::to_string(i);
    entry.insert(entry.begin(), '/');
    if (i >= own.count()) {  // an empty place has a GID of zeros, and nothing else
      const wire::Address none;
      files.push_back({"ports/1/gids" + entry, in_groups(none.bytes.data(), none.bytes.size())});
      continue;
    }
    files.push_back({"ports/1/gids" + entry, in_groups(own.at(i).bytes.data(), own.at(i).bytes.size())});
    files.push_back({"ports/1/gid_attrs/types" + entry, "RoCE v2"});
    files.push_back({"ports/1/gid_attrs/ndevs" + entry, interface_text(own.at(i))});
  }
  return files;
}

std::vector<std::string> interfaces_of(const Addresses& own) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < own.count(); ++i) {
    std::string name = interface_text(own.at(i));
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

}  // namespace weft::live
