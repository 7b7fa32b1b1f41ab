// weft ping: pings over channels (channel_tools/ping.h).
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "channel_tools/options.h"
#include "cli/channel_tool.h"
#include "cli/commands.h"

namespace weft::cli {

void add_ping(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<tools::PingOptions>();
  auto address = std::make_shared<std::string>();
  CLI::App* const ping = tools::add_ping_options(app, *options);
  ping->add_option("--addr", *address, "over the soft NIC on this address, as weft run --addr")
      ->type_name("ADDRESS");
  ping->callback([options, address, &exit_code] {
    if (const auto done = become_tool(*address); !done) exit_code = refuse(done.error());
  });
}

}  // namespace weft::cli
