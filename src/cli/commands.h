// The command line of `weft`: one table of commands, one file per command (cmd_NAME.cc).
//
// To add a command: write cmd_NAME.cc with
//
//   void add_NAME(CLI::App& app, int& exit_code);
//
// declare it below, and give it a row in commands.cc. The function adds one sub-command, its options
// and an example in its footer, and sets a callback that does the work and stores the exit code.
//
// Exit codes, everywhere: 0 it worked; 1 it ran and the answer is bad (a check failed, a seed
// reproduced its bug); 2 nothing was started, because the user asked for something that cannot be:
// one sentence on standard error names the field, the value and the allowed range (`refuse`).
// CLI11 has a code of its own for each kind of mistake; run() maps them all to 2.
//
// CLI11's header takes seconds to compile and is included by .cc files only.
#pragma once
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace CLI {
class App;
}

namespace weft::cli {

inline constexpr int kExitRefused = 2;

struct Command {
  const char* name;
  void (*add)(CLI::App& app, int& exit_code);
};

void add_run(CLI::App& app, int& exit_code);
void add_sim(CLI::App& app, int& exit_code);
void add_pair(CLI::App& app, int& exit_code);
void add_lab(CLI::App& app, int& exit_code);
void add_nic(CLI::App& app, int& exit_code);
void add_wan(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_ping(CLI::App& app, int& exit_code);
void add_perf(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_stat(CLI::App& app, int& exit_code);
void add_monitor(CLI::App& app, int& exit_code);
void add_adm(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);

// Every command, in the order of `weft --help`.
std::span<const Command> commands();

// What main does: parse `args` (without the program's name), run the command, give the exit code.
int run(std::vector<std::string> args, std::ostream& out, std::ostream& err);

// The shell around an App: help, version, and one sentence for what is wrong. 0 unless that was the answer.
int parse(CLI::App& app, std::vector<std::string> args, std::ostream& out, std::ostream& err);

// "weft 0.1.0 (commit 0123456789ab)".
std::string version_line();

// Says why nothing was started and gives the exit code for it: exit_code = refuse(result.error()).
int refuse(const Error& error);

// Says why what was begun came to nothing and gives the exit code for it.
int fault(const Error& error);

}  // namespace weft::cli
