// weft nic: designs of NICs, looked at from outside a simulation.
#include "cli/cmd_nic.h"

#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace weft::cli {

void add_nic(CLI::App& app, int& exit_code) {
  CLI::App* nic = app.add_subcommand(
      "nic", "designs of NICs: what bounds them, what memory they take, how they bear many connections");
  nic->require_subcommand(1);
  add_nic_memory(*nic, exit_code);
  add_nic_explain(*nic, exit_code);
  add_nic_sweep(*nic, exit_code);
  add_nic_explore(*nic, exit_code);
  nic->footer("Each has examples: weft nic COMMAND --help\nExample: weft nic explain srnic --size 512");
}

}  // namespace weft::cli
