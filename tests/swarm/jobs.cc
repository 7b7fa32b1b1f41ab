#include "tests/swarm/jobs.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/base/parse.h"

namespace weft::swarm {

Result<Options> parse_options(std::span<char*> args) {
  Options o;
  for (std::size_t i = 0; i < args.size(); i += 2) {
    const std::string_view name = args[i];
    const bool known = name == "--seeds" || name == "--start" || name == "--jobs";
    if (!known) return fail(std::string(name).append(" is not --seeds, --start or --jobs"));
    if (i + 1 == args.size()) return fail(std::string(name).append(": a number is missing"));
    const auto value = parse_integer(name, args[i + 1], name == "--start" ? 0 : 1,
                                     name == "--jobs"    ? 256
                                     : name == "--seeds" ? 1'000'000'000
                                                         : UINT64_MAX / 2);
    if (!value) return tl::unexpected(value.error());
    (name == "--seeds" ? o.seeds : name == "--start" ? o.start : o.jobs) = *value;
  }
  o.jobs = std::min(o.jobs, o.seeds);
  return o;
}

bool helped(std::span<char*> args, const char* program, const char* more) {
  if (args.size() != 1 || (std::string_view(args[0]) != "--help" && std::string_view(args[0]) != "-h"))
    return false;
  const Options o;
  std::printf(
      "%s: random worlds, each a function of its seed, under independent observers\n\n"
      "  --seeds N   so many worlds (%llu)\n"
      "  --start S   the first one's seed (%llu); the others follow\n"
      "  --jobs J    processes at a time (%llu)\n%s",
      program, static_cast<unsigned long long>(o.seeds), static_cast<unsigned long long>(o.start),
      static_cast<unsigned long long>(o.jobs), more);
  return true;
}

Progress::Progress(std::uint64_t all)
    : all_(all), terminal_(isatty(STDERR_FILENO) != 0), start_(std::chrono::steady_clock::now()) {}

void Progress::show(std::uint64_t done) {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now() - start_;
  if (now.count() - told_ < (terminal_ ? 0.3 : 10)) return;
  told_ = now.count();
  std::fprintf(stderr, "%sswarm: %llu of %llu worlds, %.0f s%s", terminal_ ? "\r\x1b[K" : "",
               static_cast<unsigned long long>(done), static_cast<unsigned long long>(all_), told_,
               terminal_ ? "" : "\n");
}

void Progress::clear() const {
  if (terminal_ && told_ > 0) std::fputs("\r\x1b[K", stderr);
}

std::string replay_of(const char* command, std::uint64_t seed) {
  std::string text;
  for (const char* c = command; *c != 0; ++c) text += *c == '%' ? std::to_string(seed) : std::string(1, *c);
  return text;
}

void say_crash(std::uint64_t seed, int status, const char* replay) {
  std::printf("seed %llu ended its process (status 0x%x)\n  replay: %s\n",
              static_cast<unsigned long long>(seed), static_cast<unsigned>(status),
              replay_of(replay, seed).c_str());
}

void say_findings(std::uint64_t seed, const std::string& findings, const char* replay) {
  const std::string text = "seed " + std::to_string(seed) + " breaks a rule:\n" + findings +
                           "  replay: " + replay_of(replay, seed) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int conclude(std::uint64_t worlds, std::uint64_t findings, bool crashed, bool missed,
             const char* worlds_are) {
  if (missed) std::printf("swarm: something was never reached: nothing here tests it.\n");
  std::printf("swarm: %llu of %llu %s break a rule\n", static_cast<unsigned long long>(findings),
              static_cast<unsigned long long>(worlds), worlds_are);
  return findings != 0 || crashed || missed ? 1 : 0;
}

}  // namespace weft::swarm
