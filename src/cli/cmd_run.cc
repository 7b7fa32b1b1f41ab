// weft run: any unmodified verbs program over the soft NIC.
//
// It finds the directory with the drop-in libibverbs.so.1 and librdmacm.so.1 (lib/weft beside a built weft,
// ../lib/weft of an installed one), puts it first on LD_LIBRARY_PATH, writes the options as WEFT_* variables
// and becomes the program. Nothing stays in between: signals, exit code and terminal are the program's own.
//
// The options are the rows of live/engine/options.h: one table for the command line, the environment
// and their help. What can be known to be wrong beforehand is refused here, one sentence, exit 2:
// values, a program that does not exist, an address that is not ours or is taken.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cli/become.h"
#include "cli/commands.h"
#include "cli/device_files.h"
#include "cli/run_config.h"
#include "live/capture/trace_file.h"
#include "live/engine/options.h"
#include "live/wires/open.h"

namespace weft::cli {

namespace {

constexpr const char* kLibrary = "libibverbs.so.1";

bool readable(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

std::string directory_of(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

Result<void> find_program(const std::string& program) {
  if (program.empty()) return fail("the program's name is empty");
  if (program.find('/') != std::string::npos) {
    if (access(program.c_str(), X_OK) == 0) return {};
    return fail("program '" + program + "': " + std::strerror(errno));
  }
  const char* path = std::getenv("PATH");
  const std::string dirs = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t at = 0; at <= dirs.size();) {
    const std::size_t end = std::min(dirs.find(':', at), dirs.size());
    const std::string dir = end == at ? "." : dirs.substr(at, end - at);
    if (access((dir + "/" + program).c_str(), X_OK) == 0) return {};
    at = end + 1;
  }
  return fail("program '" + program + "' is not in any directory of PATH");
}

// What the command line says counts before the file, and the file before the environment.
Result<void> take_config(const CLI::App& run, const std::string& file) {
  const auto written = read_run_config(file);
  if (!written) return tl::unexpected(written.error());
  for (const Written& w : *written) {
    const live::Setting* row = nullptr;
    std::string names;
    for (const live::Setting& s : live::settings()) {
      if (w.name == s.option) row = &s;
      names += (names.empty() ? "" : ", ") + std::string(s.option);
    }
    if (row == nullptr) return fail(w.place + " is no option of weft run; they are " + names);
    if (run.get_option("--" + w.name)->count() != 0) continue;
    live::Options checked;
    if (const auto parsed = row->parse(w.place.c_str(), w.value, checked); !parsed) return parsed;
    setenv(row->variable, w.value.c_str(), 1);
  }
  return {};
}

}  // namespace

Result<std::string> own_directory() {
  std::array<char, PATH_MAX> self{};
  const ssize_t n = readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (n <= 0) return fail(std::string("cannot tell where weft itself lies: ") + std::strerror(errno));
  return directory_of(self.data());
}

Result<std::string> library_directory() {
  const auto own = own_directory();
  if (!own) return own;
  const std::string& here = *own;
  const std::string candidates[] = {here + "/lib/weft", directory_of(here) + "/lib/weft"};
  for (const std::string& c : candidates) {
    if (readable(c + "/" + kLibrary)) return c;
  }
  return fail(std::string("the drop-in ") + kLibrary + " is neither in " + candidates[0] + " nor in " +
              candidates[1] + "; build it with ./dev build");
}

Result<void> become(const std::vector<std::string>& program) {
  const auto options = live::options_from_environment(std::getenv);
  if (!options) return tl::unexpected(options.error());
  const auto found = find_program(program.front());
  if (!found) return tl::unexpected(found.error());
  // The address must be ours and free now; the program binds it when it opens the device.
  const auto wire = live::open_wire(options->wire, options->own);
  if (!wire) return tl::unexpected(wire.error());
  // The file is there, empty, and named so that it is found whatever directory the program changes to.
  if (!options->trace.empty()) {
    if (const auto ready = live::prepare_trace("--trace", options->trace); !ready)
      return tl::unexpected(ready.error());
    std::array<char, PATH_MAX> whole{};
    if (realpath(options->trace.c_str(), whole.data()) != nullptr) setenv("WEFT_TRACE", whole.data(), 1);
  }
  const auto directory = library_directory();
  if (!directory) return tl::unexpected(directory.error());

  std::string path = *directory;
  if (const char* old = std::getenv("LD_LIBRARY_PATH"); old != nullptr && *old != '\0')
    path += std::string(":") + old;
  setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& a : program) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return fail("cannot start '" + program.front() + "': " + std::strerror(errno));
}

void add_run(CLI::App& app, int& exit_code) {
  CLI::App* run = app.add_subcommand("run", "Run a verbs program, unmodified, over weft's soft NIC");
  for (const live::Setting& s : live::settings()) {
    // Checked as it is parsed, with the sentence of the table; handed on as it was written.
    const live::Setting* row = &s;
    const std::string dashes = std::string("--") + s.option;
    run->add_option_function<std::string>(
           dashes,
           [row, dashes](const std::string& text) {
             live::Options checked;
             const auto parsed = row->parse(dashes.c_str(), text, checked);
             if (!parsed) throw CLI::ValidationError(parsed.error().message);
             setenv(row->variable, text.c_str(), 1);
           },
           s.help)
        ->type_name("")
        ->capture_default_str();
  }
  auto config = std::make_shared<std::string>();
  run->add_option("--config", *config, "these options from a TOML file, by their names")->type_name("FILE");
  auto files = std::make_shared<bool>(false);
  run->add_flag("--device-files", *files,
                "show the program a NIC's files, which some look for (UCX): /dev/infiniband, "
                "/sys/class/infiniband/weft0");
  auto program = std::make_shared<std::vector<std::string>>();
  run->add_option("program", *program, "the program and its arguments, after --")->type_name("");
  run->footer(
      "Usage: weft run [OPTIONS] -- PROGRAM [ARGS...]\n\n"
      "Each option is also a variable of the program's environment: WEFT_ADDR, WEFT_LOSS, ...\n"
      "Impairments act on what this process receives, or on what it sends: --loss out=1%.\n\n"
      "Examples, in two terminals:\n"
      "  weft run -- ib_write_bw\n"
      "  weft run --addr 127.0.0.2 --mode irn --loss 1% -- ib_write_bw 127.0.0.1\n"
      "Over a line of 1 Gb/s:\n"
      "  weft run --addr 127.0.0.2 --rate 1Gbps --delay 1ms -- ib_write_bw 127.0.0.1\n"
      "Its packets, for Wireshark:\n"
      "  weft run --addr 127.0.0.2 --trace client.pcapng -- ib_write_bw 127.0.0.1");
  // An argument ahead of -- that starts with a dash is an option of ours or a mistake.
  run->parse_complete_callback([run] {
    const std::vector<std::string> rest = run->remaining();
    if (!rest.empty() && rest.front() != "--") throw CLI::ExtrasError({rest.front()});
  });
  run->callback([run, program, config, files, &exit_code] {
    if (program->empty()) throw CLI::ValidationError("name the program to run, after --");
    if (!config->empty()) {
      if (const auto taken = take_config(*run, *config); !taken) {
        exit_code = refuse(taken.error());
        return;
      }
    }
    if (*files) {
      const auto options = live::options_from_environment(std::getenv);
      const auto shown =
          options ? show_device_files(options->own) : Result<void>(tl::unexpected(options.error()));
      if (!shown) {
        exit_code = refuse(shown.error());
        return;
      }
    }
    const auto result = become(*program);
    if (!result) exit_code = refuse(result.error());
  });
}

}  // namespace weft::cli
