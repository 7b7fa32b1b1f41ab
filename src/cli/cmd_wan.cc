// weft wan: RDMA between sites that are far apart.
#include "cli/cmd_wan.h"

#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace weft::cli {

void add_wan(CLI::App& app, int& exit_code) {
  CLI::App* wan = app.add_subcommand("wan", "RDMA over long distances: what a line reaches, and what helps");
  wan->require_subcommand(1);
  add_wan_plan(*wan, exit_code);
  add_wan_box(*wan, exit_code);
  add_wan_link(*wan, exit_code);
  add_wan_stat(*wan, exit_code);
  wan->footer("Each has examples: weft wan COMMAND --help\nExample: weft wan plan --distance 1000km");
}

}  // namespace weft::cli
