// weft nic: designs of NICs, looked at from outside a simulation.
#include "cli/cmd_nic.h"

#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace weft::cli {

void add_nic(CLI::App& app, int& exit_code) {
  CLI::App* nic = app.add_subcommand("nic", "designs of NICs: what memory they take");
  nic->require_subcommand(1);
  add_nic_memory(*nic, exit_code);
  nic->footer("Each has examples: weft nic COMMAND --help\nExample: weft nic memory srnic --qps 10000");
}

}  // namespace weft::cli
