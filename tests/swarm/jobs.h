// What swarms share: their options, and worlds in child processes.
//
// A world that trips a CHECK or crashes takes its process with it: worlds therefore run in children, which
// note the seed they are at in memory shared with the parent, and the parent prints it.
#pragma once
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace weft::swarm {

inline constexpr unsigned kLookEvery = 20'000;  // us

struct Options {
  std::uint64_t seeds = 200;
  std::uint64_t start = 1;
  std::uint64_t jobs = 1;
};

// --seeds N, --start S, --jobs J.
Result<Options> parse_options(std::span<char*> args);
// Whether --help was all that was asked for; then `program` has said what it takes, and `more`.
bool helped(std::span<char*> args, const char* program, const char* more);

// `command` with the seed for every %.
std::string replay_of(const char* command, std::uint64_t seed);
void say_crash(std::uint64_t seed, int status, const char* replay);
// What a world's observers found, whole even where several jobs print.
void say_findings(std::uint64_t seed, const std::string& findings, const char* replay);
// The last lines, and the exit code: nothing broke a rule, no process ended, nothing that had to be reached
// was `missed`.
int conclude(std::uint64_t worlds, std::uint64_t findings, bool crashed, bool missed,
             const char* worlds_are = "worlds");

// How many worlds are done, on standard error: on a terminal often, elsewhere every ten seconds.
class Progress {
 public:
  explicit Progress(std::uint64_t all);
  void show(std::uint64_t done);
  void clear() const;

 private:
  std::uint64_t all_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_;
  double told_ = 0;
};

template <class Tally>
struct Collected {
  std::span<Tally> tallies;
  bool crashed = false;
};
// `job(tally)` runs the world of tally.seed. There is one Tally per job, zeroed at first. `replay` is a
// command with % for the seed. Nothing when the system refuses.
template <class Tally, class Job>
std::optional<Collected<Tally>> run_in_children(const Options& o, const char* replay, Job job) {
  void* shared =
      mmap(nullptr, sizeof(Tally) * o.jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    std::perror("swarm: mmap");
    return std::nullopt;
  }
  Collected<Tally> out{{static_cast<Tally*>(shared), o.jobs}, false};
  std::vector<pid_t> children;
  for (std::uint64_t j = 0; j < o.jobs; ++j) {
    const pid_t child = fork();
    if (child < 0) {
      std::perror("swarm: fork");
      return std::nullopt;
    }
    if (child == 0) {
      for (std::uint64_t i = j; i < o.seeds; i += o.jobs) {
        out.tallies[j].seed = o.start + i;
        job(out.tallies[j]);
      }
      std::fflush(stdout);
      std::_Exit(0);
    }
    children.push_back(child);
  }
  Progress progress(o.seeds);
  for (std::uint64_t j = 0; j < o.jobs; ++j) {
    int status = 0;
    while (waitpid(children[j], &status, WNOHANG) == 0) {
      usleep(kLookEvery);
      std::uint64_t done = 0;
      for (const Tally& t : out.tallies) done += t.worlds;
      progress.show(done);
    }
    progress.clear();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    out.crashed = true;
    say_crash(out.tallies[j].seed, status, replay);
  }
  return out;
}

}  // namespace weft::swarm
