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

}  // namespace weft::swarm
