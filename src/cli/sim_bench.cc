// Each run has a process of its own, so that its memory is its own and one run warms nothing for the next.
// Memory is counted above that of a process which does what `weft sim --list` does. Of three runs the median
// counts; the largest runs once.
#include "cli/sim_bench.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <vector>

#include "cli/commands.h"
#include "cli/sim_list.h"
#include "cli/stopwatch.h"
#include "record/record.h"
#include "sim/engine/hold.h"
#include "sim/world/bench.h"
#include "sim/world/simulation.h"

namespace weft::cli {
namespace {

struct Measured {
  double wall_s = 0;
  double setup_s = 0;
  double cpu_s = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t events = 0;
  std::uint64_t link_hops = 0;
  std::uint64_t data_packets = 0;
  std::uint64_t drops = 0;
  std::uint64_t pauses = 0;
  std::int64_t virtual_ps = 0;
  bool complete = false;
};

// Runs `work` in a child process and brings its answer home.
template <class T, class Work>
bool in_child(Work work, T& answer) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  std::cout.flush();
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    const T result = work();
    const bool sent = write(ends[1], &result, sizeof(result)) == static_cast<ssize_t>(sizeof(result));
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  const bool got = read(ends[0], &answer, sizeof(answer)) == static_cast<ssize_t>(sizeof(answer));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return got && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Measured run_once(const sim::BenchRow& row) {
  Measured m;
  const Stopwatch whole;
  const sim::Scenario scenario = sim::bench_scenario(row);
  sim::Simulation run(scenario);
  m.setup_s = whole.seconds();
  while (run.run(UINT64_MAX)) {
  }
  m.wall_s = whole.seconds();
  m.cpu_s = processor_seconds();
  m.peak_bytes = peak_memory();
  const sim::Totals t = run.totals();
  m.events = t.events;
  m.link_hops = t.link_hops;
  m.data_packets = t.packets_sent - t.control;
  m.drops = t.lost + t.queue_drops;
  m.pauses = t.pauses;
  m.virtual_ps = run.now().ps;
  m.complete = run.complete();
  return m;
}

double hold_ns() {
  constexpr std::uint64_t kOperations = 4'000'000;
  sim::HoldModel model(8192, false);
  std::int64_t reached = model.run(500'000);
  const Stopwatch watch;
  reached = model.run(kOperations);
  const double s = watch.seconds();
  return reached != 0 ? s * 1e9 / static_cast<double>(kOperations) : 0;
}

double mega(double x) { return x / 1e6; }

}  // namespace

int sim_bench(bool json) {
  std::uint64_t base = 0;
  if (!in_child([] { return sim_list_text().empty() ? std::uint64_t{0} : peak_memory(); }, base))
    return refuse({"no process could be started for a benchmark"});
  const double hold = hold_ns();
  record::Record all;
  all.set("version", version_line()).set("hold_ns", hold).set("memory_of_list_bytes", base);
  std::string table =
      fmt::format("{:<17} {:>7} {:>7} {:>9} {:>11} {:>10} {:>8} {:>10} {:>12}\n", "run", "wall s", "cpu s",
                  "memory MB", "link-hops", "hops/s M", "ns/event", "events/hop", "data packets");
  bool right = true;
  for (const sim::BenchRow& row : sim::bench_rows()) {
    std::vector<Measured> runs(row.runs);
    for (Measured& m : runs) {
      if (!in_child([&] { return run_once(row); }, m))
        return refuse({std::string(row.name) + " ended early"});
    }
    std::sort(runs.begin(), runs.end(),
              [](const Measured& a, const Measured& b) { return a.wall_s < b.wall_s; });
    const Measured& m = runs[runs.size() / 2];
    const std::optional<std::uint64_t> least = sim::bench_data_packets(sim::bench_scenario(row));
    const bool exact = m.complete && (!least || (m.data_packets == *least && m.drops == 0));
    right = right && exact;
    const auto hops = static_cast<double>(m.link_hops);
    const auto events = static_cast<double>(m.events);
    const double running = m.wall_s - m.setup_s;
    const std::uint64_t memory = m.peak_bytes - std::min(base, m.peak_bytes);
    table += fmt::format("{:<17} {:>7.3f} {:>7.3f} {:>9.1f} {:>11} {:>10.2f} {:>8.0f} {:>10.2f} {:>12}{}\n",
                         row.name, m.wall_s, m.cpu_s, mega(static_cast<double>(memory)), m.link_hops,
                         mega(hops / m.wall_s), running * 1e9 / events, events / hops, m.data_packets,
                         exact         ? ""
                         : !m.complete ? " incomplete"
                                       : fmt::format(" instead of {}, {} dropped", *least, m.drops));
    record::Record one;
    one.set("name", row.name).set("text", row.text).set("complete", m.complete);
    one.set("wall_s", m.wall_s)
        .set("wall_s_lowest", runs.front().wall_s)
        .set("wall_s_highest", runs.back().wall_s);
    one.set("cpu_s", m.cpu_s).set("setup_s", m.setup_s).set("memory_bytes", memory);
    one.set("link_hops", m.link_hops).set("events", m.events);
    one.set("link_hops_per_s", hops / m.wall_s).set("events_per_s", events / m.wall_s);
    one.set("ns_per_event", running * 1e9 / events);
    one.set("events_per_link_hop", events / hops);
    one.set("data_packets", m.data_packets).set("dropped", m.drops);
    if (least) one.set("data_packets_least", *least);
    one.set("pfc_pauses", m.pauses).set("virtual_time_ps", m.virtual_ps);
    all.append("runs", std::move(one));
  }
  table += fmt::format("\nhold model, 8192 events: {:.1f} ns an operation on this machine\n", hold);
  std::cout << (json ? all.json() : table);
  return right ? 0 : 1;
}

}  // namespace weft::cli
