// weft wan link: an emulated long line between two interfaces.
#include <fmt/format.h>
#include <net/if.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>

#include "cli/cmd_wan.h"
#include "cli/commands.h"
#include "cli/wan_options.h"
#include "core/base/distance.h"
#include "core/base/parse.h"
#include "record/record.h"
#include "wan/box/driving.h"
#include "wan/box/long_line.h"
#include "wan/box/packet_port.h"

namespace weft::cli {
namespace {

struct Options {
  std::vector<std::string> between;
  std::string delay;
  std::string distance;
  std::string rate;
  std::string queue = "16MB";
  std::string loss = "0";
  std::string seed = "1";
  std::string duration = "0";
  bool spin = false;
  bool json = false;
};

struct Line {
  wan::LongLineConfig config;
  Duration duration{};
};

Result<Line> line_of(const Options& o) {
  Line l;
  if (o.between[0] == o.between[1])
    return fail("--between: '" + o.between[0] + "' cannot be both ends of a line");
  if (o.delay.empty() == o.distance.empty())
    return fail("--delay or --distance: one of them says how long the line is");
  if (!o.delay.empty()) {
    const auto delay = parse_duration("--delay", o.delay);
    if (!delay) return tl::unexpected(delay.error());
    l.config.delay = *delay;
  } else {
    const auto distance = parse_distance("--distance", o.distance);
    if (!distance) return tl::unexpected(distance.error());
    l.config.delay = propagation(*distance);
  }
  if (l.config.delay > seconds(1)) return fail("--delay: a line takes at most 1 s one way");
  const auto rate = parse_rate("--rate", o.rate);
  if (!rate) return tl::unexpected(rate.error());
  if (rate->bps == 0 || *rate > gigabits(400))
    return fail("--rate: '" + o.rate + "' is not above 0 and up to 400Gbps");
  l.config.rate = *rate;
  const auto queue = parse_size("--queue", o.queue);
  if (!queue) return tl::unexpected(queue.error());
  constexpr std::uint64_t kMost = 4'000'000'000;
  if (queue->n < 10'000 || queue->n > kMost)
    return fail("--queue: '" + o.queue + "' is not between 10kB and 4GB");
  l.config.queue = *queue;
  const auto loss = parse_loss(o.loss);
  if (!loss) return tl::unexpected(loss.error());
  const double millionths = std::round(*loss * 1e6);
  if (*loss > 1 || std::abs(*loss * 1e6 - millionths) > 1e-6)
    return fail("--loss: '" + o.loss + "' is not a whole number of millionths up to 1");
  l.config.loss = static_cast<std::uint32_t>(millionths);
  const auto seed = parse_integer("--seed", o.seed, 0, UINT64_MAX);
  if (!seed) return tl::unexpected(seed.error());
  l.config.seed = *seed;
  const auto duration = parse_duration("--duration", o.duration);
  if (!duration) return tl::unexpected(duration.error());
  l.duration = *duration;
  return l;
}

double milliseconds_of(Duration d) { return static_cast<double>(d.us()) / 1e3; }

record::Record record_of(const std::string& name, const wan::LineCounters& n) {
  record::Record r;
  r.set("from", name).set("frames", n.frames).set("bytes", n.bytes).set("carried", n.carried);
  r.set("carried_bytes", n.carried_bytes)
      .set("lost", n.lost)
      .set("drop_queue", n.drop_queue)
      .set("drop_cut", n.drop_cut);
  r.set("longest_queue_bytes", n.longest_queue.n).set("most_late_ms", milliseconds_of(n.most_late));
  r.set("mean_late_ms",
        n.carried == 0 ? 0.0 : static_cast<double>(n.late_us) / 1e3 / static_cast<double>(n.carried));
  return r;
}

int emulate(const Options& o) {
  const auto line = line_of(o);
  if (!line) return refuse(line.error());
  auto a = wan::PacketPort::open("--between", o.between[0]);
  if (!a) return refuse(a.error());
  auto b = wan::PacketPort::open("--between", o.between[1]);
  if (!b) return refuse(b.error());
  auto driving = wan::Driving::prepare();
  if (!driving) return refuse(driving.error());
  wan::LongLine l(line->config, **a, **b);
  std::fprintf(stderr,
               "weft wan link: %s and %s are %.4g ms apart, at %s, losing %s; SIGUSR1 cuts and mends it\n",
               o.between[0].c_str(), o.between[1].c_str(), milliseconds_of(line->config.delay),
               o.rate.c_str(), o.loss.c_str());
  const Time end = line->duration.ps == 0 ? kNever : (*driving)->clock().now().after(line->duration);
  bool gone = false;
  wan::Turns t;
  t.descriptors = {(*a)->descriptor(), (*b)->descriptor()};
  t.spin = o.spin;
  t.turn = [&](Time now) { return l.turn(now); };
  t.next_due = [&](Time now) { return std::min(l.next_due(now), end); };
  t.tick = [&](Time now) {
    for (const std::string& name : o.between) gone = gone || if_nametoindex(name.c_str()) == 0;
    return !gone && now < end;
  };
  t.signal = [&](Time, int signal) {
    if (signal != SIGUSR1) return false;
    l.cut(!l.is_cut());
    std::fprintf(stderr, "weft wan link: the line is %s\n", l.is_cut() ? "cut" : "whole again");
    return true;
  };
  (*driving)->run(t);

  std::uint64_t missed = 0;
  record::Record r;
  if (!o.json)
    fmt::print("  {:<16} {:>12} {:>12} {:>9} {:>11} {:>8} {:>12} {:>22}\n", "from", "frames", "carried",
               "lost", "queue full", "cut", "queue, kB", "late, ms: mean (most)");
  for (std::size_t i = 0; i < 2; ++i) {
    const wan::LineCounters& n = l.counters(i);
    const wan::PortCounters& p = (i == 0 ? *a : *b)->counters();
    missed += p.rx_missed + p.rx_torn;
    if (o.json) {
      r.append("directions", record_of(o.between[i], n));
    } else {
      fmt::print("  {:<16} {:>12} {:>12} {:>9} {:>11} {:>8} {:>12.1f} {:>13.3f} ({:.2f})\n", o.between[i],
                 n.frames, n.carried, n.lost, n.drop_queue, n.drop_cut,
                 static_cast<double>(n.longest_queue.n) / 1e3,
                 n.carried == 0 ? 0.0 : static_cast<double>(n.late_us) / 1e3 / static_cast<double>(n.carried),
                 milliseconds_of(n.most_late));
    }
  }
  if (o.json) {
    r.set("missed", missed);
    fmt::print("{}", r.json());
  } else if (missed != 0) {
    fmt::print(
        "  {} frames came faster than this program took them, and were lost beside what the line loses\n",
        missed);
  }
  if (gone) return fault({"an interface went away"});
  return 0;
}

}  // namespace

void add_wan_link(CLI::App& wan, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c = wan.add_subcommand("link", "An emulated long line between two interfaces: delay, rate, loss");
  c->add_option("--between", o->between, "its two ends")->type_name("IF IF")->expected(2)->required();
  c->add_option("--delay", o->delay, "one way")->type_name("TIME");
  c->add_option("--distance", o->distance, "along the fibre, instead of --delay")->type_name("KM");
  c->add_option("--rate", o->rate, "of each direction")->type_name("RATE")->required();
  c->add_option("--queue", o->queue, "bytes that may wait for the rate; what is beyond is lost")
      ->type_name("SIZE");
  c->add_option("--loss", o->loss, "of each frame")->type_name("P");
  c->add_option("--seed", o->seed, "of what is lost: the n-th frame of a direction has the same fate again")
      ->type_name("N");
  c->add_option("--duration", o->duration, "0: until it is told to end")->type_name("TIME");
  c->add_flag("--spin", o->spin, "never sleep: a processor for microseconds");
  c->add_flag("-j,--json", o->json, "print JSON instead of a table");
  c->footer(
      "It ends with SIGINT or SIGTERM and says what it did, and how late the emulation itself was.\n"
      "SIGUSR1 cuts the line, and the next one mends it.\n"
      "\n"
      "Examples:\n"
      "  weft wan link --between eth0 eth1 --delay 5ms --rate 10Gbps --loss 1e-4\n"
      "  weft wan link --between eth0 eth1 --distance 1000km --rate 10Gbps --duration 60s --seed 7");
  c->callback([o, &exit_code] { exit_code = emulate(*o); });
}

}  // namespace weft::cli
