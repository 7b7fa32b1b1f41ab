// The table of commands, and the shell around all of them: version, help, and one sentence with exit
// code 2 for whatever the user got wrong.
#include "cli/commands.h"

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>
#include <ostream>

#include "cli/memory.h"

namespace weft::cli {
namespace {

constexpr std::array kCommands{
    Command{"run", add_run},       Command{"sim", add_sim},       Command{"pair", add_pair},
    Command{"lab", add_lab},       Command{"nic", add_nic},       Command{"wan", add_wan},
    Command{"replay", add_replay}, Command{"stat", add_stat},     Command{"ping", add_ping},
    Command{"perf", add_perf},     Command{"bench", add_bench},   Command{"monitor", add_monitor},
    Command{"adm", add_adm},       Command{"doctor", add_doctor},
};

constexpr const char* kAbout =
    "weft: RDMA that scales, to lossy networks, to tens of thousands of connections,\n"
    "and to people who own no RDMA hardware at all.";

// CLI11 ends some sentences and not others, and lists names over several lines.
std::string one_sentence(std::string text) {
  std::string line;
  for (const char c : text) {
    const bool space = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (!space) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && (line.back() == ' ' || line.back() == '.')) line.pop_back();
  return line;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

int refuse(const Error& error) {
  std::cerr << "weft: " << one_sentence(error.message) << ".\n";
  return kExitRefused;
}

int fault(const Error& error) {
  refuse(error);
  return 1;
}

namespace {

// An option with a value has one: an empty file name would mean that no file was asked for.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->nonpositional() && option->get_items_expected_max() > 0)
      option->check([](const std::string& value) {
        return value.empty() ? std::string("it is followed by nothing") : std::string();
      });
  }
  for (CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);
}

}  // namespace

int parse(CLI::App& app, std::vector<std::string> args, std::ostream& out, std::ostream& err) {
  const std::string program = app.get_name();
  if (args.empty()) {
    err << program << ": name a command; " << program << " --help lists them.\n";
    return kExitRefused;
  }
  // CLI11 takes them from the back.
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  refuse_empty_values(app);
  try {
    app.parse(std::move(reversed));
    if (app.get_subcommands().empty()) {
      err << program << ": name a command; " << program << " --help lists them.\n";
      return kExitRefused;
    }
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted, out, err);
  } catch (const CLI::ParseError& wrong) {
    std::string help = program;
    const CLI::App* at = &app;
    while (!at->get_subcommands().empty()) {
      at = at->get_subcommands()[0];
      help += " " + at->get_name();
    }
    help += " --help";
    err << program << ": " << one_sentence(wrong.what()) << "; see " << help << ".\n";
    return kExitRefused;
  }
  return 0;
}

int run(std::vector<std::string> args, std::ostream& out, std::ostream& err) {
  CLI::App app{kAbout, "weft"};
  app.set_version_flag("--version", version_line());
  app.footer("Each command has examples: weft COMMAND --help");
  app.option_defaults()->always_capture_default();

  int exit_code = 0;
  for (const Command& command : commands()) {
    command.add(app, exit_code);
    // These become another program, whose memory is its own affair.
    if (command.add != add_run && command.add != add_ping && command.add != add_perf &&
        command.add != add_bench)
      app.get_subcommand(command.name)->preparse_callback([](std::size_t) { limit_memory(); });
  }
  const int parsed = parse(app, std::move(args), out, err);
  return parsed != 0 ? parsed : exit_code;
}

}  // namespace weft::cli
