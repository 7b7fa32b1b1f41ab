// weft adm: the parameters of programs that run (X-RDMA §6.4). It writes the file that all of them watch
// (adm/file.h), or etcd's keys (adm_cluster.h), and reads from their statistics pages what they have.
#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adm/file.h"
#include "adm/watch.h"
#include "channel/params.h"
#include "cli/adm_cluster.h"
#include "cli/commands.h"
#include "cli/stopwatch.h"
#include "page/reader.h"

namespace weft::cli {
namespace {

using adm::Setting;
using adm::Settings;
using nlohmann::json;

struct Wanted {
  ClusterOptions cluster;
  std::vector<std::string> names;
  bool as_json = false;
  double wait = 0;
  std::uint64_t times = 0;
};

// A context of this host that follows the file, as its page shows it.
struct Administered {
  std::string program;
  std::uint64_t pid = 0;
  std::uint64_t version = 0;
  std::uint64_t refused = 0;
  std::vector<std::pair<std::string, std::uint64_t>> values;
};

std::vector<Administered> programs_here(const std::string& path) {
  std::vector<Administered> all;
  for (const page::ReadPage& p : page::read_pages().pages) {
    const page::ReadTable* const context = p.table("context");
    const page::ReadTable* const values = p.table("parameter");
    if (context == nullptr || values == nullptr || context->rows.empty() || values->rows.empty()) continue;
    Administered one{p.command, p.pid, 0, 0, {}};
    const int version = context->column("adm_version");
    const int refused = context->column("adm_refused");
    const int file = context->column("adm_file");
    if (version < 0 || refused < 0 || file < 0) continue;
    if (context->rows[0][static_cast<std::size_t>(file)] != adm::number_of(path)) continue;
    one.version = context->rows[0][static_cast<std::size_t>(version)];
    one.refused = context->rows[0][static_cast<std::size_t>(refused)];
    for (std::size_t i = 0; i < values->columns.size(); ++i)
      one.values.emplace_back(values->columns[i].name, values->rows[0][i]);
    all.push_back(std::move(one));
  }
  return all;
}

std::string who(const Administered& a) { return fmt::format("{}[{}]", a.program, a.pid); }

Result<std::string> path_here() {
  std::string path = adm::settings_path();
  if (path.empty())
    return fail("WEFT_PARAMETERS is 0, which means no file; unset it, or let it name the programs' file");
  return path;
}

Result<Settings> change_here(const std::function<Result<void>(Settings&)>& change) {
  const auto path = path_here();
  if (!path) return tl::unexpected(path.error());
  if (adm::has_agent(*path))
    return fail("an agent keeps the parameters of this host; set them in etcd, with --etcd");
  return adm::change(*path, change);
}

// How many programs have not taken this version yet, named on standard error when time is over.
int wait_for(const std::string& path, std::uint64_t version, double seconds) {
  const Stopwatch watch;
  for (;;) {
    std::string behind;
    for (const Administered& a : programs_here(path)) {
      if (a.version < version) behind += (behind.empty() ? "" : ", ") + who(a);
    }
    if (behind.empty()) return 0;
    if (watch.seconds() >= seconds)
      return fault(
          {fmt::format("not taken within {} s by {}; weft stat tells whether they poll", seconds, behind)});
    sleep_seconds(0.02);
  }
}

int set(const Wanted& w) {
  std::vector<Setting> wanted;
  for (const std::string& text : w.names) {
    auto one = adm::read_setting(text);
    if (!one) return refuse(one.error());
    wanted.push_back(std::move(*one));
  }
  if (!w.cluster.etcd.empty()) return set_in_cluster(w.cluster, wanted);
  const auto done = change_here([&](Settings& s) -> Result<void> {
    for (const Setting& one : wanted) {
      if (!s.set(one)) return fail("there are 512 settings already; weft adm unset makes room");
    }
    return {};
  });
  if (!done) return refuse(done.error());
  std::printf("version %llu\n", static_cast<unsigned long long>(done->version));
  return w.wait == 0 ? 0 : wait_for(adm::settings_path(), done->version, w.wait);
}

int unset(const Wanted& w) {
  std::vector<Setting> wanted;
  for (const std::string& text : w.names) {
    auto one = adm::read_name(text);
    if (!one) return refuse(one.error());
    wanted.push_back(std::move(*one));
  }
  if (!w.cluster.etcd.empty()) return unset_in_cluster(w.cluster, wanted);
  const auto done = change_here([&](Settings& s) -> Result<void> {
    for (const Setting& one : wanted) {
      if (!s.unset(one.program, one.name))
        return fail("'" + adm::name_of(one) + "' is not set; weft adm get lists what is");
    }
    return {};
  });
  if (!done) return refuse(done.error());
  std::printf("version %llu\n", static_cast<unsigned long long>(done->version));
  return w.wait == 0 ? 0 : wait_for(adm::settings_path(), done->version, w.wait);
}

json to_json(const Settings& s) {
  json wanted = json::object();
  for (const Setting& one : s.all()) wanted[adm::name_of(one)] = one.value;
  return {{"version", s.version}, {"settings", std::move(wanted)}};
}

int get(const Wanted& w) {
  if (!w.cluster.etcd.empty()) return get_from_cluster(w.cluster, w.as_json);
  for (const std::string& name : w.names) {
    if (const auto there = channel::expect_param(name); !there) return refuse(there.error());
  }
  const auto path = path_here();
  if (!path) return refuse(path.error());
  const auto settings = adm::load(*path);
  if (!settings) return refuse(settings.error());
  const std::vector<Administered> programs = programs_here(*path);
  const auto shown = [&](const std::string& name) {
    return w.names.empty() ? settings->wanted("", name).has_value() ||
                                 std::any_of(settings->all().begin(), settings->all().end(),
                                             [&](const Setting& s) { return s.name == name; })
                           : std::find(w.names.begin(), w.names.end(), name) != w.names.end();
  };
  if (w.as_json) {
    json all = to_json(*settings);
    all["path"] = *path;
    all["programs"] = json::array();
    for (const Administered& a : programs) {
      json one = {{"program", a.program}, {"pid", a.pid}, {"version", a.version}, {"refused", a.refused}};
      for (const auto& [name, value] : a.values) one["values"][name] = value;
      all["programs"].push_back(std::move(one));
    }
    std::cout << all.dump() << "\n";
    return 0;
  }
  fmt::print("{}: version {}{}\n", *path, settings->version,
             adm::has_agent(*path) ? ", kept by an agent" : "");
  for (const Setting& s : settings->all()) {
    if (shown(s.name)) fmt::print("  {}={}\n", adm::name_of(s), s.value);
  }
  for (const Administered& a : programs) {
    fmt::print("{}: version {}{}{}\n", who(a), a.version,
               a.version == settings->version ? "" : ", has not taken the newest",
               a.refused == 0 ? "" : fmt::format(", refused {}", a.refused));
    for (const auto& [name, value] : a.values) {
      if (shown(name)) fmt::print("  {}={}\n", name, value);
    }
  }
  return 0;
}

int watch(const Wanted& w) {
  if (!w.cluster.etcd.empty()) return watch_cluster(w.cluster, w.as_json, w.times);
  const auto path = path_here();
  if (!path) return refuse(path.error());
  adm::Watch file(*path);
  if (file.fd() < 0)
    return fault({"the kernel has no room for one more watch (fs.inotify.max_user_instances)"});
  std::string before;
  for (std::uint64_t told = 0;;) {
    const auto settings = adm::load(*path);
    if (!settings) {
      if (settings.error().message != before) std::cerr << "weft: " << settings.error().message << ".\n";
      before = settings.error().message;
    } else if (const std::string text = adm::text_of(*settings); text != before) {
      before = text;
      if (w.as_json) {
        fmt::print("{}\n", to_json(*settings).dump());
      } else {
        fmt::print("version {}\n", settings->version);
        for (const Setting& s : settings->all()) fmt::print("  {}={}\n", adm::name_of(s), s.value);
      }
      std::cout.flush();
      if (++told == w.times || std::ferror(stdout) != 0 || std::fflush(stdout) != 0) return 0;
    }
    pollfd wake{file.fd(), POLLIN, 0};
    do {
      (void)poll(&wake, 1, -1);
    } while (!file.changed());
  }
}

int list(const Wanted& w) {
  json all = json::array();
  for (const channel::Param& p : channel::params()) {
    if (w.as_json) {
      all.push_back({{"name", p.name}, {"online", p.online}, {"meaning", p.meaning}});
    } else {
      fmt::print("{:<20} {:<8} {}\n", p.name, p.online ? "online" : "offline", p.meaning);
    }
  }
  if (w.as_json) std::cout << all.dump() << "\n";
  return 0;
}

}  // namespace

void add_adm(CLI::App& app, int& exit_code) {
  CLI::App* const adm =
      app.add_subcommand("adm", "Set parameters of running programs, on this host or in a cluster");
  adm->require_subcommand(1);
  auto w = std::make_shared<Wanted>();
  const auto verb = [&](const char* name, const char* text, int (*act)(const Wanted&)) {
    CLI::App* const v = adm->add_subcommand(name, text);
    v->callback([w, act, &exit_code] { exit_code = act(*w); });
    return v;
  };
  const auto cluster = [&](CLI::App* v) {
    CLI::Option* const etcd =
        v->add_option("--etcd", w->cluster.etcd, "a member of the cluster's etcd; may be given often")
            ->type_name("URL")
            ->allow_extra_args(false);
    v->add_option("--prefix", w->cluster.prefix, "of its keys")->type_name("KEY")->needs(etcd);
    return etcd;
  };
  const auto waits = [&](CLI::App* v) {
    v->add_option("--wait", w->wait,
                  "until every program of this host has taken it; exit code 1 if one has not")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.05, 86400.0))
        ->excludes(cluster(v));
  };
  CLI::App* const s = verb("set", "Give parameters a value", set);
  s->add_option("assignment", w->names, "NAME=VALUE, or PROGRAM/NAME=VALUE for programs of that name alone")
      ->required();
  waits(s);
  CLI::App* const u = verb("unset", "Let programs go back to their own value", unset);
  u->add_option("name", w->names, "NAME or PROGRAM/NAME")->required();
  waits(u);
  CLI::App* const g = verb("get", "Show what is set, and what each program has", get);
  g->add_option("name", w->names, "these parameters only, set or not")->excludes(cluster(g));
  g->add_flag("-j,--json", w->as_json, "one JSON object, of everything");
  CLI::App* const t = verb("watch", "Print what is set, now and whenever it changes", watch);
  t->add_flag("-j,--json", w->as_json, "a JSON object a line");
  t->add_option("-n,--count", w->times, "so often, then end; 0: until interrupted")->type_name("TIMES");
  cluster(t);
  CLI::App* const l = verb("list", "List all parameters", list);
  l->add_flag("-j,--json", w->as_json, "a JSON array");
  CLI::App* const a = verb("agent", "Bring etcd's parameters to this host's programs, until interrupted",
                           [](const Wanted& wanted) { return run_agent(wanted.cluster); });
  cluster(a)->required();
  adm->footer(
      "Programs with a context watch the file /run/weft/parameters, or the one that WEFT_PARAMETERS names, "
      "and\n"
      "take a change while they run. An offline parameter is refused: it is fixed when a context is made.\n"
      "In a cluster each host has an agent, which brings what etcd has to that file.\n\n"
      "Examples:\n"
      "  weft adm set slow_threshold=1000 polling_warn_cycle=5000 --wait 5\n"
      "  weft adm set chunk_server/filter_drop_ppm=1000\n"
      "  weft adm get slow_threshold\n"
      "  weft adm unset slow_threshold\n"
      "  weft adm agent --etcd http://10.0.0.1:2379 --etcd http://10.0.0.2:2379\n"
      "  weft adm set --etcd http://10.0.0.1:2379 slow_threshold=1000");
}

}  // namespace weft::cli
