#include "sim/world/scenario.h"

#include <toml++/toml.h>

#include <array>
#include <set>
#include <utility>

#include "core/base/parse.h"
#include "core/transport/cc/controller.h"

namespace weft::sim {
namespace {

constexpr std::array kOps{
    std::pair{"write", WrOpcode::kWrite},       std::pair{"write_imm", WrOpcode::kWriteImm},
    std::pair{"send", WrOpcode::kSend},         std::pair{"send_imm", WrOpcode::kSendImm},
    std::pair{"read", WrOpcode::kRead},         std::pair{"compare_swap", WrOpcode::kCompareSwap},
    std::pair{"fetch_add", WrOpcode::kFetchAdd}};

// One table of the file: hands out values by name, remembers the first mistake, and knows at the end
// which names nobody asked for.
class Fields {
 public:
  Fields(const toml::table& table, std::string path, std::string& mistake)
      : table_(table), path_(std::move(path)), mistake_(mistake) {}

  void text(const char* name, std::string& out) {
    if (const auto t = take(name)) out = *t;
  }
  template <class T>
  void integer(const char* name, T& out, std::uint64_t lowest, std::uint64_t highest) {
    parsed(
        name,
        [&](const std::string& field, const std::string& t) {
          return parse_integer(field, t, lowest, highest);
        },
        [&](std::uint64_t v) { out = static_cast<T>(v); });
  }
  void duration(const char* name, Duration& out) {
    parsed(name, parse_duration, [&](Duration v) { out = v; });
  }
  void rate(const char* name, Rate& out) {
    parsed(name, parse_rate, [&](Rate v) { out = v; });
  }
  void size(const char* name, Bytes& out) {
    parsed(name, parse_size, [&](Bytes v) { out = v; });
  }
  void probability(const char* name, std::uint32_t& out) {
    parsed(name, parse_probability, [&](std::uint32_t v) { out = v; });
  }
  void flag(const char* name, bool& out) {
    const auto t = take(name);
    if (!t) return;
    if (*t == "true" || *t == "false") {
      out = *t == "true";
    } else {
      wrong(name, *t, "true or false");
    }
  }
  template <class T, class Table>
  void choice(const char* name, T& out, const Table& table) {
    const auto t = take(name);
    if (!t) return;
    std::string allowed;
    for (const auto& [word, value] : table) {
      if (*t == word) {
        out = value;
        return;
      }
      allowed += (allowed.empty() ? "" : ", ") + std::string(word);
    }
    wrong(name, *t, "one of " + allowed);
  }
  void known(const char* name) { asked_.insert(name); }  // a table of its own
  void finish() {
    for (const auto& [key, value] : table_) {
      if (asked_.contains(std::string(key.str()))) continue;
      std::string all;
      for (const std::string& a : asked_) all += (all.empty() ? "" : ", ") + a;
      say(path_ + std::string(key.str()) + ": there is no such setting here; there are " + all);
    }
  }

 private:
  std::optional<std::string> take(const char* name) {
    asked_.insert(name);
    const toml::node* node = table_.get(name);
    if (node == nullptr) return std::nullopt;
    if (const auto* s = node->as_string()) return s->get();
    if (const auto* i = node->as_integer()) return std::to_string(i->get());
    if (const auto* b = node->as_boolean()) return b->get() ? "true" : "false";
    say(path_ + name + ": a quantity is written as a string, such as \"1%\" or \"64KiB\"");
    return std::nullopt;
  }
  template <class Parse, class Store>
  void parsed(const char* name, Parse parse, Store store) {
    const auto t = take(name);
    if (!t) return;
    const auto v = parse(path_ + name, *t);
    if (v) {
      store(*v);
    } else {
      say(v.error().message);
    }
  }
  void wrong(const char* name, const std::string& value, const std::string& allowed) {
    say(path_ + name + ": '" + value + "' is not " + allowed);
  }
  void say(std::string sentence) {
    if (mistake_.empty()) mistake_ = std::move(sentence);
  }

  const toml::table& table_;
  std::string path_;
  std::string& mistake_;
  std::set<std::string> asked_;
};

void read_network(Fields f, NetworkSpec& n) {
  f.rate("rate", n.rate);
  f.duration("delay", n.delay);
  f.size("queue", n.queue);
  f.probability("loss", n.impair.loss);
  f.probability("duplicate", n.impair.duplicate);
  f.probability("corrupt", n.impair.corrupt);
  f.probability("mark", n.impair.mark);
  f.probability("reorder", n.impair.reorder);
  f.duration("reorder_by", n.impair.reorder_by);
  f.duration("jitter", n.impair.jitter);
  f.finish();
}

void read_transport(Fields f, TransportSpec& t) {
  std::vector<std::pair<const char*, std::uint8_t>> rows;
  for (const Controller* c : controllers())
    rows.emplace_back(c->name, static_cast<std::uint8_t>(rows.size()));
  f.choice("controller", t.controller, rows);
  f.choice("mode", t.mode,
           std::array{std::pair{"roce", wire::Mode::kRoce}, std::pair{"irn", wire::Mode::kIrn},
                      std::pair{"srnic", wire::Mode::kSrnic}});
  f.integer("mtu", t.mtu, 256, 4096);
  f.integer("bdp_cap", t.bdp_cap, 1, 8192);
  f.integer("roce_window", t.roce_window, 0, 1U << 22U);
  f.duration("rto_low", t.rto_low);
  f.duration("rto_high", t.rto_high);
  f.integer("rto_low_packets", t.rto_low_packets, 0, 8192);
  f.integer("loss_blocks", t.loss_blocks, 0, 65534);
  f.integer("timeout", t.timeout, 0, 31);
  f.integer("retry_count", t.retry_count, 0, 7);
  f.integer("rnr_retry", t.rnr_retry, 0, 7);
  f.finish();
}

void read_flow(Fields f, FlowSpec& s) {
  f.integer("from", s.from, 0, 65535);
  f.integer("to", s.to, 0, 65535);
  f.choice("op", s.op, kOps);
  f.size("size", s.size);
  f.integer("count", s.count, 1, 1'000'000'000);
  f.integer("depth", s.depth, 1, 8192);
  f.integer("qps", s.qps, 1, 65535);
  f.duration("start", s.start);
  f.finish();
}

// "network.loss=1%" -> the value at that place; "flow.size=…" at every flow.
std::string apply(toml::table& root, const std::string& change) {
  const std::size_t equals = change.find('=');
  if (equals == std::string::npos || equals == 0)
    return "--set '" + change + "' is not NAME=VALUE, such as network.loss=1%";
  const std::string name = change.substr(0, equals);
  const std::string value = change.substr(equals + 1);
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) {
    root.insert_or_assign(name, value);
    return {};
  }
  const std::string table = name.substr(0, dot);
  const std::string key = name.substr(dot + 1);
  if (toml::array* list = root[table].as_array()) {
    for (toml::node& each : *list) {
      if (toml::table* t = each.as_table()) t->insert_or_assign(key, value);
    }
    return {};
  }
  if (!root.contains(table)) root.insert(table, toml::table{});
  toml::table* t = root[table].as_table();
  if (t == nullptr) return "--set '" + change + "': '" + table + "' is not a table of the scenario";
  t->insert_or_assign(key, value);
  return {};
}

// What single values cannot show.
std::string contradiction(const Scenario& s) {
  if (const auto ok = s.network.impair.validate(); !ok) return "network: " + ok.error().message;
  if (s.transport.mtu % 4 != 0)
    return "transport.mtu: " + std::to_string(s.transport.mtu) + " is not a multiple of 4";
  if (s.transport.rto_low.ps <= 0 || s.transport.rto_high < s.transport.rto_low)
    return "transport.rto_low must be positive and no longer than rto_high";
  if (s.limit.ps <= 0) return "limit must be positive";
  if (s.flows.empty()) return "a scenario needs at least one [[flow]]";
  std::uint64_t queue_pairs = 0;
  for (std::size_t i = 0; i < s.flows.size(); ++i) {
    const FlowSpec& f = s.flows[i];
    const std::string where = "flow " + std::to_string(i) + ": ";
    if (f.from >= s.hosts || f.to >= s.hosts)
      return where + "hosts are numbered 0 to " + std::to_string(s.hosts - 1);
    if (f.from == f.to) return where + "from and to are the same host";
    if (f.size.n > (1ULL << 31U)) return where + "size is more than a message's 2 GiB";
    const bool atomic = f.op == WrOpcode::kCompareSwap || f.op == WrOpcode::kFetchAdd;
    if (atomic && f.size.n != 8) return where + "an atomic has size 8";
    queue_pairs += f.qps;
  }
  if (queue_pairs > 60'000) return "more than 60000 queue pairs";
  return {};
}

}  // namespace

Result<Scenario> parse_scenario(const std::string& text, const std::string& name,
                                std::span<const std::string> changes) {
  toml::table root;
  try {
    root = toml::parse(text, name);
  } catch (const toml::parse_error& e) {
    return fail(name + ", line " + std::to_string(e.source().begin.line) + ": " +
                std::string(e.description()));
  }
  for (const std::string& c : changes) {
    if (std::string wrong = apply(root, c); !wrong.empty()) return fail(std::move(wrong));
  }
  std::string mistake;
  Scenario s;
  Fields f(root, "", mistake);
  f.integer("seed", s.seed, 0, INT64_MAX);
  f.integer("hosts", s.hosts, 2, 65535);
  f.duration("limit", s.limit);
  f.flag("check", s.check);
  for (const char* t : {"network", "transport", "flow"}) f.known(t);
  f.finish();
  const auto table = [&](const char* key, auto read, auto& out) {
    const toml::node* node = root.get(key);
    if (node == nullptr) return;
    if (const toml::table* t = node->as_table()) {
      read(Fields(*t, std::string(key) + ".", mistake), out);
    } else if (mistake.empty()) {
      mistake = std::string(key) + ": write a table, [" + key + "]";
    }
  };
  table("network", read_network, s.network);
  table("transport", read_transport, s.transport);
  if (const toml::node* node = root.get("flow")) {
    const toml::array* list = node->as_array();
    if (list == nullptr && mistake.empty()) mistake = "flow: write a list of tables, [[flow]]";
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const toml::table* t = (*list)[i].as_table();
      if (t == nullptr) {
        if (mistake.empty()) mistake = "flow: write a list of tables, [[flow]]";
        break;
      }
      read_flow(Fields(*t, "flow.", mistake), s.flows.emplace_back());
    }
  }
  if (mistake.empty()) mistake = contradiction(s);
  if (!mistake.empty()) return fail(name + ": " + mistake);
  return s;
}

const char* op_name(WrOpcode op) {
  for (const auto& [word, value] : kOps) {
    if (value == op) return word;
  }
  return "?";
}

record::Record to_record(const Scenario& s) {
  record::Record r;
  r.set("seed", s.seed)
      .set("hosts", std::uint64_t{s.hosts})
      .set("limit_ps", s.limit.ps)
      .set("check", s.check);
  const impair::ImpairConfig& i = s.network.impair;
  record::Record n;
  n.set("rate_bps", s.network.rate.bps)
      .set("delay_ps", s.network.delay.ps)
      .set("queue_bytes", s.network.queue.n);
  n.set("loss_ppm", std::uint64_t{i.loss}).set("duplicate_ppm", std::uint64_t{i.duplicate});
  n.set("corrupt_ppm", std::uint64_t{i.corrupt}).set("reorder_ppm", std::uint64_t{i.reorder});
  n.set("mark_ppm", std::uint64_t{i.mark});
  n.set("reorder_by_ps", i.reorder_by.ps).set("jitter_ps", i.jitter.ps);
  r.set("network", std::move(n));
  const TransportSpec& t = s.transport;
  record::Record tr;
  tr.set("mode", std::string(wire::mode_name(t.mode))).set("mtu", std::uint64_t{t.mtu});
  tr.set("controller", controllers()[t.controller]->name);
  tr.set("bdp_cap", std::uint64_t{t.bdp_cap}).set("roce_window", std::uint64_t{t.roce_window});
  tr.set("rto_low_ps", t.rto_low.ps).set("rto_high_ps", t.rto_high.ps);
  tr.set("rto_low_packets", std::uint64_t{t.rto_low_packets})
      .set("loss_blocks", std::uint64_t{t.loss_blocks});
  tr.set("timeout", std::uint64_t{t.timeout}).set("retry_count", std::uint64_t{t.retry_count});
  tr.set("rnr_retry", std::uint64_t{t.rnr_retry});
  r.set("transport", std::move(tr));
  for (const FlowSpec& f : s.flows) {
    record::Record one;
    one.set("from", std::uint64_t{f.from}).set("to", std::uint64_t{f.to}).set("op", op_name(f.op));
    one.set("size", f.size.n).set("count", f.count).set("depth", std::uint64_t{f.depth});
    one.set("qps", std::uint64_t{f.qps}).set("start_ps", f.start.ps);
    r.append("flows", std::move(one));
  }
  return r;
}

}  // namespace weft::sim
