// weft perf: measures requests over channels (channel_tools/perf.h).
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "channel_tools/options.h"
#include "cli/channel_tool.h"
#include "cli/commands.h"

namespace weft::cli {

void add_perf(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<tools::PerfOptions>();
  auto address = std::make_shared<std::string>();
  CLI::App* const perf = tools::add_perf_options(app, *options);
  perf->add_option("--addr", *address, "over the soft NIC on this address, as weft run --addr")
      ->type_name("ADDRESS");
  perf->callback([options, address, &exit_code] {
    if (const auto done = become_tool(*address); !done) exit_code = refuse(done.error());
  });
}

}  // namespace weft::cli
