// `weft lab report` and `weft lab document`: what a record says, as a page and as docs/RESULTS.md.
#pragma once

namespace CLI {
class App;
}

namespace weft::cli {

void add_lab_reports(CLI::App* lab, int& exit_code);

}  // namespace weft::cli
