#include "lab/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lab/live.h"
#include "lab/pool.h"
#include "record/reading.h"

namespace weft::lab {
namespace {

// A child's answer: the parts of a run that its parent does not know, each behind its length.
std::string pack(const record::Run& r) {
  std::string all = fmt::format("{:.6f}\n", r.wall_seconds);
  for (const std::string* part : {&r.key, &r.configuration, &r.result, &r.fault})
    all += fmt::format("{}\n{}", part->size(), *part);
  return all;
}

bool unpack(const std::string& text, record::Run& r) {
  std::size_t at = text.find('\n');
  if (at == std::string::npos) return false;
  r.wall_seconds = std::strtod(text.c_str(), nullptr);
  ++at;
  for (std::string* part : {&r.key, &r.configuration, &r.result, &r.fault}) {
    const std::size_t line = text.find('\n', at);
    if (line == std::string::npos) return false;
    const auto size = static_cast<std::size_t>(std::strtoull(text.c_str() + at, nullptr, 10));
    if (text.size() - (line + 1) < size) return false;
    *part = text.substr(line + 1, size);
    at = line + 1 + size;
  }
  return at == text.size();
}

// A planned run as a text: lines, none of which a path or a setting can break.
std::string piece_of(const Planned& p) {
  std::string all = fmt::format("{}\n{}", p.seed, p.base);
  for (const std::string& c : p.changes) all += fmt::format("\n{}", c);
  return all;
}

Planned planned_of(const std::string& piece) {
  Planned p;
  std::size_t begin = 0;
  for (std::size_t line = 0; begin <= piece.size(); ++line) {
    const std::size_t end = std::min(piece.find('\n', begin), piece.size());
    const std::string text = piece.substr(begin, end - begin);
    if (line == 0) p.seed = std::strtoull(text.c_str(), nullptr, 10);
    if (line == 1) p.base = text;
    if (line > 1) p.changes.push_back(text);
    begin = end + 1;
  }
  return p;
}

// The key under which the record has this run: older records know it by every setting that is stated.
Result<std::string> key_in(const record::Store& store, const Planned& p) {
  if (p.stated.empty() || p.stated == p.key) return p.key;
  for (const std::string* key : {&p.key, &p.stated}) {
    const auto found = store.find(*key);
    if (!found) return tl::unexpected(found.error());
    if (*found) return *key;
  }
  return p.key;
}

// Runs that are not in the record, each once; those that measure this machine come last.
Result<std::vector<const Planned*>> lacking(const std::vector<Chosen>& chosen, const record::Store& store,
                                            bool fresh, std::set<std::string>& keys) {
  std::vector<const Planned*> all;
  for (const Chosen& c : chosen) {
    for (const Planned& p : c.runs) {
      if (!keys.insert(p.key).second) continue;
      if (!fresh) {
        const auto key = key_in(store, p);
        if (!key) return tl::unexpected(key.error());
        const auto found = store.find(*key);
        if (!found) return tl::unexpected(found.error());
        // A measurement that came to nothing may work now; a simulation would fail again.
        if (*found && !(is_live(p) && !(*found)->fault.empty())) continue;
      }
      all.push_back(&p);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Planned* a, const Planned* b) {
    return is_live(*a) != is_live(*b) ? is_live(*b) : a->seed < b->seed;
  });
  return all;
}

Result<void> name_cells(const std::vector<Chosen>& chosen, record::Store& store, const Program& program) {
  std::vector<record::Cell> cells;
  for (const Chosen& c : chosen) {
    const Experiment& e = *c.experiment;
    for (const Planned& p : c.runs) {
      auto key = key_in(store, p);
      if (!key) return tl::unexpected(key.error());
      cells.push_back({e.name, c.size.name, e.variants[p.variant].name, point_text(e, p.point), p.seed,
                       maker(p, program), std::move(*key)});
    }
  }
  return store.add(cells);
}

void read_run(const Experiment& e, const Planned& p, const std::optional<record::Run>& found,
              Samples& samples) {
  if (!found) return;
  const auto reading = record::Reading::parse(found->result);
  const bool cut_off = reading && reading->evaluate("cut_off").value_or(0) != 0;
  for (std::size_t m = 0; m < e.metrics.size(); ++m) {
    if (!found->fault.empty()) {
      samples.set_missing(m, p.variant, p.point, p.seed,
                          fmt::format("seed {} of {}: {}", p.seed, e.variants[p.variant].name, found->fault));
      continue;
    }
    const auto value = reading ? reading->evaluate(e.metrics[m].expression)
                               : Result<double>(tl::unexpected(reading.error()));
    if (value && cut_off && !e.metrics[m].grows) {
      samples.set_missing(m, p.variant, p.point, p.seed,
                          fmt::format("seed {} of {} was cut off", p.seed, e.variants[p.variant].name));
    } else if (value) {
      samples.set(m, p.variant, p.point, p.seed, *value, cut_off);
    } else {
      samples.set_missing(m, p.variant, p.point, p.seed, value.error().message);
    }
  }
}

}  // namespace

Result<std::vector<std::string>> named(const std::vector<Experiment>& all,
                                       const std::vector<std::string>& names) {
  std::set<std::string> known;
  for (const Experiment& e : all) {
    known.insert(e.name);
    known.insert(e.groups.begin(), e.groups.end());
  }
  for (const std::string& n : names) {
    if (known.contains(n)) continue;
    std::string list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    return fail(fmt::format("there is no experiment or group '{}'; there are {}", n, list));
  }
  std::vector<std::string> found;
  for (const Experiment& e : all) {
    const bool wanted =
        names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& n) {
          return n == e.name || std::find(e.groups.begin(), e.groups.end(), n) != e.groups.end();
        });
    if (wanted) found.push_back(e.name);
  }
  return found;
}

Result<Chosen> choose(const Experiment& e, const std::string& size, std::uint32_t seeds,
                      const std::string& simulator, const std::string& live) {
  Chosen c{&e, e.size(size), 0, {}};
  c.size.name = size;
  c.seeds = e.variants.empty() ? 0 : seeds != 0 ? seeds : c.size.seeds;
  auto runs = plan(e, c.size, c.seeds, simulator, live);
  if (!runs) return tl::unexpected(runs.error());
  c.runs = std::move(*runs);
  return c;
}

Result<std::vector<Chosen>> choose(const std::vector<Experiment>& all, const std::vector<std::string>& names,
                                   const std::string& size, std::uint32_t seeds, const std::string& simulator,
                                   const std::string& live) {
  const auto wanted = named(all, names);
  if (!wanted) return tl::unexpected(wanted.error());
  std::vector<Chosen> chosen;
  for (const Experiment& e : all) {
    if (std::find(wanted->begin(), wanted->end(), e.name) == wanted->end()) continue;
    auto c = choose(e, size, seeds, simulator, live);
    if (!c) return tl::unexpected(c.error());
    chosen.push_back(std::move(*c));
  }
  return chosen;
}

std::string execute_piece(const std::string& piece, const Program& program) {
  const auto done = simulate(planned_of(piece), program);
  return done ? pack(*done) : std::string();
}

Result<Ran> run(const std::vector<Chosen>& chosen, record::Store& store, const Program& program,
                const RunOptions& options) {
  Ran ran;
  std::set<std::string> keys;
  const auto todo = lacking(chosen, store, options.fresh, keys);
  if (!todo) return tl::unexpected(todo.error());
  ran.present = keys.size() - todo->size();
  if (const auto ok = name_cells(chosen, store, program); !ok) return tl::unexpected(ok.error());

  const double began = program.seconds();
  std::string broken;  // the record itself
  PoolCalls calls;
  calls.work = [&](const std::string& piece) { return execute_piece(piece, program); };
  calls.done = [&](std::size_t i, const ChildResult& o) {
    const Planned& p = *(*todo)[i];
    record::Run r{p.key, maker(p, program), program.version, p.seed, {}, {}, {}, 0, o.memory};
    ++ran.executed;
    if (!o.died.empty() || !unpack(o.text, r) || r.key != p.key) {
      ++ran.died;
      options.say(fmt::format("a run {}; repeat it with: {}", o.died.empty() ? "gave no result" : o.died,
                              command_of(p)));
      return true;
    }
    if (!r.fault.empty()) options.say(fmt::format("{}: {}", r.fault, command_of(p)));
    const auto kept = store.add(r);
    if (!kept) broken = kept.error().message;
    return kept.has_value();
  };
  calls.turn = [&] { options.progress({ran.executed, todo->size(), program.seconds() - began}); };
  std::vector<std::string> pieces;
  for (const Planned* p : *todo) pieces.push_back(piece_of(*p));
  // What measures this machine has it to itself.
  const auto first_live =
      std::find_if(todo->begin(), todo->end(), [](const Planned* p) { return is_live(*p); });
  const auto simulated = static_cast<std::size_t>(first_live - todo->begin());
  const std::vector<std::string> live(pieces.begin() + (first_live - todo->begin()), pieces.end());
  pieces.resize(simulated);
  PoolEnd end = pieces.empty() ? PoolEnd::kAll : options.execute(pieces, calls);
  if (end == PoolEnd::kAll && !live.empty()) {
    PoolCalls alone = calls;
    alone.done = [&](std::size_t i, const ChildResult& o) { return calls.done(simulated + i, o); };
    end = run_pool(live, 1, alone);
  }
  ran.interrupted = end == PoolEnd::kInterrupted;
  if (!broken.empty()) return fail(broken);
  for (const std::string& key : keys) {
    const auto found = store.find(key);
    if (!found) return tl::unexpected(found.error());
    if (*found && !(*found)->fault.empty()) ++ran.faulty;
  }
  return ran;
}

Result<Samples> read_samples(const Chosen& c, const record::Store& store) {
  Samples samples(*c.experiment, c.seeds);
  for (const Planned& p : c.runs) {
    const auto key = key_in(store, p);
    if (!key) return tl::unexpected(key.error());
    const auto found = store.find(*key);
    if (!found) return tl::unexpected(found.error());
    read_run(*c.experiment, p, *found, samples);
  }
  return samples;
}

Result<std::vector<Recorded>> recorded(const Experiment& e, const record::Store& store) {
  const auto cells = store.cells(e.name);
  if (!cells) return tl::unexpected(cells.error());
  std::vector<Recorded> all;
  for (const record::Cell& c : *cells) {
    auto it = std::find_if(all.begin(), all.end(),
                           [&](const Recorded& r) { return r.size == c.size && r.simulator == c.simulator; });
    if (it == all.end()) it = all.insert(all.end(), Recorded{c.size, c.simulator, 0});
    it->seeds = std::max(it->seeds, static_cast<std::uint32_t>(c.seed));
  }
  return all;
}

Result<Samples> read_samples(const Experiment& e, const Recorded& which, const record::Store& store) {
  const auto cells = store.cells(e.name);
  if (!cells) return tl::unexpected(cells.error());
  std::map<std::string, std::size_t> variants;
  std::map<std::string, std::size_t> points;
  for (std::size_t v = 0; v < e.variants.size(); ++v) variants[e.variants[v].name] = v;
  for (std::size_t p = 0; p < e.points(); ++p) points[point_text(e, p)] = p;
  Samples samples(e, which.seeds);
  for (const record::Cell& c : *cells) {
    if (c.size != which.size || c.simulator != which.simulator || c.seed > which.seeds) continue;
    if (!variants.contains(c.variant) || !points.contains(c.point)) continue;
    const auto found = store.find(c.key);
    if (!found) return tl::unexpected(found.error());
    read_run(e, {variants[c.variant], points[c.point], c.seed, c.key, {}, {}}, *found, samples);
  }
  return samples;
}

Result<Samples> samples_by(Chosen& c, const record::Store& store, const std::string& simulator,
                           const std::string& own) {
  if (simulator == own) return read_samples(c, store);
  const auto all = recorded(*c.experiment, store);
  if (!all) return tl::unexpected(all.error());
  Recorded which{c.size.name, simulator, c.seeds};
  for (const Recorded& r : *all) {
    if (r.size == which.size && r.simulator == simulator) which.seeds = c.seeds = std::min(c.seeds, r.seeds);
  }
  return read_samples(*c.experiment, which, store);
}

void keep_complete_seeds(Chosen& c, const Samples& samples) {
  const Experiment& e = *c.experiment;
  if (e.variants.empty() || e.metrics.empty()) return;
  std::uint32_t complete = 0;
  for (std::uint32_t seed = 1; seed <= samples.seeds(); ++seed, ++complete) {
    bool all = true;
    for (std::size_t v = 0; all && v < e.variants.size(); ++v) {
      for (std::size_t p = 0; all && p < e.points(); ++p)
        all = seed > e.seeds_at(p, samples.seeds()) || samples.at(0, v, p, seed).missing != Samples::kNotRun;
    }
    if (!all) break;
  }
  if (complete < Estimate::kFewest || complete >= c.seeds) return;
  c.seeds = complete;
  std::erase_if(c.runs, [&](const Planned& p) { return p.seed > complete; });
}

}  // namespace weft::lab
