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
inline constexpr const char* kParts[] = {"latency",  "connect", "rnr",    "memory", "scale", "gone",
                                         "protocol", "waiting", "shared", "cache",  "pages"};

struct Options {
  std::vector<std::string> parts;  // empty: all
  std::vector<std::uint32_t> sizes;
  std::uint32_t turns = 7;
  std::uint32_t rounds = 1000;
  std::uint32_t connections = 4096;  // of a storm
  std::uint32_t storms = 3;          // so often it is measured
  std::uint32_t messages = 20'000;   // to a slow receiver
  std::uint32_t channels = 64;       // whose memory is counted
  std::string far = "127.0.9.2";     // the address of the far end
  bool beside = false;               // latency: other programs, too
  bool in_namespace = false;         // a network of its own, whose addresses are an interface's
  bool quick = false;
  bool as_json = false;

  bool measures(const std::string& part) const;
};
inline constexpr const char* kNear = "127.0.9.1";  // our address, if --addr names none

// Adds `bench channel`; the answer is `channel`.
CLI::App* add_options(CLI::App& app, Options& o);
// What follows from --quick, and from what was left out. `channel` has parsed them.
void complete(Options& o, const CLI::App& channel);

}  // namespace weft::bench
