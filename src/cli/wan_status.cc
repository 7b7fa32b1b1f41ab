#include "cli/wan_status.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* kBegin = "box-";
constexpr const char* kEnd = ".json";
constexpr auto kSilentAfter = std::chrono::seconds(5);

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// When process `pid` was started, in ticks since the machine was; 0: there is none.
std::uint64_t started(std::uint64_t pid) {
  const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
  // The second field is a name in brackets, with anything in it.
  std::istringstream rest(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));
  std::string field;
  for (int i = 3; i <= 22; ++i) rest >> field;
  std::uint64_t ticks = 0;
  std::from_chars(field.data(), field.data() + field.size(), ticks);
  return rest ? ticks : 0;
}

bool usable(const std::string& folder, bool make) {
  if (make) {
    std::error_code ignored;
    fs::create_directories(folder, ignored);
  }
  return access(folder.c_str(), make ? W_OK | X_OK : R_OK) == 0;
}

}  // namespace

std::string status_folder(const std::string& asked, bool make) {
  if (!asked.empty()) return usable(asked, make) ? asked : "";
  std::vector<std::string> places{"/run/weft"};
  if (const char* own = std::getenv("XDG_RUNTIME_DIR")) places.push_back(std::string(own) + "/weft");
  for (const std::string& p : places) {
    if (usable(p, make)) return p;
  }
  return "";
}

StatusFile::StatusFile(const std::string& folder) {
  if (!folder.empty()) path_ = folder + "/" + kBegin + std::to_string(getpid()) + kEnd;
}
StatusFile::~StatusFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

bool StatusFile::write(record::Record status) {
  if (path_.empty()) return true;
  status.set("pid", static_cast<std::uint64_t>(getpid()));
  status.set("started", started(static_cast<std::uint64_t>(getpid())));
  // A new file, and no link that somebody else may have put there.
  const std::string part = path_ + ".part";
  unlink(part.c_str());
  const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const std::string text = status.json();
  const bool whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (close(fd) != 0 || !whole) return false;
  return std::rename(part.c_str(), path_.c_str()) == 0;
}

std::vector<BoxStatus> read_statuses(const std::string& folder) {
  std::vector<std::pair<std::uint64_t, BoxStatus>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    std::error_code what;
    if (!fs::is_regular_file(entry.symlink_status(what))) continue;
    BoxStatus s{entry.path().string(), Life::kRuns, text_of(entry.path())};
    const auto j = nlohmann::json::parse(s.json, nullptr, false);
    if (!j.is_object() || !j.contains("pid") || !j["pid"].is_number_unsigned() || !j.contains("started") ||
        !j["started"].is_number_unsigned())
      continue;
    const auto pid = j["pid"].get<std::uint64_t>();
    std::error_code unread;
    const auto written = fs::last_write_time(entry.path(), unread);
    if (started(pid) != j["started"].get<std::uint64_t>()) {
      s.life = Life::kGone;
    } else if (!unread && fs::file_time_type::clock::now() - written > kSilentAfter) {
      s.life = Life::kSilent;
    }
    found.emplace_back(pid, std::move(s));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<BoxStatus> all;
  for (auto& f : found) all.push_back(std::move(f.second));
  return all;
}

}  // namespace weft::cli
