#include "sim/world/nic_design.h"

#include <array>
#include <filesystem>

#include "record/input.h"
#include "sim/world/fields.h"
#include "sim/world/toml_text.h"

namespace weft::sim {
namespace {

template <class T>
struct Word {
  const char* word;
  T value;
};
constexpr std::array kPolicies{Word<ContextPolicy>{"on-chip", ContextPolicy::kOnChip},
                               Word<ContextPolicy>{"fcfs", ContextPolicy::kFcfs},
                               Word<ContextPolicy>{"non-blocking", ContextPolicy::kNonBlocking}};
constexpr std::array kReplacements{Word<Replacement>{"lru", Replacement::kLru},
                                   Word<Replacement>{"random", Replacement::kRandom}};
constexpr std::array kHomes{Word<Home>{"host", Home::kHost}, Word<Home>{"board", Home::kBoard}};
constexpr std::array kKeeps{Word<Keeps>{"nothing", Keeps::kNothing}, Word<Keeps>{"chip", Keeps::kChip},
                            Word<Keeps>{"host", Keeps::kHost}};
constexpr std::array kReorders{Word<Reorder>{"nothing", Reorder::kNothing},
                               Word<Reorder>{"per-qp", Reorder::kPerQueuePair},
                               Word<Reorder>{"shared", Reorder::kShared}};
constexpr std::array kPicks{Word<Picks>{"ready", Picks::kReady}, Word<Picks>{"blind", Picks::kBlind}};
constexpr std::array kModes{Word<wire::Mode>{"roce", wire::Mode::kRoce},
                            Word<wire::Mode>{"irn", wire::Mode::kIrn},
                            Word<wire::Mode>{"srnic", wire::Mode::kSrnic}};

constexpr std::uint64_t kMost = UINT32_MAX;

void read_pcie(Fields f, Design& d) {
  PcieDesign& p = d.pcie;
  f.rate("rate", p.rate);
  f.duration("round_trip", p.round_trip);
  f.duration("write_delay", p.write_delay);
  f.integer("payload", p.payload, 0, kMost);
  f.integer("overhead", p.overhead, 0, kMost);
  f.integer("reads", p.reads, 0, kMost);
  f.integer("request", p.request, 0, kMost);
  f.finish();
}

void read_board(Fields f, Design& d) {
  f.size("size", d.board.size);
  f.rate("rate", d.board.rate);
  f.duration("latency", d.board.latency);
  f.finish();
}

void read_pipelines(Fields f, Design& d) {
  PipelinesDesign& p = d.pipelines;
  const struct {
    const char* interval;
    const char* depth;
    PipelineDesign& stage;
  } stages[] = {{"doorbell", "doorbell_depth", p.doorbell},
                {"schedule", "schedule_depth", p.schedule},
                {"transmit", "transmit_depth", p.transmit},
                {"receive", "receive_depth", p.receive},
                {"completion", "completion_depth", p.completion}};
  for (const auto& s : stages) {
    f.integer(s.interval, s.stage.interval, 0, kMost);
    f.integer(s.depth, s.stage.depth, 0, kMost);
  }
  f.integer("bytes_per_cycle", p.bytes_per_cycle, 0, kMost);
  f.finish();
}

void read_scheduler(Fields f, Design& d) {
  SendSchedulerDesign& s = d.scheduler;
  f.choice("picks", s.picks, kPicks);
  f.integer("wqes", s.wqes, 0, kMost);
  f.size("burst", s.burst);
  f.integer("turns", s.turns, 0, kMost);
  f.integer("entry_bytes", s.entry_bytes, 0, kMost);
  f.size("memory", s.memory);
  f.finish();
}

void read_wqe(Fields f, Design& d) {
  WqeDesign& w = d.wqe;
  f.integer("send_bytes", w.send_bytes, 1, 4096);
  f.integer("receive_bytes", w.receive_bytes, 1, 4096);
  f.integer("completion_bytes", w.completion_bytes, 1, 4096);
  f.integer("inline_bytes", w.inline_bytes, 0, 4096);
  f.flag("pushed", w.pushed);
  f.integer("send_cache", w.send_cache, 0, kMost);
  f.integer("receive_cache", w.receive_cache, 0, kMost);
  f.integer("shared_receive_cache", w.shared_receive_cache, 0, kMost);
  f.finish();
}

void read_context(Fields f, Design& d) {
  ContextDesign& c = d.context;
  f.choice("policy", c.policy, kPolicies);
  f.integer("bytes", c.bytes, 0, kMost);
  f.integer("stride", c.stride, 0, kMost);
  f.integer("most", c.most, 0, kMost);
  f.integer("cache", c.cache, 0, kMost);
  f.choice("replacement", c.replacement, kReplacements);
  f.choice("home", c.home, kHomes);
  f.integer("access", c.access.interval, 0, kMost);
  f.integer("access_depth", c.access.depth, 0, kMost);
  f.flag("write_back", c.write_back);
  f.integer("channels", c.channels, 0, kMost);
  f.integer("misses", c.misses, 0, kMost);
  f.integer("ooo_capacity", c.ooo_capacity, 0, kMost);
  f.integer("index_bits", c.index_bits, 0, kMost);
  f.integer("sq_table", c.sq_table, 0, kMost);
  f.integer("sq_table_bytes", c.sq_table_bytes, 0, kMost);
  f.integer("send_window", c.send_window, 0, kMost);
  f.integer("send_window_bytes", c.send_window_bytes, 0, kMost);
  f.finish();
}

void read_translation(Fields f, Design& d) {
  TranslationDesign& t = d.translation;
  f.size("page", t.page);
  f.size("reach", t.reach);
  f.integer("entry_bytes", t.entry_bytes, 0, kMost);
  f.flag("on_chip", t.on_chip);
  f.integer("cache", t.cache, 0, kMost);
  f.choice("replacement", t.replacement, kReplacements);
  f.choice("home", t.home, kHomes);
  f.integer("fetch_bytes", t.fetch_bytes, 0, kMost);
  f.integer("mpt_entry_bytes", t.mpt_entry_bytes, 0, kMost);
  f.integer("mpt_entries", t.mpt_entries, 0, kMost);
  f.finish();
}

void read_recovery(Fields f, Design& d) {
  RecoveryDesign& r = d.recovery;
  f.integer("slots", r.slots, 0, kMost);
  f.choice("bitmaps", r.bitmaps, kKeeps);
  f.integer("bitmap_count", r.bitmap_count, 0, kMost);
  f.choice("reorder", r.reorder, kReorders);
  f.size("reorder_buffer", r.reorder_buffer);
  f.integer("request_entry", r.request_entry, 0, kMost);
  f.integer("extra_context", r.extra_context, 0, kMost);
  f.integer("event_bytes", r.event_bytes, 0, kMost);
  f.duration("cpu_time", r.cpu_time);
  f.duration("nak_delay", r.nak_delay);
  f.flag("range_exit", r.range_exit);
  f.finish();
}

void read_buffers(Fields f, Design& d) {
  f.size("receive", d.buffers.receive);
  f.size("transmit", d.buffers.transmit);
  f.finish();
}

constexpr std::array kParts{Word<void (*)(Fields, Design&)>{"pcie", read_pcie},
                            Word<void (*)(Fields, Design&)>{"board", read_board},
                            Word<void (*)(Fields, Design&)>{"pipelines", read_pipelines},
                            Word<void (*)(Fields, Design&)>{"scheduler", read_scheduler},
                            Word<void (*)(Fields, Design&)>{"wqe", read_wqe},
                            Word<void (*)(Fields, Design&)>{"context", read_context},
                            Word<void (*)(Fields, Design&)>{"translation", read_translation},
                            Word<void (*)(Fields, Design&)>{"recovery", read_recovery},
                            Word<void (*)(Fields, Design&)>{"buffers", read_buffers}};

// "a.b=c, d.e=f" over the tables.
std::string apply_changes(toml::table& root, const std::string& changes) {
  for (std::size_t at = 0; at < changes.size();) {
    const std::size_t end = std::min(changes.find(',', at), changes.size());
    std::string one = changes.substr(at, end - at);
    at = end + 1;
    one.erase(0, one.find_first_not_of(' '));
    one.erase(one.find_last_not_of(' ') + 1);
    if (one.empty()) continue;
    const std::size_t equals = one.find('=');
    const std::size_t dot = one.find('.');
    if (equals == std::string::npos || equals == 0 || equals + 1 == one.size())
      return "'" + one + "' is not NAME=VALUE, such as scheduler.wqes=4";
    if (dot == std::string::npos || dot > equals) {
      root.insert_or_assign(one.substr(0, equals), one.substr(equals + 1));
      continue;
    }
    const std::string part = one.substr(0, dot);
    if (!root.contains(part)) root.insert(part, toml::table{});
    toml::table* t = root[part].as_table();
    if (t == nullptr) return "'" + one + "': '" + part + "' is not a part of the design";
    t->insert_or_assign(one.substr(dot + 1, equals - dot - 1), one.substr(equals + 1));
  }
  return {};
}

}  // namespace

Result<Design> parse_design(const std::string& text, const std::string& name, const std::string& changes) {
  auto parsed = read_toml(text, name);
  if (!parsed) return tl::unexpected(parsed.error());
  toml::table& root = *parsed;
  if (std::string wrong = apply_changes(root, changes); !wrong.empty())
    return fail(one_line(name + ": " + wrong));
  std::string mistake;
  Design d;
  Fields f(root, "", mistake);
  f.text("name", d.name);
  f.text("text", d.text);
  f.choice("mode", d.mode, kModes);
  f.integer("clock_mhz", d.clock_mhz, 0, kMost);
  f.size("on_chip", d.on_chip);
  for (const auto& part : kParts) f.known(part.word);
  f.finish();
  for (const auto& part : kParts)
    read_part(root, part.word, mistake, [&](Fields g) { part.value(std::move(g), d); });
  if (mistake.empty()) {
    if (const auto ok = validate(d); !ok) mistake = ok.error().message;
  }
  if (!mistake.empty()) return fail(one_line(name + ": " + mistake));
  return d;
}

Result<std::string> design_text(const std::string& name, const std::string& folder) {
  std::string all;
  for (const DesignRow& row : design_rows()) {
    if (name == row.name) return std::string(row.text);
    all += std::string(row.name) + ", ";
  }
  const std::filesystem::path path(name.starts_with('/') ? name : folder + name);
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none))
    return fail("'" + name + "' is neither ideal, nor one of " + all + "nor a file");
  return record::read_file(path);
}

Result<Design> design_named(const std::string& name, const std::string& folder, const std::string& changes) {
  const auto text = design_text(name, folder);
  if (!text) return tl::unexpected(text.error());
  return parse_design(*text, name, changes);
}

}  // namespace weft::sim
