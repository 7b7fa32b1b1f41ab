// The options of `weft ping` and `weft perf`. `weft` parses them, so that it can explain and refuse, and then
// becomes the program weft-channel, which parses them again: only that one is linked against libibverbs.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "channel_tools/plans.h"

namespace CLI {
class App;
}

namespace weft::tools {

struct BothOptions {
  bool serve = false;
  bool as_json = false;
  std::string device;
  std::vector<std::string> parameters;
  AgentPlan agent;
};
struct PingOptions {
  BothOptions common;
  std::vector<std::string> hosts;
  std::string mesh;
  std::string svg;
  PingPlan plan;
  double interval_ms = 10;
  double timeout_ms = 500;
  double max_us = 0;
};
struct PerfOptions {
  BothOptions common;
  PerfPlan plan;
  std::string size = "64";
  std::string sizes;
  std::string elephant = "1MB";
  double max_p99 = 0;
  double min_gbps = 0;
};
CLI::App* add_ping_options(CLI::App& app, PingOptions& o);
CLI::App* add_perf_options(CLI::App& app, PerfOptions& o);

}  // namespace weft::tools
