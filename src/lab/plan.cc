#include "lab/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lab/live.h"
#include "lab/unread.h"
#include "record/input.h"

namespace weft::lab {
namespace {

constexpr std::uint64_t kEventsPerTurn = 1U << 20U;

Result<std::string> content_of(const std::string& file) {
  auto text = record::read_file(file);
  if (!text) return fail("scenario " + text.error().message);
  return text;
}

std::vector<std::string> changes_of(const Experiment& e, const Size& size, std::size_t variant,
                                    std::size_t point) {
  std::vector<std::string> all = size.changes;
  const auto add = [&](const std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  const auto at = point_of(e, point);
  for (std::size_t i = 0; i < at.size(); ++i) add(e.axes[i].points[at[i]].changes);
  add(e.variants[variant].changes);
  return all;
}

std::string json_of(sim::Scenario s, const std::vector<const Unread*>& unread) {
  s.seed = 0;
  record::Record r = to_record(s);
  for (const Unread* rule : unread) {
    record::Record one;
    one.set("settings", rule->settings).set("because", rule->because);
    r.append("unread", std::move(one));
  }
  record::Record files;
  if (s.topology.kind == "file") files.set("topology", s.topology.file);
  if (!s.nic.text.empty()) files.set("nic", s.nic.text);
  for (const sim::TrafficSpec& t : s.traffic) {
    record::Record one;
    one.set("sizes", t.sizes_text).set("trace", t.trace_text);
    files.append("traffic", std::move(one));
  }
  r.set("files", std::move(files));
  return r.json();
}

}  // namespace

std::string configuration_of(const sim::Scenario& scenario) {
  sim::Scenario s = scenario;
  const std::vector<const Unread*> unread = forget_unread(s);
  return json_of(std::move(s), unread);
}

std::string stated_configuration_of(const sim::Scenario& scenario) { return json_of(scenario, {}); }

std::string run_key(const std::string& configuration, std::uint64_t seed, const std::string& simulator) {
  return record::digest(fmt::format("{}\n{}\n{}", configuration, seed, simulator));
}

Result<std::vector<Planned>> plan(const Experiment& e, const Size& size, std::uint32_t seeds,
                                  const std::string& simulator, const std::string& live) {
  std::map<std::string, std::string> files;
  std::vector<Planned> first;
  std::vector<std::string> configurations;
  std::vector<std::string> stated;
  for (std::size_t v = 0; v < e.variants.size(); ++v) {
    const std::string& base = e.variants[v].base.empty() ? e.base : e.variants[v].base;
    const bool measures = is_live({v, 0, 0, {}, base, {}});
    if (!measures && !files.contains(base)) {
      auto text = content_of(base);
      if (!text) return tl::unexpected(text.error());
      files[base] = std::move(*text);
    }
    for (std::size_t p = 0; p < e.points(); ++p) {
      Planned run{v, p, 0, {}, base, changes_of(e, size, v, p)};
      if (measures) {
        configurations.push_back(live_configuration(run));
        stated.push_back(configurations.back());
        first.push_back(std::move(run));
        continue;
      }
      const auto scenario = sim::parse_scenario(files[base], base, run.changes);
      if (!scenario) {
        const std::string at = point_text(e, p);
        return fail(fmt::format("{}: variant '{}'{}: {}", e.file, e.variants[v].name,
                                at.empty() ? "" : " at " + at, scenario.error().message));
      }
      configurations.push_back(configuration_of(*scenario));
      stated.push_back(stated_configuration_of(*scenario));
      first.push_back(std::move(run));
    }
  }
  // Two variants that are the same everywhere: one of their changes does not do what its author thinks.
  const auto n = static_cast<std::ptrdiff_t>(e.points());
  for (std::size_t v = 1; v < e.variants.size(); ++v) {
    const auto mine = configurations.begin() + static_cast<std::ptrdiff_t>(v) * n;
    for (std::size_t w = 0; w < v; ++w) {
      if (std::equal(mine, mine + n, configurations.begin() + static_cast<std::ptrdiff_t>(w) * n))
        return fail(fmt::format("{}: variants '{}' and '{}' resolve to the same configuration", e.file,
                                e.variants[w].name, e.variants[v].name));
    }
  }
  std::vector<Planned> all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (seed > e.seeds_at(first[i].point, seeds)) continue;
      Planned& run = all.emplace_back(first[i]);
      run.seed = seed;
      const std::string& by = is_live(run) ? live : simulator;
      run.key = run_key(configurations[i], seed, by);
      run.stated = run_key(stated[i], seed, by);
    }
  }
  return all;
}

std::string command_of(const Planned& run) {
  if (is_live(run)) return live_command(run);
  std::string text = "weft sim " + run.base;
  for (const std::string& c : run.changes) {
    const bool plain = c.find_first_of(" '\"$\\*?()[]&;|<>`") == std::string::npos;
    text += " --set " + (plain ? c : "'" + c + "'");
  }
  return text + fmt::format(" --seed {}", run.seed);
}

std::string fault_of(const sim::Simulation& run) {
  std::uint64_t failed = 0;
  for (const sim::FlowResult& r : run.results()) failed += r.failed;
  for (const sim::FlowStatistics& f : run.traffic()) failed += f.failed();
  if (run.findings() != nullptr && !run.findings()->clean())
    return fmt::format("observers have {} findings", run.findings()->total());
  for (std::size_t i = 0; i < run.scenario().messages.size(); ++i) failed += run.messages(i).failed;
  if (failed != 0) return fmt::format("{} of {} flows failed", failed, run.messages_asked());
  std::uint64_t cut_off = 0;
  for (const sim::FlowStatistics& f : run.traffic()) cut_off += f.cut_off();
  if (!run.complete() && cut_off == 0) return "the limit of virtual time came before every flow was done";
  return {};
}

record::Run run_of(const sim::Scenario& scenario, const sim::Simulation& done, const Program& program) {
  record::Run r;
  r.simulator = program.simulator;
  r.version = program.version;
  r.seed = scenario.seed;
  r.configuration = configuration_of(scenario);
  r.key = run_key(r.configuration, r.seed, r.simulator);
  r.result = done.to_record().json();
  r.fault = fault_of(done);
  return r;
}

Result<record::Run> simulate(const Planned& run, const Program& program) {
  if (is_live(run)) return measure(run, program);
  const double began = program.seconds();
  const auto text = content_of(run.base);
  if (!text) return tl::unexpected(text.error());
  std::vector<std::string> changes = run.changes;
  changes.push_back(fmt::format("seed={}", run.seed));
  const auto scenario = sim::parse_scenario(*text, run.base, changes);
  if (!scenario) return tl::unexpected(scenario.error());
  sim::Simulation simulation(*scenario);
  while (simulation.run(kEventsPerTurn)) {
  }
  record::Run r = run_of(*scenario, simulation, program);
  r.wall_seconds = program.seconds() - began;
  return r;
}

}  // namespace weft::lab
