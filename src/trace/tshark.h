// For tests: a capture read by tshark, the independent decoder.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace weft::trace {

// ./dev setup installs it.
inline bool has_tshark() { return std::system("command -v tshark >/dev/null") == 0; }

// The named fields of each packet of a capture: a row per packet, "" where a packet has no such field. No
// rows if tshark failed.
inline std::vector<std::vector<std::string>> dissect(const std::string& path,
                                                     const std::vector<std::string>& fields) {
  std::string command = "tshark -r '" + path + "' -T fields -E separator='|' -E occurrence=f";
  command += " -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE";
  for (const std::string& f : fields) command += " -e " + f;
  std::FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return {};
  std::string output;
  char chunk[4096];
  for (std::size_t n = 0; (n = std::fread(chunk, 1, sizeof chunk, pipe)) != 0;) output.append(chunk, n);
  if (pclose(pipe) != 0) return {};
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> row(1);
    for (const char c : line) {
      if (c == '|')
        row.emplace_back();
      else
        row.back() += c;
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace weft::trace
