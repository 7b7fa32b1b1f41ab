// The commands of `weft wan`, one file each (cmd_wan_NAME.cc); cmd_wan.cc has their table.
#pragma once

namespace CLI {
class App;
}

namespace weft::cli {

void add_wan_plan(CLI::App& wan, int& exit_code);
void add_wan_box(CLI::App& wan, int& exit_code);
void add_wan_link(CLI::App& wan, int& exit_code);
void add_wan_stat(CLI::App& wan, int& exit_code);

}  // namespace weft::cli
