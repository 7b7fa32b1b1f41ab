// weft sim FILE.toml: runs a scenario in the simulator and says what came of it, as a table for people or as
// JSON. Exit code 1 when the run shows a fault: a flow that failed or did not finish, an observer's finding.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/program.h"
#include "cli/sim_bench.h"
#include "cli/sim_list.h"
#include "cli/stopwatch.h"
#include "lab/plan.h"
#include "record/input.h"
#include "record/output.h"
#include "record/store.h"
#include "sim/world/simulation.h"

namespace weft::cli {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> changes;
  std::string seed;
  std::string out;
  std::string trace;
  std::string db;
  bool json = false;
  bool list = false;
  bool bench = false;
};

constexpr std::uint64_t kEventsPerTurn = 1U << 16U;

std::string time_text(Duration d) {
  if (d.ps >= seconds(1).ps) return fmt::format("{:.3f} s", static_cast<double>(d.ps) / 1e12);
  if (d.ps >= milliseconds(1).ps) return fmt::format("{:.3f} ms", static_cast<double>(d.ps) / 1e9);
  return fmt::format("{:.2f} us", static_cast<double>(d.ps) / 1e6);
}

// On a terminal a bar, twice a second; elsewhere a line every ten seconds, so that logs stay short.
void progress(sim::Simulation& run) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const double every = terminal ? 0.5 : 10;
  const Stopwatch watch;
  double told = 0;
  while (run.run(kEventsPerTurn)) {
    const double now = watch.seconds();
    if (now - told < every) continue;
    told = now;
    const auto asked = static_cast<double>(std::max<std::uint64_t>(run.messages_asked(), 1));
    const double part = static_cast<double>(run.messages_done()) / asked;
    const double rate = static_cast<double>(run.totals().packets_sent) / now;
    const std::string left =
        part > 0 ? fmt::format("{:.0f} s left", now / part - now) : std::string("just begun");
    const auto full = static_cast<std::size_t>(part * 30);
    fmt::print(stderr, "{}weft: [{}{}] {:.1f} %, virtual time {}, {:.2f} M packets/s, {}{}",
               terminal ? "\r\x1b[K" : "", std::string(full, '#'), std::string(30 - full, '.'), part * 100,
               time_text(run.now() - Time{}), rate / 1e6, left, terminal ? "" : "\n");
  }
  if (terminal && told != 0) fmt::print(stderr, "\r\x1b[K");
}

// What was computed for this network.
std::string network_text(const sim::Scenario& s) {
  const sim::Derived& d = s.derived;
  std::string t = fmt::format(
      "{} hosts, {} switches, {} links; longest way {} hops, base round trip {}, {} B in flight\n",
      s.graph.hosts, s.graph.switches(), s.graph.links.size(), d.reach.hops, time_text(d.base_rtt),
      d.reach.bdp.n);
  if (s.transport.tcp) {
    t += fmt::format("segments of {} B, initial window {} of them, rto_min {}", s.tcp.mss,
                     s.tcp.initial_window, time_text(s.tcp.rto_min));
  } else {
    t += fmt::format("bdp_cap {} packets, rto_low {}, rto_high {}", s.transport.bdp_cap,
                     time_text(s.transport.rto_low), time_text(s.transport.rto_high));
  }
  const sim::SwitchConfig& w = s.network.switches;
  if (w.buffer.n != 0) t += fmt::format("; buffer {} B", w.buffer.n);
  if (w.credits)
    t += fmt::format(", credits of {} B a port", sim::credit_share(w, d.reach.most_ports) * w.classes);
  if (w.pfc) t += fmt::format(", headroom {} B a port", d.reach.headroom.n);
  return t + "\n\n";
}

std::string traffic_table(const sim::Scenario& s, const sim::Simulation& run) {
  if (s.traffic.empty()) return {};
  std::string t = fmt::format("{:>12} {:>8} {:>7} {:>12} {:>12} {:>12} {:>9} {:>12}\n", "traffic", "flows",
                              "failed", "mean FCT", "p50", "p99", "slowdown", "goodput");
  for (std::size_t i = 0; i < s.traffic.size(); ++i) {
    const sim::FlowStatistics::Summary f = run.traffic()[i].summary();
    t += fmt::format("{:>12} {:>8} {:>7} {:>9.2f} us {:>9.2f} us {:>9.2f} us {:>9.2f} {:>7.2f} Gb/s\n",
                     s.traffic[i].pattern, f.flows, f.failed, f.fct_mean_us, f.fct_p50_us, f.fct_p99_us,
                     f.slowdown_mean, f.goodput_gbps);
    if (s.traffic[i].pattern == "incast")
      t += fmt::format("{:>12} {:.2f} us a request\n", "", f.request_mean_us);
  }
  return t;
}

// What the boxes of each pair did, and why frames passed them as they pass a wire.
std::string boxes_table(const sim::Scenario& s, const sim::Simulation& run) {
  using wan::BoxCounter;
  std::string t;
  for (std::size_t i = 0; i < run.boxes().size(); ++i) {
    const wan::Box& box = run.boxes()[i]->box();
    const auto n = [&](BoxCounter c) { return box.counters().get(c); };
    const sim::Link& site = s.graph.links[s.graph.boxes[i].site];
    t += fmt::format(
        "box{} at {}: held {} packets ({} MB of {} at most), acknowledged {}, swallowed {}, sent {} over the "
        "line, {} "
        "of them again; gave {}, {} of them again\n",
        i, s.graph.name(site.a), n(BoxCounter::taken), (box.most_stored().n + 500'000) / 1'000'000,
        (box.config().store.n + 500'000) / 1'000'000, n(BoxCounter::acknowledged), n(BoxCounter::swallowed),
        n(BoxCounter::line_sent), n(BoxCounter::line_resent), n(BoxCounter::given),
        n(BoxCounter::given_again));
    std::string why;
    for (const BoxCounter c :
         {BoxCounter::covered,          BoxCounter::parity_sent,  BoxCounter::restored,
          BoxCounter::beyond_parity,    BoxCounter::answers_kept, BoxCounter::answers_unkept,
          BoxCounter::answers_resent,   BoxCounter::answers_anew, BoxCounter::answers_declined,
          BoxCounter::answers_given_up, BoxCounter::drop_answer,  BoxCounter::other_mode,
          BoxCounter::table_full,       BoxCounter::ambiguous,    BoxCounter::unlearned,
          BoxCounter::declined,         BoxCounter::reads,        BoxCounter::drop_full,
          BoxCounter::drop_line_full,   BoxCounter::drop_waiting, BoxCounter::drop_gap,
          BoxCounter::drop_queue,       BoxCounter::failed,       BoxCounter::orphaned}) {
      if (n(c) != 0)
        why += fmt::format("; {} {}", n(c), wan::kBoxCounterInfo[static_cast<std::size_t>(c)].text);
    }
    if (const std::uint64_t dropped = run.boxes()[i]->counters().overflow_dropped; dropped != 0)
      why += fmt::format("; {} dropped: the box could not keep up", dropped);
    t += fmt::format("  passed {}; {} halves owned, {} released{}\n", n(BoxCounter::passed),
                     n(BoxCounter::owned), n(BoxCounter::released), why);
  }
  return t;
}

std::string bytes_text(std::uint64_t n) {
  if (n >= 1U << 30U) return fmt::format("{:.2f} GiB", static_cast<double>(n) / (1U << 30U));
  if (n >= 1U << 20U) return fmt::format("{:.1f} MiB", static_cast<double>(n) / (1U << 20U));
  return fmt::format("{} B", n);
}

// Messages over channels, or over plain queue pairs beside them.
std::string messages_table(const sim::Scenario& s, const sim::Simulation& run) {
  if (s.messages.empty()) return {};
  std::string t = fmt::format("{:>12} {:>9} {:>10} {:>8} {:>12} {:>14} {:>12} {:>12}\n", "messages", "over",
                              "done", "failed", "goodput", "a second", "p50", "p99");
  for (std::size_t i = 0; i < s.messages.size(); ++i) {
    const sim::MessageSpec& m = s.messages[i];
    const sim::MessageResult& r = run.messages(i);
    const sim::Quantiles q = sim::quantiles_of(r.latencies);
    const double per_second =
        r.elapsed().ps == 0 ? 0
                            : static_cast<double>(r.messages) * 1e12 / static_cast<double>(r.elapsed().ps);
    t += fmt::format("{:>12} {:>9} {:>10} {:>8} {:>7.2f} Gb/s {:>14.0f} {:>9.2f} us {:>9.2f} us\n",
                     sim::message_pattern_name(m.pattern), m.plain ? "verbs" : "channels", r.messages,
                     r.failed, r.goodput_bps() / 1e9, per_second, q.p50_us, q.p99_us);
    if (r.why != nullptr)
      t += fmt::format("{:>12} {} channels closed before their end: {}\n", "", r.lost, r.why);
    if (r.upgraded == Time{}) continue;
    const sim::Quantiles back = sim::quantiles_of(r.reconnects);
    t += fmt::format(
        "{:>12} {} channels connected anew, each in {:.2f} us at the median and {:.2f} us at most\n", "",
        r.reconnects.size(), back.p50_us, back.max_us);
    t += fmt::format("{:>12} p99 of the others {:.2f} us before and {:.2f} us meanwhile\n", "",
                     sim::quantiles_of(r.calm).p99_us, sim::quantiles_of(r.storm).p99_us);
  }
  const Counters& n = run.totals().transport;
  t += fmt::format("\nreceiver not ready {}, congestion notifications {}\n", n.get(Counter::nak_rnr),
                   n.get(Counter::rx_cnp));
  if (run.channels() == nullptr) return t;
  const sim::ChannelTotals c = run.channels()->totals();
  t += fmt::format(
      "{} contexts of up to {} channels; messages that found the window full {}, ACKs by themselves {}, NOPs "
      "{}, probes "
      "{}\n",
      c.contexts, c.channels, c.waited, c.counts.acks, c.counts.nops, c.counts.probes);
  t += fmt::format(
      "{} messages fetched in {} fragments, {} times without memory; queue pairs made {}, used again {}\n",
      c.counts.large_received, c.counts.fragments, c.starved, c.fresh_qps, c.reused_qps);
  return t + fmt::format("memory at most: {} to receive and {} to send in a context, {} in all\n",
                         bytes_text(c.most_own), bytes_text(c.most_lent), bytes_text(c.all_memory));
}

std::string table(const sim::Scenario& s, const sim::Simulation& run) {
  std::string t = network_text(s) + traffic_table(s, run) + messages_table(s, run);
  if (!s.flows.empty())
    t += fmt::format("{:>4} {:>9} {:>12} {:>10} {:>8} {:>12} {:>10} {:>10} {:>10}\n", "flow", "hosts", "op",
                     "messages", "failed", "goodput", "of line", "p50", "p99");
  for (std::size_t i = 0; i < s.flows.size(); ++i) {
    const sim::FlowSpec& f = s.flows[i];
    const sim::FlowResult& r = run.results()[i];
    std::vector<Duration> sorted = r.latencies;
    std::sort(sorted.begin(), sorted.end());
    const auto at = [&](std::size_t percent) {
      return sorted.empty() ? std::string("-") : time_text(sorted[(sorted.size() - 1) * percent / 100]);
    };
    const std::string of_line =
        s.topology.rate.bps == 0
            ? "-"
            : fmt::format("{:.1f} %", 100 * r.goodput_bps() / static_cast<double>(s.topology.rate.bps));
    t += fmt::format("{:>4} {:>9} {:>12} {:>10} {:>8} {:>7.2f} Gb/s {:>10} {:>10} {:>10}\n", i,
                     fmt::format("{} > {}", f.from, f.to), sim::op_name(f.op), r.messages, r.failed,
                     r.goodput_bps() / 1e9, of_line, at(50), at(99));
  }
  const sim::Totals n = run.totals();
  const sim::Totals m = run.measured();
  t += fmt::format("\nvirtual time {}, {} events, {} link-hops, {} packets sent, {} of them again\n",
                   time_text(run.now() - Time{}), n.events, n.link_hops, n.packets_sent, n.retransmitted);
  t += fmt::format(
      "lost {}, dropped by full queues {} ({:.2f} % of data packets), corrupted {}; time-outs {}, recoveries "
      "{}; "
      "longest queue {} B\n",
      n.lost, n.queue_drops,
      m.data == 0 ? 0.0 : 100.0 * static_cast<double>(m.data_drops) / static_cast<double>(m.data),
      n.corrupted, n.timeouts, n.recoveries, n.longest_queue);
  if (s.network.switches.pfc || n.marked != 0)
    t += fmt::format("PFC stopped ports {} times, {} in all; ECN marked {}\n", n.pauses, time_text(n.paused),
                     n.marked);
  if (s.network.switches.credits)
    t += fmt::format("ports waited for credit {} in all\n", time_text(n.credit_wait));
  if (!s.failures.empty())
    t += fmt::format("{} packets lost on failed links, {} without a route\n", n.failed_links, n.no_route);
  t += boxes_table(s, run);
  if (!run.complete()) t += "virtual time ended before every flow was done\n";
  for (const sim::FlowStatistics& f : run.traffic()) {
    if (f.cut_off() != 0) t += fmt::format("{} flows were cut off and count with their age\n", f.cut_off());
  }
  if (const check::Report* found = run.findings(); found != nullptr) {
    t += found->clean() ? "observers: nothing to complain about\n"
                        : fmt::format("observers: {} findings\n{}", found->total(), found->text());
  }
  return t;
}

// --list and --bench run no scenario: what belongs to one would be ignored.
int without_scenario(const Options& o) {
  const std::string which = o.list ? "--list" : "--bench";
  if (o.list && o.bench) return refuse({"sim takes --list or --bench, not both"});
  if (!o.file.empty() || !o.changes.empty() || !o.seed.empty() || !o.out.empty() || !o.trace.empty() ||
      !o.db.empty())
    return refuse({which + " takes no scenario and no settings or files for one"});
  if (o.bench) return sim_bench(o.json);
  if (o.json) return refuse({"--json: means nothing with --list"});
  std::cout << sim_list_text();
  return 0;
}

// What a run leaves behind. All of it is opened before the run, so that what cannot be written is said at
// once.
struct Files {
  std::filesystem::path folder;
  std::optional<record::OutputFile> capture;
  std::unique_ptr<trace::PcapngWriter> trace;
  std::optional<record::OutputFile> flows;
  std::optional<record::OutputFile> ports;
  std::optional<record::OutputFile> summary;
  std::optional<record::Store> store;

  static Result<Files> open(const Options& o) {
    Files f;
    const auto file = [](const char* what, const std::string& path, auto& out) -> Result<void> {
      auto opened = record::OutputFile::open(what, path);
      if (!opened) return tl::unexpected(opened.error());
      out = std::move(*opened);
      return {};
    };
    if (!o.trace.empty()) {
      if (const auto ok = file("--trace", o.trace, f.capture); !ok) return tl::unexpected(ok.error());
      f.trace = std::make_unique<trace::PcapngWriter>(f.capture->stream());
    }
    if (!o.out.empty()) {
      f.folder = o.out;
      std::error_code wrong;
      std::filesystem::create_directories(f.folder, wrong);
      if (wrong) return fail("--out: the folder '" + o.out + "' cannot be written: " + wrong.message());
      for (auto [name, out] :
           {std::pair{"flows.csv", &f.flows}, {"ports.csv", &f.ports}, {"summary.json", &f.summary}}) {
        if (const auto ok = file("--out", (f.folder / name).string(), *out); !ok)
          return tl::unexpected(ok.error());
      }
    }
    if (!o.db.empty()) {
      auto opened = record::Store::open(o.db);
      if (!opened) return tl::unexpected(opened.error());
      f.store = std::move(*opened);
    }
    // From here on the folder is this run's: an older run's summary beside newer flows would be believed.
    std::error_code none;
    if (f.summary) std::filesystem::remove(f.folder / "summary.json", none);
    return f;
  }

  Result<void> finish(const sim::Simulation& run, const std::string& json) {
    if (ports) run.write_ports(ports->stream());
    if (summary) summary->stream() << json;
    const std::array all{&capture, &flows, &ports,
                         &summary};  // the summary last: with it the folder is whole
    for (auto* out : all) {
      if (!*out) continue;
      if (const auto whole = (*out)->complete(); !whole) return whole;
    }
    for (auto* out : all) {
      if (!*out) continue;
      if (const auto whole = (*out)->finish(); !whole) return whole;
    }
    return {};
  }
};

int simulate(const Options& o) {
  if (o.list || o.bench) return without_scenario(o);
  if (o.file.empty()) return refuse({"sim needs a scenario FILE, --list or --bench; see weft sim --help"});
  const auto text = record::read_file(o.file);
  if (!text) return refuse({"scenario " + text.error().message});
  std::vector<std::string> changes = o.changes;
  if (!o.seed.empty()) changes.push_back("seed=" + o.seed);
  const auto scenario = sim::parse_scenario(*text, o.file, changes);
  if (!scenario) return refuse(scenario.error());
  if (!o.trace.empty() && scenario->transport.tcp)
    return refuse({"--trace: writes packets of RDMA, and transport.mode is tcp"});
  auto files = Files::open(o);
  if (!files) return refuse(files.error());

  const Stopwatch watch;
  sim::Simulation run(*scenario, files->trace.get(), files->flows ? &files->flows->stream() : nullptr);
  progress(run);
  const std::string json = run.to_record().json();
  if (files->store) {
    record::Run r = lab::run_of(*scenario, run, this_program());
    r.wall_seconds = watch.seconds();
    r.memory_bytes = peak_memory();
    if (const auto kept = files->store->add(r); !kept) return fault(kept.error());
  }
  if (const auto whole = files->finish(run, json); !whole) return fault(whole.error());
  std::cout << (o.json ? json : table(*scenario, run));
  return lab::fault_of(run).empty() ? 0 : 1;
}

}  // namespace

void add_sim(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("sim", "Run a scenario in the simulator");
  command->add_option("FILE", options->file, "the scenario, a TOML file");
  command->add_option("--set", options->changes, "change a setting, such as network.loss=1%; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--seed", options->seed, "the same as --set seed=N")->type_name("N");
  command->add_flag("--json", options->json, "print the run's record instead of a table");
  command->add_option("--out", options->out, "write summary.json, flows.csv and ports.csv to this folder")
      ->type_name("DIR");
  command->add_option("--trace", options->trace, "write every packet to this pcapng file")->type_name("FILE");
  command->add_option("--db", options->db, "add the run to this run record, as weft lab's")
      ->type_name("FILE");
  command->add_flag("--list", options->list,
                    "every topology, switch, mode and workload there is, a line each");
  command->add_flag("--bench", options->bench, "measure the simulator's own speed on this machine");
  command->footer(
      "Examples:\n"
      "  weft sim examples/two-hosts.toml\n"
      "  weft sim examples/two-hosts.toml --set transport.mode=roce --set network.loss=0.1% --json");
  command->callback([options, &exit_code] { exit_code = simulate(*options); });
}

}  // namespace weft::cli
