#include "cli/cmd_lab_report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <list>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/program.h"
#include "lab/account.h"
#include "lab/results.h"
#include "lab/session.h"
#include "record/output.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string file;  // of report: the page; of document: the folder
  std::vector<std::string> names;
  std::string folder;
  std::string out = "lab-out";
  std::string db;
  std::string simulator;
  bool quick = false;
  bool full = false;

  std::string record() const { return db.empty() ? (fs::path(out) / "lab.db").string() : db; }
  // The sizes to look for, the best first. What was not run at the size decide is shown as --quick found it,
  // and says so.
  std::vector<std::string> sizes() const {
    if (quick) return {"quick"};
    if (full) return {"full"};
    return {"decide", "quick"};
  }
};

// Everything that is judged points into these.
struct Gathered {
  std::list<std::vector<lab::Experiment>> experiments;
  std::list<lab::Chosen> chosen;
  std::vector<lab::Judged> judged;
};

bool whole(const lab::Judged& j) {
  return std::all_of(j.judgements.begin(), j.judgements.end(),
                     [](const lab::Judgement& g) { return g.verdict != lab::Verdict::kIncomplete; });
}

std::string folder_of(const Options& o) {
  std::error_code wrong;
  return o.folder.empty() ? lab::find_experiments(fs::read_symlink("/proc/self/exe", wrong)) : o.folder;
}

Result<lab::Judged> judge_one(lab::Chosen& c, const record::Store& store, const std::string& simulator) {
  auto samples = lab::read_samples(c, store);
  if (!samples) return tl::unexpected(samples.error());
  const std::uint32_t asked = c.seeds;
  lab::keep_complete_seeds(c, *samples);
  if (c.seeds != asked) return judge_one(c, store, simulator);
  auto judgements = lab::judge(*c.experiment, *samples, lab::account_quantity);
  return lab::Judged{&c, std::move(*samples), std::move(judgements), simulator};
}

// Whose runs to look for: this program's own, then those of others, the last used first. Theirs count only
// where they ran exactly what the experiment is today.
Result<std::vector<std::string>> simulators(const Options& o, const lab::Experiment& e,
                                            const record::Store& store) {
  if (!o.simulator.empty()) return std::vector{o.simulator};
  std::vector<std::string> all{own_id(e)};
  const auto found = lab::recorded(e, store);
  if (!found) return tl::unexpected(found.error());
  for (const lab::Recorded& r : *found) {
    if (std::find(all.begin(), all.end(), r.simulator) == all.end()) all.push_back(r.simulator);
  }
  return all;
}

// An experiment as the record shows it best: the first size, and at it the first simulator, that is whole.
Result<lab::Judged> judge_best(Gathered& g, const std::string& name, const Options& o,
                               const record::Store& store) {
  std::optional<lab::Judged> shown;
  auto experiments = g.experiments.begin();
  for (const std::string& size : o.sizes()) {
    const auto e = std::find_if(experiments->begin(), experiments->end(),
                                [&](const lab::Experiment& x) { return x.name == name; });
    ++experiments;
    const auto candidates = simulators(o, *e, store);
    if (!candidates) return tl::unexpected(candidates.error());
    for (const std::string& simulator : *candidates) {
      auto chosen = lab::choose(*e, size, 0, simulator, simulator);
      if (!chosen) return tl::unexpected(chosen.error());
      g.chosen.push_back(std::move(*chosen));
      auto j = judge_one(g.chosen.back(), store, simulator);
      if (!j) return tl::unexpected(j.error());
      if (!shown || whole(*j)) shown.emplace(std::move(*j));
      if (whole(*shown)) return std::move(*shown);
    }
  }
  return std::move(*shown);
}

Result<Gathered> gather(const Options& o, const record::Store& store) {
  Gathered g;
  const std::string folder = folder_of(o);
  if (folder.empty()) return fail("there is no folder of experiments near this program; name one with --dir");
  for (const std::string& size : o.sizes()) {
    auto all = lab::read_experiments(folder, size);
    if (!all) return tl::unexpected(all.error());
    g.experiments.push_back(std::move(*all));
  }
  const auto names = lab::named(g.experiments.front(), o.names);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    auto j = judge_best(g, name, o, store);
    if (!j) return tl::unexpected(j.error());
    g.judged.push_back(std::move(*j));
  }
  return g;
}

int with_gathered(const Options& o,
                  const std::function<Result<void>(const Gathered&, const std::string& version)>& write) {
  const auto store = record::Store::open_existing(o.record());
  if (!store) return refuse(store.error());
  const auto gathered = gather(o, *store);
  if (!gathered) return refuse(gathered.error());
  if (const auto ok = write(*gathered, version_line()); !ok) return fault(ok.error());
  std::cout << lab::count_text(gathered->judged) << "\n";
  return 0;
}

int report(const Options& o) {
  if (fs::path(o.file).extension() != ".html")
    return refuse({"FILE: '" + o.file + "' must end in .html; its numbers go beside it, as .json"});
  return with_gathered(o, [&](const Gathered& g, const std::string& version) {
    const std::string json = fs::path(o.file).replace_extension(".json");
    if (auto ok = record::write_file(json, lab::report_record(g.judged, version).json()); !ok) return ok;
    if (auto ok = record::write_file(o.file, lab::report_page(g.judged, version)); !ok) return ok;
    std::cout << o.file << " opens in any browser; its numbers are in " << json << "\n";
    return Result<void>();
  });
}

int document(const Options& o) {
  const auto notes = lab::read_notes(folder_of(o));
  if (!notes) return refuse(notes.error());
  return with_gathered(o, [&](const Gathered& g, const std::string& version) {
    std::string names;
    for (const std::string& n : o.names) names += (names.empty() ? "" : " ") + n;
    return lab::write_results(g.judged, version, *notes, names, o.file);
  });
}

void add_common(CLI::App* c, const std::shared_ptr<Options>& o) {
  c->add_option("--dir", o->folder, "where the experiments are, if not those of this program")
      ->type_name("DIR");
  c->add_option("--out", o->out, "the folder of the record")->type_name("DIR");
  c->add_option("--db", o->db, "the record, if not lab.db in that folder")->type_name("FILE");
  c->add_option("--simulator", o->simulator, "runs of this simulator alone")->type_name("ID");
  auto* quick =
      c->add_flag("--quick", o->quick, "of the size quick alone; left out, only where decide was not run");
  c->add_flag("--full", o->full, "of the size full")->excludes(quick);
}

}  // namespace

void add_lab_reports(CLI::App* lab, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* r =
      lab->add_subcommand("report", "one page with every claim, figure and setting; it needs no network");
  r->add_option("FILE", o->file, "the page; its numbers go beside it, as .json")
      ->type_name("OUT.html")
      ->required();
  r->add_option("NAME", o->names, "experiments or groups; left out, all");
  add_common(r, o);
  r->footer("Examples:\n  weft lab report results.html\n  weft lab report irn.html irn --out results");
  r->callback([o, &exit_code] { exit_code = report(*o); });
  CLI::App* d = lab->add_subcommand(
      "document", "what docs/RESULTS.md is, in DIR, and DIR/results with its figures and long tables");
  d->add_option("DIR", o->file, "the folder")->required();
  d->add_option("NAME", o->names, "experiments or groups")->required();
  add_common(d, o);
  d->footer("Examples:\n  weft lab document docs irn irn-own srnic-fig12");
  d->callback([o, &exit_code] { exit_code = document(*o); });
}

}  // namespace weft::cli
