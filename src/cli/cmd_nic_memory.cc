// weft nic memory: what memory a design takes for so many queue pairs, part by part, and how many queue pairs
// a memory on the chip holds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/cmd_nic.h"
#include "cli/commands.h"
#include "core/base/parse.h"
#include "record/record.h"
#include "sim/nic/memory.h"
#include "sim/world/nic_design.h"

namespace weft::cli {
namespace {

struct Options {
  std::vector<std::string> designs;
  std::string queue_pairs = "10000";
  std::string chip;
  bool json = false;
};

constexpr sim::Place kPlaces[] = {sim::Place::kChip, sim::Place::kBoard, sim::Place::kHost};

// K is 1024.
std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double n = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* next : {"MiB", "GiB", "TiB"}) {
    if (n < 1024) break;
    n /= 1024;
    unit = next;
  }
  return fmt::format("{:.{}f} {}", n, n < 10 ? 2 : 1, unit);
}

struct Answer {
  sim::MemoryAccount account;
  std::uint64_t fitting = 0;  // with --chip
};

void print_table(const sim::Design& d, std::uint64_t n, const Answer& a, const Options& o) {
  std::cout << fmt::format("{}: {} queue pairs\n", d.name, n);
  std::cout << fmt::format("  {:<22}{:>11}{:>11}{:>11}   {}\n", "part", "chip", "board", "host", "how");
  for (const sim::MemoryItem& item : a.account.items) {
    std::cout << fmt::format("  {:<22}", item.name);
    for (const sim::Place p : kPlaces)
      std::cout << fmt::format("{:>11}", p == item.place ? size_text(item.bytes()) : "");
    std::cout << fmt::format("   {}\n", item.how);
  }
  std::cout << fmt::format("  {:<22}", "in all");
  for (const sim::Place p : kPlaces) std::cout << fmt::format("{:>11}", size_text(a.account.total(p)));
  const std::uint64_t chip = a.account.total(sim::Place::kChip);
  std::cout << fmt::format("   {:.1f} queue pairs per MiB on the chip\n",
                           1048576.0 * static_cast<double>(n) / static_cast<double>(chip));
  if (!o.chip.empty()) std::cout << fmt::format("  {} on the chip hold {} queue pairs\n", o.chip, a.fitting);
}

record::Record record_of(const sim::Design& d, std::uint64_t n, const Answer& a, const Options& o) {
  record::Record r;
  r.set("design", d.name).set("queue_pairs", n);
  for (const sim::MemoryItem& item : a.account.items) {
    record::Record one;
    one.set("part", item.name).set("place", sim::place_name(item.place)).set("bytes", item.bytes());
    one.set("grows", item.grows).set("how", item.how);
    r.append("parts", std::move(one));
  }
  for (const sim::Place p : kPlaces) r.set(std::string(sim::place_name(p)) + "_bytes", a.account.total(p));
  if (!o.chip.empty()) r.set("chip_holds", a.fitting);
  return r;
}

int memory(const Options& o) {
  const auto n = parse_integer("--qps", o.queue_pairs, 1, std::uint64_t{1} << 24U);
  if (!n) return refuse(n.error());
  Bytes chip{};
  if (!o.chip.empty()) {
    const auto size = parse_size("--chip", o.chip);
    if (!size) return refuse(size.error());
    chip = *size;
  }
  std::vector<sim::Design> designs;
  std::vector<Answer> answers;
  for (const std::string& name : o.designs) {
    auto design = sim::design_named(name, "", "");
    if (!design) return refuse(design.error());
    auto account = sim::memory_of(*design, *n);
    if (!account) return refuse(account.error());
    answers.push_back({std::move(*account), o.chip.empty() ? 0 : sim::queue_pairs_within(*design, chip)});
    designs.push_back(std::move(*design));
  }
  record::Record all;
  for (std::size_t i = 0; i < designs.size(); ++i) {
    if (o.json) {
      all.append("designs", record_of(designs[i], *n, answers[i], o));
    } else {
      if (i != 0) std::cout << "\n";
      print_table(designs[i], *n, answers[i], o);
    }
  }
  if (o.json) std::cout << all.json();
  return 0;
}

}  // namespace

void add_nic_memory(CLI::App& nic, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c =
      nic.add_subcommand("memory", "what memory a design takes for so many queue pairs, part by part");
  c->add_option("NAME", o->designs, "a built-in design or a TOML file; several are shown one after the other")
      ->required();
  c->add_option("--qps", o->queue_pairs, "queue pairs")->type_name("N");
  c->add_option("--chip", o->chip, "also says how many queue pairs this much memory on the chip holds")
      ->type_name("SIZE");
  c->add_flag("-j,--json", o->json, "print JSON instead of tables");
  c->footer(
      "K is 1024. Bytes follow from the parts of the design.\n"
      "Examples:\n  weft nic memory srnic --qps 10000\n  weft nic memory csrna-lathiding ernic --qps 127 "
      "--chip 2MiB -j");
  c->callback([o, &exit_code] { exit_code = memory(*o); });
}

}  // namespace weft::cli
