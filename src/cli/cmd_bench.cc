// weft bench: what a layer costs beside what it stands on. `channel` is the program weft-channel-bench
// (channel_bench/bench.h), over the soft NIC.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "channel_bench/options.h"
#include "cli/channel_tool.h"
#include "cli/commands.h"

namespace weft::cli {

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<bench::Options>();
  auto address = std::make_shared<std::string>(bench::kNear);
  CLI::App* const channel = bench::add_options(app, *options);
  channel->add_option("--addr", *address, "the address of the near end")
      ->type_name("ADDRESS")
      ->capture_default_str();
  channel->callback([options, address, &exit_code] {
    if (*address == options->far) {
      exit_code = refuse({"--far " + options->far + ": both ends cannot have one address"});
      return;
    }
    if (const auto done = become_tool(*address, "weft-channel-bench"); !done)
      exit_code = refuse(done.error());
  });
}

}  // namespace weft::cli
