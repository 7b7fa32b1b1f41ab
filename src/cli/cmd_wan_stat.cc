// weft wan stat: the boxes that run on this host, from their files of status.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/cmd_wan.h"
#include "cli/commands.h"
#include "cli/wan_status.h"
#include "wan/box/ethernet.h"
#include "wan/box/port.h"
#include "wan/logic/config.h"

namespace weft::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string status;
  bool json = false;
  bool prometheus = false;
};

struct Counter {
  const char* group;
  const char* name;
  const char* text;
};

std::vector<Counter> counters() {
  std::vector<Counter> all;
  for (const wan::BoxCounterInfo& i : wan::kBoxCounterInfo) all.push_back({"box", i.name, i.text});
#define WEFT_X(name, text) all.push_back({"not_understood", #name, text});
  WEFT_STRANGER_REASONS(WEFT_X)
#undef WEFT_X
  all.push_back({"bytes", "parity_broken", "groups and packets of parity whose bytes made no sense"});
  all.push_back({"bytes", "trains", "trains of packets that were cut here"});
  all.push_back({"bytes", "no_slot", "dropped: every place for a frame was in use"});
  all.push_back({"bytes", "no_header", "not sent: nobody knows between which stations"});
#define WEFT_X(name, text) all.push_back({"near_port", #name, text});
  WEFT_PORT_COUNTERS(WEFT_X)
#undef WEFT_X
#define WEFT_X(name, text) all.push_back({"far_port", #name, text});
  WEFT_PORT_COUNTERS(WEFT_X)
#undef WEFT_X
  return all;
}

// A box of another version may say something else: what is missing is 0.
std::uint64_t number(const json& j, const char* name) {
  return j.contains(name) && j[name].is_number_unsigned() ? j[name].get<std::uint64_t>() : 0;
}
std::uint64_t number(const json& j, const char* group, const char* name) {
  return j.contains(group) && j[group].is_object() ? number(j[group], name) : 0;
}
bool truth(const json& j, const char* name) {
  return j.contains(name) && j[name].is_boolean() && j[name].get<bool>();
}
std::string text(const json& j, const char* name) {
  return j.contains(name) && j[name].is_string() ? j[name].get<std::string>() : "?";
}
double megabytes(std::uint64_t n) { return static_cast<double>(n) / 1e6; }

const char* word(Life l) {
  return l == Life::kRuns     ? "runs"
         : l == Life::kSilent ? "does not answer"
                              : "was killed: its process is gone";
}

void print(const BoxStatus& s, const json& j) {
  fmt::print("box {}: {} (site) | {} (line), {}\n", number(j, "pid"), text(j, "near"), text(j, "far"),
             word(s.life));
  if (s.life == Life::kGone) {
    fmt::print("  what it last said is in {}; remove it when you have read it\n", s.path);
    return;
  }
  fmt::print("  {}, acknowledges {}, {} halves, store {:.1f} MB of {:.1f} (most {:.1f}){}\n",
             truth(j, "partner") ? "its partner answers" : "no partner just now", text(j, "acknowledge"),
             number(j, "owned"), megabytes(number(j, "stored_bytes")), megabytes(number(j, "store_bytes")),
             megabytes(number(j, "most_stored_bytes")), truth(j, "leaving") ? ", about to end" : "");
  if (const std::string mine = text(j, "parity"), its = text(j, "partner_parity"); mine != "0" && mine != "?")
    fmt::print("  parity {}{}\n", mine,
               !truth(j, "partner") ? ", when a partner answers that has it"
               : its == "0"         ? ": off, because the partner was started without it"
                                    : ", the partner's " + its);
  if (truth(j, "repair_answers"))
    fmt::print("  repairs answers of READs{}\n",
               number(j, "box", "answers_declined") == 0
                   ? ""
                   : ", but not all: the partner had no place for some; start it with --repair-answers, too");
  const char* group = "";
  for (const Counter& c : counters()) {
    const std::uint64_t n = number(j, c.group, c.name);
    if (n == 0) continue;
    if (std::string_view(group) != c.group) fmt::print("  {}\n", group = c.group);
    fmt::print("    {:<18} {:>14}  {}\n", c.name, n, c.text);
  }
}

std::string escaped(const std::string& v) {
  std::string out;
  for (const char c : v) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

// The text format of Prometheus: each family once, with a line for each box.
void print_prometheus(const std::vector<std::pair<BoxStatus, json>>& boxes) {
  const auto labels = [](const json& j) {
    return fmt::format("pid=\"{}\",near=\"{}\",far=\"{}\"", number(j, "pid"), escaped(text(j, "near")),
                       escaped(text(j, "far")));
  };
  const auto family = [&](const std::string& name, const char* help, const char* type, auto value) {
    fmt::print("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
    for (const auto& [s, j] : boxes) fmt::print("{}{{{}}} {}\n", name, labels(j), value(s, j));
  };
  family("weft_box_up", "1: the box runs; 0: it is silent, or was killed", "gauge",
         [](const BoxStatus& s, const json&) { return s.life == Life::kRuns ? 1 : 0; });
  family("weft_box_partner", "1: the partner answers", "gauge",
         [](const BoxStatus&, const json& j) { return truth(j, "partner") ? 1 : 0; });
  family("weft_box_owned_halves", "halves that the box answers for or delivers", "gauge",
         [](const BoxStatus&, const json& j) { return number(j, "owned"); });
  family("weft_box_store_bytes", "size of the store", "gauge",
         [](const BoxStatus&, const json& j) { return number(j, "store_bytes"); });
  family("weft_box_stored_bytes", "bytes in the store now", "gauge",
         [](const BoxStatus&, const json& j) { return number(j, "stored_bytes"); });
  for (const Counter& c : counters()) {
    const std::string group = std::string_view(c.group) == "box" || std::string_view(c.group) == "bytes"
                                  ? ""
                                  : std::string(c.group) + "_";
    family("weft_box_" + group + c.name + "_total", c.text, "counter",
           [&](const BoxStatus&, const json& j) { return number(j, c.group, c.name); });
  }
}

int show(const Options& o) {
  const std::string folder = status_folder(o.status, false);
  if (folder.empty() && !o.status.empty())
    return refuse({"--status: '" + o.status + "' is no folder that can be read"});
  std::vector<std::pair<BoxStatus, json>> boxes;
  for (BoxStatus& s : read_statuses(folder)) {
    json j = json::parse(s.json, nullptr, false);
    boxes.emplace_back(std::move(s), std::move(j));
  }
  if (o.prometheus) {
    print_prometheus(boxes);
    return 0;
  }
  if (o.json) {
    json all = json::array();
    for (auto& [s, j] : boxes) {
      j["life"] = s.life == Life::kRuns ? "runs" : s.life == Life::kSilent ? "silent" : "gone";
      all.push_back(j);
    }
    fmt::print("{}\n", json{{"boxes", all}}.dump(2));
    return 0;
  }
  if (boxes.empty())
    return fault(
        {"no box of this host says that it runs; one that was started with --status is found with the same "
         "option"});
  for (const auto& [s, j] : boxes) print(s, j);
  return 0;
}

}  // namespace

void add_wan_stat(CLI::App& wan, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c = wan.add_subcommand("stat", "What the boxes of this host do");
  c->add_option("--status", o->status, "folder of their status; else /run/weft or $XDG_RUNTIME_DIR/weft")
      ->type_name("DIR");
  auto* as_json = c->add_flag("-j,--json", o->json, "print JSON");
  c->add_flag("-p,--prometheus", o->prometheus, "print counters as Prometheus reads them")->excludes(as_json);
  c->footer(
      "A box that was killed leaves its file, and is shown as gone. Exit code 1: there is no box; -j and -p "
      "then print none, and end with 0.\n"
      "\n"
      "Examples:\n"
      "  weft wan stat\n"
      "  weft wan stat -p > weft.prom.part && mv weft.prom.part weft.prom    # for the textfile collector of "
      "node_exporter");
  c->callback([o, &exit_code] { exit_code = show(*o); });
}

}  // namespace weft::cli
