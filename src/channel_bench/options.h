// The options of `weft bench channel`. `weft` parses them, so that it can explain and refuse, and then
// becomes the program weft-channel-bench, which parses them again: only that one is linked against
// libibverbs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft::bench {

// What is measured; each name is a word of --part.
inline constexpr const char* kParts[] = {"latency"};

struct Options {
  std::vector<std::string> parts;  // empty: all
  std::vector<std::uint32_t> sizes;
  std::uint32_t turns = 7;
  std::uint32_t rounds = 1000;
  std::string far = "127.0.9.2";  // the address of the far end
  bool quick = false;
  bool as_json = false;

  bool measures(const std::string& part) const;
};
inline constexpr const char* kNear = "127.0.9.1";  // our address, if --addr names none

// Adds `bench channel`; the answer is `channel`.
CLI::App* add_options(CLI::App& app, Options& o);
// What follows from --quick, and from what was left out.
void complete(Options& o);

}  // namespace weft::bench
