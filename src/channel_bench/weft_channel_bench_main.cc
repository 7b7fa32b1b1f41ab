// The program behind `weft bench channel`: it is linked against libibverbs as any program is, and runs over
// the soft NIC, which `weft` itself sees to.
//
// Exit codes: 0 fine; 1 a row could not be measured; 2 wrong usage.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "channel_bench/bench.h"
#include "channel_bench/host.h"
#include "channel_bench/options.h"
#include "record/output.h"

namespace weft::bench {
namespace {

struct Part {
  const char* name;
  Result<Measured> (*measure)(FarEnd& far, const Options& o);
};
constexpr Part kAll[] = {{"latency", latency},   {"connect", connecting}, {"rnr", not_ready},
                         {"memory", memory},     {"scale", scale},        {"gone", gone},
                         {"protocol", protocol}, {"waiting", waiting},    {"shared", shared},
                         {"cache", cache},       {"pages", pages}};

int say(int code, std::string why) {
  while (!why.empty() && (why.back() == '\n' || why.back() == '.')) why.pop_back();
  std::cerr << "weft: " << why << ".\n";
  return code;
}

record::Record record_of(const Noise& n) {
  record::Record r;
  r.set("cores", std::uint64_t{n.cores}).set("load", n.load).set("known", n.known());
  if (n.known()) r.set("waited_percent", *n.waited_percent);
  r.set("stolen_percent", n.stolen_percent).set("busy", n.busy()).set("sentence", n.sentence());
  return r;
}

Result<std::uint64_t> cost_of(FarEnd& far) {
  const auto said = far.ask("cost");
  if (!said) return tl::unexpected(said.error());
  return std::strtoull(said->c_str(), nullptr, 10);
}

int measure(const Options& o) {
  // The smallest form makes no figure, and a busy machine may put its ends where there is room.
  const bool pinned = !o.quick && core_of(0) >= 0;
  auto far = FarEnd::start(o.far, pinned ? core_of(1) : -1);
  if (!far) return say(1, far.error().message);
  if (pinned) pin(core_of(0));
  const auto before = cost_of(**far);
  if (!before) return say(1, before.error().message);
  const Listening listening(pinned, *before);
  record::Record all;
  for (const Part& part : kAll) {
    if (!o.measures(part.name)) continue;
    auto one = part.measure(**far, o);
    if (!one) return say(1, std::string(part.name) + ": " + one.error().message);
    all.set(part.name, std::move(one->record));
    if (!o.as_json) std::cout << part.name << "\n" << one->text << "\n" << std::flush;
  }
  const auto after = cost_of(**far);
  if (!after) return say(1, after.error().message);
  const Noise noise = listening.end(*after);
  all.set("host", record_of(noise));
  std::cout << (o.as_json ? all.json() : noise.sentence() + "\n");
  return 0;
}

int work(int count, char** words) {
  if (count == 4 && std::strcmp(words[1], "far-end") == 0)
    return be_far(std::atoi(words[2]), std::atoi(words[3]));
  setenv("WEFT_WIRE", "udp", 0);  // through the kernel, as all that is measured beside it
  CLI::App app{"weft bench", "weft"};
  app.require_subcommand(1);
  Options o;
  const CLI::App* const channel = add_options(app, o);
  try {
    app.parse(count, words);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);
  } catch (const CLI::ParseError& wrong) {
    return say(2, wrong.what());
  }
  complete(o, *channel);
  return measure(o);
}

}  // namespace
}  // namespace weft::bench

int main(int count, char** words) {
  return weft::record::run_program("weft", [=] { return weft::bench::work(count, words); });
}
