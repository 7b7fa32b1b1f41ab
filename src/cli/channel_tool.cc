#include "cli/channel_tool.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace weft::cli {

std::vector<std::string> own_words() {
  std::ifstream in("/proc/self/cmdline");
  std::vector<std::string> words;
  std::string w;
  std::getline(in, w, '\0');  // weft
  for (; std::getline(in, w, '\0');) {
    if (w == "--addr") {
      std::getline(in, w, '\0');
      continue;
    }
    if (!w.starts_with("--addr=")) words.push_back(w);
  }
  return words;
}

Result<void> become_tool(const std::string& address, const std::string& name) {
  const auto here = own_directory();
  if (!here) return tl::unexpected(here.error());
  std::vector<std::string> program = own_words();
  program.insert(program.begin(), *here + "/" + name);
  if (!address.empty()) {
    setenv("WEFT_ADDR", address.c_str(), 1);
    return become(program);
  }
  std::vector<char*> argv;
  for (const std::string& w : program) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  return fail("cannot start '" + program.front() + "': " + std::strerror(errno));
}

}  // namespace weft::cli
