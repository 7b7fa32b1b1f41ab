// weft replay SEED [--trace F.pcapng]: runs one world of the swarm again and shows every packet.
//
// A seed is all there is to a world (pair/plan.h), so this is the run that failed, not one like it. The
// text goes to standard output, one line per packet and completion, findings last; the capture opens in
// Wireshark and tshark. Exit code 1 if the world breaks a rule, as it did in the swarm.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "core/base/parse.h"
#include "pair/line_swarm.h"
#include "pair/swarm.h"
#include "record/output.h"

namespace weft::cli {
namespace {

struct Options {
  std::string seed;
  std::string trace;
  bool quiet = false;
  bool line = false;
};

struct Replayed {
  bool clean = false;
  std::string findings;
  std::uint64_t packets = 0;
};

Replayed run_world(std::uint64_t seed, bool line, pair::Recorder& recorder) {
  if (line) {
    pair::LineResult r = pair::run_line_seed(seed, &recorder);
    return {r.clean, std::move(r.findings), r.packets};
  }
  pair::SeedResult r = pair::run_seed(seed, &recorder);
  return {r.clean, std::move(r.findings), r.packets};
}

int replay(const Options& o) {
  const auto seed = parse_integer("SEED", o.seed, 0, UINT64_MAX / 2);
  if (!seed) return refuse(seed.error());
  std::optional<record::OutputFile> capture;
  if (!o.trace.empty()) {
    auto opened = record::OutputFile::open("--trace", o.trace);
    if (!opened) return refuse(opened.error());
    capture = std::move(*opened);
  }
  pair::Recorder recorder(o.quiet ? nullptr : &std::cout, capture ? &capture->stream() : nullptr);
  const Replayed r = run_world(*seed, o.line, recorder);
  if (capture) {
    if (const auto whole = capture->finish(); !whole) return fault(whole.error());
  }
  std::cout << "seed " << *seed << ": " << r.packets << " packets, "
            << (r.clean ? "no rule broken" : "breaks a rule:") << '\n'
            << r.findings;
  return r.clean ? 0 : 1;
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("replay", "Run one world of the swarm again and show every packet");
  command->add_option("SEED", options->seed, "the seed that weft-swarm printed")->required();
  command->add_option("--trace", options->trace, "also write the packets to this pcapng file");
  command->add_flag("--line", options->line, "a world of weft-line-swarm: two sites and a pair of boxes");
  command->add_flag("--quiet", options->quiet, "show the verdict only");
  command->footer("Example: weft replay 4711 --trace world.pcapng");
  command->callback([options, &exit_code] { exit_code = replay(*options); });
}

}  // namespace weft::cli
