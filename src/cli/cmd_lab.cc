// weft lab: experiments. `run` fills the record and says what came of each claim, `show` says it again from
// the record, `list` names what there is, `compare` sets two records beside each other.
#include "cli/cmd_lab.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/bar.h"
#include "cli/cmd_lab_report.h"
#include "cli/commands.h"
#include "cli/program.h"
#include "cli/stopwatch.h"
#include "core/base/parse.h"
#include "lab/account.h"
#include "lab/compare.h"
#include "lab/output.h"
#include "lab/report.h"
#include "lab/session.h"
#include "record/output.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kExitClaimMissed = 3;

struct Options {
  std::vector<std::string> names;
  std::string folder;  // of experiments
  bool quick = false;
  bool full = false;
  std::string seeds;
  std::string out = "lab-out";
  std::string db;
  std::string jobs = "0";
  bool fresh = false;
  bool json = false;
  std::string require;
  std::string simulator;
  std::vector<std::string> records;
  lab::Executor executor;  // instead of child processes

  std::string size() const { return quick ? "quick" : full ? "full" : "decide"; }
  std::string record() const { return db.empty() ? (fs::path(out) / "lab.db").string() : db; }
};

Result<std::vector<lab::Experiment>> experiments(const Options& o, const std::string& size) {
  std::error_code wrong;
  const std::string folder =
      !o.folder.empty() ? o.folder : lab::find_experiments(fs::read_symlink("/proc/self/exe", wrong));
  if (folder.empty()) return fail("there is no folder of experiments near this program; name one with --dir");
  auto all = lab::read_experiments(folder, size);
  // Who says how many seeds there are says it of every point.
  if (all && !o.seeds.empty())
    for (lab::Experiment& e : *all) e.same_seeds_everywhere();
  return all;
}

Result<std::uint32_t> seeds_of(const Options& o) {
  if (o.seeds.empty()) return 0;
  const auto n = parse_integer("--seeds", o.seeds, 1, 1000);
  if (!n) return tl::unexpected(n.error());
  return static_cast<std::uint32_t>(*n);
}

// At most as many jobs as a large machine has cores: more children would only wait for each other.
Result<unsigned> jobs_of(const Options& o) {
  const auto n = parse_integer("-j", o.jobs, 0, 1024);
  if (!n) return tl::unexpected(n.error());
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return static_cast<unsigned>(*n != 0 ? *n : static_cast<std::uint64_t>(std::max(cores, 1L)));
}

int list(const Options& o) {
  std::vector<std::vector<lab::Experiment>> sizes;
  for (const char* size : lab::kSizes) {
    auto all = experiments(o, size);
    if (!all) return refuse(all.error());
    sizes.push_back(std::move(*all));
  }
  record::Record json;
  std::vector<std::vector<std::string>> rows{{"experiment", "group", "quick", "decide", "full", "title"}};
  std::vector<std::string> claims;
  for (std::size_t i = 0; i < sizes[0].size(); ++i) {
    const lab::Experiment& e = sizes[0][i];
    std::string groups;
    for (const std::string& g : e.groups) groups += (groups.empty() ? "" : ",") + g;
    std::vector<std::string> row{e.name, groups};
    record::Record one;
    one.set("experiment", e.name).set("title", e.title).set("groups", groups);
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      const std::uint64_t runs = sizes[s][i].runs(e.size(lab::kSizes[s]).seeds);
      row.push_back(std::to_string(runs));
      one.set(std::string("runs_") + lab::kSizes[s], runs);
    }
    row.push_back(e.title);
    rows.push_back(std::move(row));
    std::string& ids = claims.emplace_back();
    for (const lab::Claim& c : e.claims) {
      record::Record claim;
      claim.set("id", c.id).set("statement", c.statement).set("paper", c.paper);
      one.append("claims", std::move(claim));
      ids += (ids.empty() ? "" : ", ") + c.id;
    }
    json.append("experiments", std::move(one));
  }
  if (o.json) {
    std::cout << json.json();
    return 0;
  }
  const std::string table = lab::text_table(rows);
  std::size_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t end = table.find('\n', at) + 1;
    std::cout << table.substr(at, end - at);
    if (i > 0) std::cout << "  claims: " << claims[i - 1] << "\n";
    at = end;
  }
  std::cout << "\nnumbers are of runs at each size; runs that several experiments share are run once\n";
  return 0;
}

// By runs of `simulator`; empty: by those of this program.
Result<std::vector<lab::Judged>> judge_all(std::vector<lab::Chosen>& chosen, const record::Store& store,
                                           const std::string& simulator) {
  std::vector<lab::Judged> all;
  for (lab::Chosen& c : chosen) {
    const std::string own = own_id(*c.experiment);
    const std::string& whose = simulator.empty() ? own : simulator;
    auto samples = lab::samples_by(c, store, whose, own);
    if (!samples) return tl::unexpected(samples.error());
    auto judgements = lab::judge(*c.experiment, *samples, lab::account_quantity);
    all.push_back({&c, std::move(*samples), std::move(judgements), whose});
  }
  return all;
}

void print(const std::vector<lab::Judged>& all, const Options& o) {
  if (o.json) {
    record::Record r;
    for (const lab::Judged& j : all) r.append("experiments", lab::to_record(j));
    std::cout << r.json();
  } else {
    for (const lab::Judged& j : all) std::cout << lab::to_text(j) << "\n";
    std::cout << lab::count_text(all) << "\n";
  }
}

int required(const std::vector<lab::Judged>& all, const Options& o) {
  if (o.require.empty()) return 0;
  const auto least = o.require == "trend"        ? lab::Verdict::kTrend
                     : o.require == "compatible" ? lab::Verdict::kCompatible
                                                 : lab::Verdict::kReproduced;
  for (const lab::Judged& j : all) {
    for (const lab::Judgement& g : j.judgements) {
      if (g.verdict < least) return kExitClaimMissed;
    }
  }
  return 0;
}

int run_lab(const Options& o) {
  const auto all = experiments(o, o.size());
  if (!all) return refuse(all.error());
  const auto seeds = seeds_of(o);
  if (!seeds) return refuse(seeds.error());
  auto chosen = lab::choose(*all, o.names, o.size(), *seeds, simulator_id(), live_id());
  if (!chosen) return refuse(chosen.error());
  const auto jobs = jobs_of(o);
  if (!jobs) return refuse(jobs.error());
  std::error_code wrong;
  fs::create_directories(o.out, wrong);
  if (wrong) return refuse({"--out: the folder '" + o.out + "' cannot be written: " + wrong.message()});
  if (const auto trial = record::OutputFile::open("--out", fs::path(o.out) / "trial"); !trial)
    return refuse(trial.error());
  auto store = record::Store::open(o.record());
  if (!store) return refuse(store.error());

  Bar bar;
  lab::RunOptions options;
  options.execute = o.executor;
  if (!options.execute) {
    options.execute = [at_once = *jobs](const std::vector<std::string>& pieces, const lab::PoolCalls& calls) {
      return lab::run_pool(pieces, at_once, calls);
    };
  }
  options.fresh = o.fresh;
  options.progress = [&](const lab::Progress& p) { bar.show(p.done, p.all, p.seconds); };
  options.say = [&](const std::string& sentence) {
    bar.clear();
    fmt::print(stderr, "weft: {}\n", sentence);
  };
  const Stopwatch watch;
  const auto ran = lab::run(*chosen, *store, this_program(), options);
  bar.clear();
  if (!ran) return fault(ran.error());
  fmt::print(stderr, "weft: {} runs executed in {:.1f} s, {} were in {}\n", ran->executed, watch.seconds(),
             ran->present, o.record());
  if (ran->interrupted) {
    fmt::print(stderr,
               "weft: interrupted; what was done is in the record, and the same command continues.\n");
    return 1;
  }
  const auto judged = judge_all(*chosen, *store, "");
  if (!judged) return fault(judged.error());
  const auto written = lab::write_output(*judged, o.out);
  if (!written) return fault(written.error());
  print(*judged, o);
  if (!o.json)
    std::cout << "values, verdicts and figures are in " << o.out << "/EXPERIMENT/" << o.size() << "\n";
  if (ran->died != 0 || ran->faulty != 0) return 1;
  return required(*judged, o);
}

// Names another simulator whose runs the record has, where those of this program's simulator are incomplete.
void point_elsewhere(const std::vector<lab::Judged>& all, const record::Store& store) {
  for (const lab::Judged& j : all) {
    const bool whole = std::all_of(j.judgements.begin(), j.judgements.end(), [](const lab::Judgement& g) {
      return g.verdict != lab::Verdict::kIncomplete;
    });
    const auto found = lab::recorded(*j.chosen->experiment, store);
    if (whole || !found) continue;
    for (const lab::Recorded& r : *found) {
      if (r.size != j.chosen->size.name || r.simulator == own_id(*j.chosen->experiment)) continue;
      fmt::print(stderr, "weft: {} was run by simulator {}: --simulator '{}' shows that.\n",
                 j.chosen->experiment->name, r.simulator, r.simulator);
      break;
    }
  }
}

// Refuses a --simulator that made none of the recorded runs of these experiments.
Result<void> known_simulator(const std::vector<lab::Chosen>& chosen, const record::Store& store,
                             const std::string& simulator) {
  std::vector<std::string> known;
  for (const lab::Chosen& c : chosen) {
    const auto found = lab::recorded(*c.experiment, store);
    if (!found) return tl::unexpected(found.error());
    for (const lab::Recorded& r : *found) {
      if (r.simulator == simulator) return {};
      if (std::find(known.begin(), known.end(), r.simulator) == known.end()) known.push_back(r.simulator);
    }
  }
  std::string list;
  for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
  return fail(fmt::format("--simulator: '{}' made no run of this record; there are runs of {}", simulator,
                          list.empty() ? "none" : list));
}

int show(const Options& o) {
  const auto all = experiments(o, o.size());
  if (!all) return refuse(all.error());
  const auto seeds = seeds_of(o);
  if (!seeds) return refuse(seeds.error());
  auto chosen = lab::choose(*all, o.names, o.size(), *seeds, simulator_id(), live_id());
  if (!chosen) return refuse(chosen.error());
  // Experiments whose claims are all computed need no record.
  const bool runs =
      std::any_of(chosen->begin(), chosen->end(), [](const lab::Chosen& c) { return !c.runs.empty(); });
  const auto store = runs ? record::Store::open_existing(o.record()) : record::Store::open(":memory:");
  if (!store) return refuse(store.error());
  if (!o.simulator.empty()) {
    if (const auto known = known_simulator(*chosen, *store, o.simulator); !known)
      return refuse(known.error());
  }
  const auto judged = judge_all(*chosen, *store, o.simulator);
  if (!judged) return fault(judged.error());
  print(*judged, o);
  if (o.simulator.empty()) point_elsewhere(*judged, *store);
  return required(*judged, o);
}

int compare(const Options& o) {
  const auto before = record::Store::open_existing(o.records[0]);
  if (!before) return refuse(before.error());
  const auto after = record::Store::open_existing(o.records[1]);
  if (!after) return refuse(after.error());
  lab::Comparison found;
  for (const char* size : lab::kSizes) {
    const auto all = experiments(o, size);
    if (!all) return refuse(all.error());
    const auto done = lab::compare(*all, size, *before, *after, lab::account_quantity, found);
    if (!done) return fault(done.error());
  }
  if (found.experiments.empty()) return refuse({"the two records have no experiment and size in common"});
  if (o.json) {
    record::Record r;
    r.set("compared", std::uint64_t{found.compared});
    for (const lab::Difference& d : found.differences) {
      record::Record one;
      one.set("experiment", d.experiment).set("size", d.size).set("what", d.what);
      one.set("before", d.before).set("after", d.after);
      r.append("differences", std::move(one));
    }
    std::cout << r.json();
    return 0;
  }
  for (const std::string& line : found.experiments) std::cout << line << "\n";
  std::vector<std::vector<std::string>> rows{{"experiment", "size", "what", o.records[0], o.records[1]}};
  for (const lab::Difference& d : found.differences)
    rows.push_back({d.experiment, d.size, d.what, d.before, d.after});
  std::cout << "\n";
  if (rows.size() > 1) std::cout << lab::text_table(rows) << "\n";
  std::cout << found.differences.size() << " of " << found.compared
            << " metrics, measures and verdicts differ beyond their intervals\n";
  return 0;
}

void add_folder(CLI::App* command, const std::shared_ptr<Options>& o) {
  command->add_option("--dir", o->folder, "where the experiments are, if not those of this program")
      ->type_name("DIR");
  command->add_flag("--json", o->json, "print JSON instead of tables");
}

void add_selection(CLI::App* command, const std::shared_ptr<Options>& o) {
  command->add_option("NAME", o->names, "experiments or groups of them; weft lab list names them")
      ->required();
  auto* quick = command->add_flag("--quick", o->quick, "minutes; decides little");
  command->add_flag("--full", o->full, "as large as the paper")->excludes(quick);
  command->add_option("--seeds", o->seeds, "instead of what the experiment says")->type_name("N");
  command->add_option("--out", o->out, "the folder of record and figures")->type_name("DIR");
  command->add_option("--db", o->db, "the record, if not lab.db in that folder")->type_name("FILE");
  command->add_option("--require", o->require, "exit with 3 unless every claim is at least this")
      ->check(CLI::IsMember({"reproduced", "compatible", "trend"}));
}

void add_commands(CLI::App* lab, int& exit_code, const lab::Executor& executor) {
  auto o = std::make_shared<Options>();
  o->executor = executor;
  lab->require_subcommand(1);
  CLI::App* l = lab->add_subcommand("list", "every experiment, its claims, and how many runs it takes");
  add_folder(l, o);
  l->footer("Examples:\n  weft lab list\n  weft lab list --json");
  l->callback([o, &exit_code] { exit_code = list(*o); });
  CLI::App* r = lab->add_subcommand("run", "run what the record lacks, then show every claim's verdict");
  add_folder(r, o);
  add_selection(r, o);
  if (!executor)
    r->add_option("-j,--jobs", o->jobs, "runs at a time; 0: as many as there are cores")->type_name("N");
  r->add_flag("--fresh", o->fresh, "run again what the record has");
  r->footer(
      "An interrupted run continues where it was. Exit codes: 0 done, 1 a run failed, 2 wrong usage,\n"
      "3 a claim is below what --require asks for.\n"
      "Examples:\n  weft lab run irn-fig1 --quick\n  weft lab run irn srnic-fig12 --out results");
  r->callback([o, &exit_code] { exit_code = run_lab(*o); });
  CLI::App* s = lab->add_subcommand("show", "the verdicts again, from the record alone");
  add_folder(s, o);
  add_selection(s, o);
  s->add_option("--simulator", o->simulator, "runs of this simulator instead of this program's own")
      ->type_name("ID");
  s->footer("Examples:\n  weft lab show irn-fig1 --quick\n  weft lab show irn srnic-fig12 --json");
  s->callback([o, &exit_code] { exit_code = show(*o); });
  CLI::App* c = lab->add_subcommand("compare", "what differs between two records");
  add_folder(c, o);
  c->add_option("RECORD", o->records, "two run records")->type_name("A.db B.db")->expected(2)->required();
  c->footer("Examples:\n  weft lab compare lab-out/lab.db after/lab.db");
  c->callback([o, &exit_code] { exit_code = compare(*o); });
}

}  // namespace

void add_lab(CLI::App& app, int& exit_code) {
  CLI::App* lab =
      app.add_subcommand("lab", "Run experiments, and say which claims of the papers they bear out");
  lab->footer(
      "Examples:\n"
      "  weft lab list\n"
      "  weft lab run irn-fig1 --quick\n"
      "  weft lab report results.html");
  add_commands(lab, exit_code, {});
  add_lab_reports(lab, exit_code);
}

int run_lab_program(std::vector<std::string> args, std::ostream& out, std::ostream& err,
                    lab::Executor executor) {
  CLI::App app{"weft lab, with its runs in the ranks of MPI: mpirun -n N weft-lab-mpi run NAME…",
               "weft-lab-mpi"};
  app.set_version_flag("--version", version_line());
  app.footer(
      "Rank 0 owns the record and hands out runs to the others.\nExamples:\n  mpirun -n 16 weft-lab-mpi run "
      "irn --full");
  app.option_defaults()->always_capture_default();
  int exit_code = 0;
  add_commands(&app, exit_code, executor);
  const int parsed = parse(app, std::move(args), out, err);
  return parsed != 0 ? parsed : exit_code;
}

}  // namespace weft::cli
