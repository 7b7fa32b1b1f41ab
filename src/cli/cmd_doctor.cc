// weft doctor: what of this host keeps programs under `weft run` from working, or makes them slow, what to
// change, and what it costs not to.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/become.h"
#include "cli/commands.h"
#include "live/doctor/diagnosis.h"
#include "live/engine/options.h"

namespace weft::cli {
namespace {

using live::Health;
using nlohmann::json;

struct Wanted {
  std::string address = "127.0.0.1";
  std::string wire = "auto";
  bool as_json = false;
};

const char* word(Health h) { return h == Health::kGood ? "good" : h == Health::kCosts ? "costs" : "broken"; }

// As `weft run` reads it, by the same rows.
Result<live::Options> options_of(const Wanted& w) {
  live::Options o;
  for (const live::Setting& s : live::settings()) {
    const std::string name = s.option;
    const std::string* const text = name == "addr" ? &w.address : name == "wire" ? &w.wire : nullptr;
    if (text == nullptr) continue;
    if (const auto read = s.parse(("--" + name).c_str(), *text, o); !read)
      return tl::unexpected(read.error());
  }
  return o;
}

live::Symptom libraries() {
  const auto found = library_directory();
  if (found) return {"libraries", Health::kGood, "in " + *found, "", ""};
  return {"libraries", Health::kBroken, "they are missing", found.error().message,
          "no program finds the soft NIC"};
}

int examine(const Wanted& w) {
  const auto options = options_of(w);
  if (!options) return refuse(options.error());
  std::vector<live::Symptom> all = live::diagnose(live::examine(options->wire, options->own));
  all.insert(all.begin(), libraries());
  const Health worst = live::worst(all);
  const int code = worst == Health::kBroken ? 1 : 0;
  if (w.as_json) {
    json out{{"address", w.address}, {"wire", w.wire}, {"health", word(worst)}, {"symptoms", json::array()}};
    for (const live::Symptom& s : all) {
      json one{{"what", s.what}, {"health", word(s.health)}, {"found", s.found}};
      if (s.health != Health::kGood) {
        one["change"] = s.change;
        one["cost"] = s.cost;
      }
      out["symptoms"].push_back(std::move(one));
    }
    fmt::print("{}\n", out.dump(2));
    return code;
  }
  for (const live::Symptom& s : all) {
    fmt::print("{:<7}{:<16}{}\n", word(s.health), s.what, s.found);
    if (s.health == Health::kGood) continue;
    fmt::print("{:7}{:<16}change: {}\n{:7}{:<16}else: {}\n", "", "", s.change, "", "", s.cost);
  }
  fmt::print("\n{}\n", worst == Health::kBroken  ? "weft run will not work here."
                       : worst == Health::kCosts ? "weft run works here, and could be faster."
                                                 : "weft run works here.");
  return code;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto w = std::make_shared<Wanted>();
  CLI::App* c = app.add_subcommand("doctor", "What of this host stops or slows programs under weft run");
  c->add_option("--addr", w->address, "address that the program is to have")->capture_default_str();
  c->add_option("--wire", w->wire, "wire that it is to use: " + live::wire_names())->capture_default_str();
  c->add_flag("-j,--json", w->as_json, "one JSON object");
  c->footer(
      "It opens the wire and closes it again, and sends nothing to others. Exit code 1: programs will not "
      "run.\n\nExamples:\n  weft doctor\n  weft doctor --addr 10.0.0.1 --wire packet");
  c->callback([w, &exit_code] { exit_code = examine(*w); });
}

}  // namespace weft::cli
