#include "lab/live.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "process/child.h"
#include "record/reading.h"
#include "record/record.h"

namespace weft::lab {
namespace {

constexpr const char* kPrefix = "live:";
constexpr double kLongest = 1800;              // seconds
constexpr std::size_t kMostText = 16U << 20U;  // of its answer, and of what it complains of

std::string benchmark_of(const Planned& run) { return run.base.substr(std::strlen(kPrefix)); }

std::vector<std::string> words_of(const Planned& run) {
  std::vector<std::string> words{"bench", benchmark_of(run), "--json"};
  for (const std::string& c : run.changes) words.push_back("--" + c);
  return words;
}

struct Answer {
  std::string out;
  std::string complaint;
  std::string died;  // empty: it ended with exit code 0
};

void become(const std::string& program, const std::vector<std::string>& words, int out, int err) {
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  // Its options are what it measures: nobody else's loss, rate or parameters.
  std::string administered = "WEFT_PARAMETERS=0";
  std::vector<char*> environment{administered.data()};
  for (char** v = environ; *v != nullptr; ++v)
    if (!std::string_view(*v).starts_with("WEFT_")) environment.push_back(*v);
  environment.push_back(nullptr);
  execve(program.c_str(), argv.data(), environment.data());
  dprintf(STDERR_FILENO, "weft: cannot start '%s': %s\n", program.c_str(), std::strerror(errno));
}

// Takes what is there; false: it has ended.
bool take(int from, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t n = read(from, buffer.data(), buffer.size());
  if (n > 0 && text.size() < kMostText) text.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

Answer ask(const Planned& run, const Program& program) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  Answer a;
  if (pipe2(out.data(), O_CLOEXEC) != 0) {
    a.died = fmt::format("could not be started: {}", std::strerror(errno));
    return a;
  }
  if (pipe2(err.data(), O_CLOEXEC) != 0) {
    a.died = fmt::format("could not be started: {}", std::strerror(errno));
    close(out[0]);
    close(out[1]);
    return a;
  }
  const pid_t child = process::spawn([&] { become(program.weft, words_of(run), out[1], err[1]); });
  close(out[1]);
  close(err[1]);
  std::array<pollfd, 2> wait{{{out[0], POLLIN, 0}, {err[0], POLLIN, 0}}};
  const double end = program.seconds() + kLongest;
  while (child > 0 && (wait[0].fd >= 0 || wait[1].fd >= 0)) {
    if (program.seconds() > end) {
      kill(child, SIGKILL);
      a.died = fmt::format("took longer than {} s", kLongest);
      break;
    }
    if (poll(wait.data(), wait.size(), 500) <= 0) continue;
    if (wait[0].revents != 0 && !take(wait[0].fd, a.out)) wait[0].fd = -1;
    if (wait[1].revents != 0 && !take(wait[1].fd, a.complaint)) wait[1].fd = -1;
  }
  close(out[0]);
  close(err[0]);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!a.died.empty()) return a;
  if (child < 0) a.died = "could not be started";
  if (WIFSIGNALED(status)) a.died = fmt::format("was killed by signal {}", WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    a.died = fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return a;
}

// A sentence if the machine was busy meanwhile, else empty.
std::string noise_of(const record::Reading& read) {
  if (read.evaluate("host.busy?").value_or(0) == 0) return {};
  return fmt::format(
      "the machine was busy: other programs had {:.1f} % of the ends' cores, other machines {:.1f} % of all; "
      "repeat it when it is quiet",
      read.evaluate("host.waited_percent?").value_or(0), read.evaluate("host.stolen_percent?").value_or(0));
}

// The last line of what a program said is wrong, without its name and its full stop.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  const std::size_t line = text.rfind('\n');
  if (line != std::string::npos) text.erase(0, line + 1);
  if (text.starts_with("weft: ")) text.erase(0, 6);
  return text;
}

}  // namespace

std::string live_base(const std::string& benchmark) { return kPrefix + benchmark; }
bool is_live(const Planned& run) { return run.base.starts_with(kPrefix); }
bool is_live(const Experiment& e) { return e.base.starts_with(kPrefix); }
const std::string& maker(const Planned& run, const Program& program) {
  return is_live(run) ? program.live : program.simulator;
}

std::string live_configuration(const Planned& run) {
  record::Record r;
  r.set("live", benchmark_of(run));
  for (const std::string& c : run.changes) {
    record::Record one;
    one.set("set", c);
    r.append("options", std::move(one));
  }
  return r.json();
}

std::string live_command(const Planned& run) {
  std::string text = "weft";
  for (const std::string& w : words_of(run)) text += " " + w;
  return text;
}

Result<record::Run> measure(const Planned& run, const Program& program) {
  const double began = program.seconds();
  Answer a = ask(run, program);
  record::Run r;
  r.simulator = maker(run, program);
  r.version = program.version;
  r.seed = run.seed;
  r.configuration = live_configuration(run);
  r.key = run_key(r.configuration, r.seed, r.simulator);
  r.result = std::move(a.out);
  if (!a.died.empty()) {
    const std::string why = last_line(a.complaint);
    r.fault = why.empty() ? fmt::format("weft bench {}", a.died) : why;
  } else if (const auto read = record::Reading::parse(r.result); !read) {
    r.fault = "weft bench gave no JSON: " + read.error().message;
  } else {
    r.fault = noise_of(*read);
  }
  if (!r.fault.empty()) r.result = "{}";
  r.wall_seconds = program.seconds() - began;
  return r;
}

}  // namespace weft::lab
