#include "cli/program.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "cli/become.h"
#include "cli/commands.h"
#include "cli/stopwatch.h"
#include "lab/live.h"

namespace weft::cli {
namespace {

// "model name" of proc(5), which not every architecture has.
std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string machine() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  (void)gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + " (" + std::to_string(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))) +
         " x " + processor() + ")";
}

}  // namespace

std::string live_id() { return live_code() + " " WEFT_BUILD " on " + machine(); }

std::string own_id(const lab::Experiment& e) { return lab::is_live(e) ? live_id() : simulator_id(); }

lab::Program this_program() {
  const auto here = own_directory();
  return {simulator_id(), version_line(), wall_seconds, live_id(), here.value_or("") + "/weft"};
}

}  // namespace weft::cli
