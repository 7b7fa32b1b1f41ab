// The commands of `weft nic`, one file each (cmd_nic_NAME.cc); cmd_nic.cc has their table.
#pragma once

namespace CLI {
class App;
}

namespace weft::cli {

void add_nic_explain(CLI::App& nic, int& exit_code);
void add_nic_explore(CLI::App& nic, int& exit_code);
void add_nic_sweep(CLI::App& nic, int& exit_code);
void add_nic_memory(CLI::App& nic, int& exit_code);

}  // namespace weft::cli
