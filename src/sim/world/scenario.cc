#include "sim/world/scenario.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/base/parse.h"
#include "core/transport/cc/controller.h"
#include "core/transport/loss/scheme.h"
#include "sim/fabric/frame.h"

namespace weft::sim {
namespace {

// Words and what they mean: the parser, the record and `weft sim --list` read the same rows.
template <class T>
struct Row {
  const char* word;
  T value;
  const char* text;
};
template <class T>
Row(const char*, T, const char*) -> Row<T>;
constexpr std::array kOps{Row{"write", WrOpcode::kWrite, "RDMA WRITE"},
                          Row{"write_imm", WrOpcode::kWriteImm, "RDMA WRITE with immediate"},
                          Row{"send", WrOpcode::kSend, "SEND into a posted receive"},
                          Row{"send_imm", WrOpcode::kSendImm, "SEND with immediate"},
                          Row{"read", WrOpcode::kRead, "RDMA READ"},
                          Row{"compare_swap", WrOpcode::kCompareSwap, "atomic compare and swap"},
                          Row{"fetch_add", WrOpcode::kFetchAdd, "atomic fetch and add"}};
constexpr std::array kRoutings{Row{"ecmp", Routing::kEcmp, "one way per flow, by hash"},
                               Row{"spray", Routing::kSpray, "a random way for every packet"},
                               Row{"fixed", Routing::kFixed, "one way per destination"}};
constexpr std::array kSwitchKinds{
    Row{"output-queued", SwitchKind::kOutputQueued, "shared buffer, dynamic thresholds"},
    Row{"input-queued", SwitchKind::kInputQueued, "a buffer per port, virtual output queues, round robin"}};
constexpr std::array kEcnKinds{
    Row{"none", EcnConfig::Kind::kNone, "no packet is marked"},
    Row{"step", EcnConfig::Kind::kStep, "every packet that joins a queue longer than ecn_low"},
    Row{"red", EcnConfig::Kind::kRed, "with a probability that rises from ecn_low to ecn_high"}};
constexpr std::array kModeWords{"roce", "irn", "srnic"};

// Those that have a loss-recovery scheme.
std::vector<Row<wire::Mode>> modes() {
  std::vector<Row<wire::Mode>> rows;
  for (const LossScheme* scheme : loss_schemes())
    rows.push_back({kModeWords[static_cast<std::size_t>(scheme->mode)], scheme->mode, scheme->text});
  return rows;
}

template <class Table, class T>
const char* word_for(const Table& table, T value) {
  for (const auto& row : table) {
    if (row.value == value) return row.word;
  }
  return "?";
}

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
  // "2" or "1/8", in 64ths.
  void ratio_64(const char* name, std::uint32_t& out) {
    const auto t = take(name);
    if (!t) return;
    const std::size_t slash = t->find('/');
    const auto above = parse_integer(path_ + name, t->substr(0, slash), 1, 1024);
    const auto below =
        parse_integer(path_ + name, slash == std::string::npos ? "1" : t->substr(slash + 1), 1, 64);
    if (!above || !below || *above * 64 % *below != 0) {
      wrong(name, *t, "a number such as 2 or a fraction such as 1/8, in steps of 1/64");
    } else {
      out = static_cast<std::uint32_t>(*above * 64 / *below);
    }
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
    for (const auto& row : table) {
      if (*t == row.word) {
        out = row.value;
        return;
      }
      allowed += (allowed.empty() ? "" : ", ") + std::string(row.word);
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

void read_network(Fields f, NetworkSpec& n, TopologySpec& topology) {
  f.rate("rate", topology.rate);
  f.duration("delay", topology.delay);
  f.size("queue", n.switches.queue);
  f.probability("loss", n.impair.loss);
  f.probability("duplicate", n.impair.duplicate);
  f.probability("corrupt", n.impair.corrupt);
  f.probability("mark", n.impair.mark);
  f.probability("reorder", n.impair.reorder);
  f.duration("reorder_by", n.impair.reorder_by);
  f.duration("jitter", n.impair.jitter);
  f.integer("data_class", n.data_class, 0, kClasses - 1);
  f.integer("control_class", n.control_class, 0, kClasses - 1);
  f.finish();
}

void read_topology(Fields f, NetworkSpec& n, TopologySpec& t) {
  f.text("kind", t.kind);
  f.integer("k", t.k, 2, 64);
  f.rate("core_rate", t.core_rate);
  f.text("file", t.file);
  f.choice("routing", n.routing, kRoutings);
  f.finish();
}

void read_switch(Fields f, SwitchConfig& s) {
  f.choice("kind", s.kind, kSwitchKinds);
  f.size("buffer", s.buffer);
  f.size("queue", s.queue);
  f.ratio_64("alpha", s.alpha_64);
  f.flag("pfc", s.pfc);
  f.size("xoff", s.xoff);
  f.size("xon", s.xon);
  f.choice("ecn", s.ecn.kind, kEcnKinds);
  Bytes low{s.ecn.low};
  Bytes high{s.ecn.high};
  f.size("ecn_low", low);
  f.size("ecn_high", high);
  s.ecn.low = low.n;
  s.ecn.high = high.n;
  f.probability("ecn_probability", s.ecn.probability);
  f.finish();
}

void read_transport(Fields f, TransportSpec& t) {
  std::vector<Row<std::uint8_t>> rows;
  for (const Controller* c : controllers())
    rows.push_back({c->name, static_cast<std::uint8_t>(rows.size()), c->text});
  f.choice("controller", t.controller, rows);
  f.choice("mode", t.mode, modes());
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
  const SwitchConfig& sw = s.network.switches;
  const EcnConfig& ecn = sw.ecn;
  if (ecn.kind == EcnConfig::Kind::kRed && ecn.high <= ecn.low)
    return "switch.ecn_high must be above ecn_low";
  if (sw.xon.n != 0 && sw.xoff.n != 0 && sw.xon > sw.xoff) return "switch.xon must not be above xoff";
  if ((sw.xoff.n != 0 || sw.xon.n != 0) && !sw.pfc)
    return "switch.xoff and xon mean nothing without pfc = true";
  if (sw.pfc && sw.queue.n != 0)
    return "network.queue bounds queues, which pfc = true is to keep from dropping";
  if (sw.kind == SwitchKind::kInputQueued && s.graph.links.size() > 8U * s.graph.switches() * 128U)
    return "switch.kind: an input-queued switch of so many ports has too many queues";
  if (s.transport.mtu % 4 != 0)
    return "transport.mtu: " + std::to_string(s.transport.mtu) + " is not a multiple of 4";
  if (s.transport.rto_low.ps <= 0 || s.transport.rto_high < s.transport.rto_low)
    return "transport.rto_low must be positive and no longer than rto_high";
  if (s.limit.ps <= 0) return "limit must be positive";
  if (s.flows.empty()) return "a scenario needs at least one [[flow]]";
  std::uint64_t queue_pairs = 0;
  const std::uint32_t hosts = s.graph.hosts;
  for (std::size_t i = 0; i < s.flows.size(); ++i) {
    const FlowSpec& f = s.flows[i];
    const std::string where = "flow " + std::to_string(i) + ": ";
    if (f.from >= hosts || f.to >= hosts)
      return where + "hosts are numbered 0 to " + std::to_string(hosts - 1);
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
  f.integer("hosts", s.topology.hosts, 2, 65535);
  f.duration("limit", s.limit);
  f.flag("check", s.check);
  for (const char* t : {"topology", "network", "switch", "transport", "flow"}) f.known(t);
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
  table(
      "topology", [&](Fields g, NetworkSpec& n) { read_topology(g, n, s.topology); }, s.network);
  table(
      "network", [&](Fields g, NetworkSpec& n) { read_network(g, n, s.topology); }, s.network);
  table("switch", read_switch, s.network.switches);
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
  if (mistake.empty()) {
    if (const auto ok = resolve(s); !ok) mistake = ok.error().message;
  }
  if (!mistake.empty()) return fail(name + ": " + mistake);
  return s;
}

Result<void> resolve(Scenario& s) {
  auto graph = build_topology(s.topology);
  if (!graph) return tl::unexpected(graph.error());
  s.graph = std::move(*graph);
  SwitchConfig& sw = s.network.switches;
  TransportSpec& t = s.transport;
  wire::Header data;
  data.mode = t.mode;
  data.opcode = wire::kWriteMiddle;
  wire::Header ack;
  ack.mode = t.mode;
  ack.opcode = wire::kAcknowledge;
  ack.syndrome = wire::kSyndromeAck;
  const std::uint32_t frame = frame_bytes(data, t.mtu, Framing::kWire);
  sw.largest_frame = frame + 32;  // the first packet of a message may carry more headers
  Reach reach = reach_of(s.graph, sw);
  // One switch at each end of a link: what PFC needs, twice the pipe for each port (IRN §4.1).
  if (sw.pfc && sw.buffer.n == 0) {
    const std::uint64_t each =
        sw.xoff.n != 0 ? sw.xoff.n + reach.headroom.n : std::max(2 * reach.bdp.n, 2 * reach.headroom.n);
    sw.buffer.n = sw.kind == SwitchKind::kInputQueued ? each : each * reach.most_ports;
    reach = reach_of(s.graph, sw);
  }
  if (sw.pfc && sw.kind == SwitchKind::kInputQueued && sw.buffer.n <= sw.xoff.n + reach.headroom.n)
    return fail("switch.buffer: " + std::to_string(sw.buffer.n) +
                " bytes leave no room above the headroom of " + std::to_string(reach.headroom.n) +
                " bytes that pfc needs");
  if (sw.pfc && sw.kind == SwitchKind::kOutputQueued && sw.buffer.n <= reach.headroom.n * reach.most_ports)
    return fail("switch.buffer: " + std::to_string(sw.buffer.n) +
                " bytes leave no room above the headroom of " + std::to_string(reach.headroom.n) +
                " bytes that pfc needs for each of " + std::to_string(reach.most_ports) + " ports");
  s.derived.reach = reach;
  const Rate rate = reach.rate;
  s.derived.base_rtt =
      reach.one_way * 2 + (rate.time_for({frame}) + rate.time_for({frame_bytes(ack, 0, Framing::kWire)})) *
                              static_cast<std::int64_t>(reach.hops);
  if (t.bdp_cap == 0) {
    // Two more: one being decided on, one whose ACK is.
    const std::int64_t each = rate.time_for({frame}).ps;
    const std::int64_t cap = each == 0 ? 110 : (s.derived.base_rtt.ps + each - 1) / each + 2;
    t.bdp_cap = static_cast<std::uint32_t>(std::clamp<std::int64_t>(cap, 4, 8192));
  }
  if (t.rto_high.ps == 0) {
    t.rto_high = reach.fullest_switch.n == 0 ? microseconds(320)
                                             : s.derived.base_rtt + rate.time_for(reach.fullest_switch);
    t.rto_high = std::max(t.rto_high, t.rto_low);
  }
  if (std::string wrong = contradiction(s); !wrong.empty()) return fail(std::move(wrong));
  return {};
}

std::vector<Choice> choices() {
  std::vector<Choice> all;
  const auto add = [&](const char* setting, const auto& table) {
    Choice& c = all.emplace_back(Choice{setting, {}});
    for (const auto& row : table) c.words.push_back({row.word, row.text});
  };
  add("topology.routing", kRoutings);
  add("switch.kind", kSwitchKinds);
  add("switch.ecn", kEcnKinds);
  add("transport.mode", modes());
  add("flow.op", kOps);
  return all;
}

const char* op_name(WrOpcode op) { return word_for(kOps, op); }

record::Record to_record(const Scenario& s) {
  record::Record r;
  r.set("seed", s.seed)
      .set("hosts", std::uint64_t{s.graph.hosts})
      .set("limit_ps", s.limit.ps)
      .set("check", s.check);
  const impair::ImpairConfig& i = s.network.impair;
  record::Record topology;
  topology.set("kind", s.topology.kind).set("routing", word_for(kRoutings, s.network.routing));
  topology.set("switches", std::uint64_t{s.graph.switches()})
      .set("links", std::uint64_t{s.graph.links.size()});
  topology.set("longest_way_hops", std::uint64_t{s.derived.reach.hops});
  topology.set("base_rtt_ps", s.derived.base_rtt.ps).set("bdp_bytes", s.derived.reach.bdp.n);
  topology.set("core_rate_bps", s.topology.core_rate.bps);
  r.set("topology", std::move(topology));
  const SwitchConfig& w = s.network.switches;
  record::Record sw;
  sw.set("kind", word_for(kSwitchKinds, w.kind))
      .set("buffer_bytes", w.buffer.n)
      .set("queue_bytes", w.queue.n);
  sw.set("alpha_64ths", std::uint64_t{w.alpha_64}).set("pfc", w.pfc).set("xoff_bytes", w.xoff.n);
  sw.set("xon_bytes", w.xon.n).set("headroom_bytes", s.derived.reach.headroom.n);
  sw.set("ecn", word_for(kEcnKinds, w.ecn.kind)).set("ecn_low_bytes", w.ecn.low);
  sw.set("ecn_high_bytes", w.ecn.high).set("ecn_probability_ppm", std::uint64_t{w.ecn.probability});
  r.set("switch", std::move(sw));
  record::Record n;
  n.set("rate_bps", s.topology.rate.bps).set("delay_ps", s.topology.delay.ps);
  n.set("data_class", std::uint64_t{s.network.data_class});
  n.set("control_class", std::uint64_t{s.network.control_class});
  n.set("loss_ppm", std::uint64_t{i.loss}).set("duplicate_ppm", std::uint64_t{i.duplicate});
  n.set("corrupt_ppm", std::uint64_t{i.corrupt}).set("reorder_ppm", std::uint64_t{i.reorder});
  n.set("mark_ppm", std::uint64_t{i.mark});
  n.set("reorder_by_ps", i.reorder_by.ps).set("jitter_ps", i.jitter.ps);
  r.set("network", std::move(n));
  const TransportSpec& t = s.transport;
  record::Record tr;
  tr.set("mode", kModeWords[static_cast<std::size_t>(t.mode)]).set("mtu", std::uint64_t{t.mtu});
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
