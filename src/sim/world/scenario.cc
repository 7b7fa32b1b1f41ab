// A scenario file becomes a Scenario: TOML in, or one sentence about what is wrong with it.
#include "sim/world/scenario.h"

#include <filesystem>
#include <set>
#include <sstream>
#include <utility>

#include "core/base/parse.h"
#include "record/input.h"
#include "sim/world/plain_text.h"
#include "sim/world/toml.h"
#include "sim/world/words.h"

namespace weft::sim {
namespace {

// One table of the file: hands out values by name, keeps the first mistake, and knows at the end which names
// were never asked for.
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
        [&](std::uint64_t v) { out = static_cast<T>(v); }, true);
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
  // "auto" leaves it to resolve().
  void size_or_auto(const char* name, Bytes& out, bool& automatic) {
    const toml::node* node = table_.get(name);
    automatic = node != nullptr && node->value_or(std::string_view()) == "auto";
    if (!automatic) return size(name, out);
    asked_.insert(name);
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
  // `whole`: where only a whole number may stand, one with a point is refused as that.
  std::optional<std::string> take(const char* name, bool whole = false) {
    asked_.insert(name);
    const toml::node* node = table_.get(name);
    if (node == nullptr) return std::nullopt;
    if (const auto* s = node->as_string()) return s->get();
    if (const auto* i = node->as_integer()) return std::to_string(i->get());
    if (const auto* b = node->as_boolean()) return b->get() ? "true" : "false";
    if (const auto* d = node->as_floating_point(); d != nullptr && whole) {
      std::ostringstream number;
      number << d->get();
      return number.str();
    }
    say(path_ + name + ": a quantity is written as a string, such as \"1%\" or \"64KiB\"");
    return std::nullopt;
  }
  template <class Parse, class Store>
  void parsed(const char* name, Parse parse, Store store, bool whole = false) {
    const auto t = take(name, whole);
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
  f.duration("reconverge", n.reconverge);
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

void read_switch(Fields f, NetworkSpec& n) {
  SwitchConfig& s = n.switches;
  f.choice("kind", s.kind, kSwitchKinds);
  f.size_or_auto("buffer", s.buffer, n.buffer_auto);
  f.size("queue", s.queue);
  f.ratio_64("alpha", s.alpha_64);
  f.flag("pfc", s.pfc);
  f.flag("credits", s.credits);
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
  TransportChoice mode{t.mode, t.tcp};
  f.choice("mode", mode, modes());
  t.mode = mode.mode;
  t.tcp = mode.tcp;
  f.choice("recovery", t.recovery, variants());
  f.choice("controller", t.controller, controller_words());
  f.integer("nack_threshold", t.nack_threshold, 1, 255);
  f.integer("mtu", t.mtu, 256, 4096);
  f.integer("bdp_cap", t.bdp_cap, 0, 8192);
  f.integer("roce_window", t.roce_window, 0, 1U << 22U);
  f.duration("rto_low", t.rto_low);
  f.duration("rto_high", t.rto_high);
  f.integer("rto_low_packets", t.rto_low_packets, 0, 8192);
  f.choice("rto", t.rto, kRtos);
  f.integer("loss_blocks", t.loss_blocks, 0, 65534);
  f.integer("timeout", t.timeout, 0, 31);
  f.duration("roce_timeout", t.roce_timeout);
  f.duration("tail_probe", t.tail_probe);
  f.flag("timeouts", t.timeouts);
  f.integer("retry_count", t.retry_count, 0, 7);
  f.flag("give_up", t.give_up);
  f.flag("rto_backoff", t.rto_backoff);
  f.integer("rnr_retry", t.rnr_retry, 0, 7);
  f.finish();
}

void read_nic(Fields f, NicSpec& n) {
  f.duration("retransmit_delay", n.retransmit_delay);
  f.integer("extra_header", n.extra_header, 0, 256);
  f.integer("ack_bytes", n.ack_bytes, 0, 256);
  f.finish();
}

void read_measure(Fields f, MeasureSpec& m) {
  f.duration("from", m.from);
  f.duration("until", m.until);
  f.duration("cut_off", m.cut_off);
  f.finish();
}

void read_tcp(Fields f, tcp::Config& t) {
  f.choice("flavour", t.flavour, flavours());
  f.integer("initial_window", t.initial_window, 1, 65535);
  f.integer("duplicate_acks", t.duplicate_acks, 1, 255);
  f.size("receive_window", t.receive_window);
  f.duration("delayed_ack", t.delayed_ack);
  f.duration("rto_min", t.rto_min);
  f.duration("rto_initial", t.rto_initial);
  f.duration("rto_max", t.rto_max);
  f.finish();
}

void read_flow(Fields f, FlowSpec& s) {
  f.integer("from", s.from, 0, 65535);
  f.integer("to", s.to, 0, 65535);
  f.choice("op", s.op, kOps);
  f.size("size", s.size);
  f.integer("count", s.count, 1, 100'000'000);
  f.integer("depth", s.depth, 1, 8192);
  f.integer("qps", s.qps, 1, 65535);
  f.duration("start", s.start);
  f.finish();
}

void read_traffic(Fields f, TrafficSpec& s) {
  f.text("pattern", s.pattern);
  f.text("sizes", s.sizes);
  f.choice("verb", s.verb, kVerbs);
  f.probability("load", s.load);
  f.integer("flows", s.flows, 0, 10'000'000);
  f.duration("duration", s.duration);
  f.duration("start", s.start);
  f.integer("fan_in", s.fan_in, 1, 65535);
  f.integer("connections", s.connections, 1, 1024);
  f.integer("target", s.target, 0, 65534);
  f.size("total", s.total);
  f.integer("requests", s.requests, 1, 1'000'000);
  f.duration("every", s.every);
  f.text("trace", s.trace_text);
  f.finish();
}

void read_failure(Fields f, FailureSpec& s) {
  f.text("link", s.link);
  f.integer("links", s.links, 1, 65535);
  f.duration("at", s.at);
  f.duration("repair", s.repair);
  f.finish();
}

// Files that a scenario names lie beside it.
Result<std::string> content_of(const std::string& setting, const std::string& file,
                               const std::string& scenario) {
  const std::size_t slash = scenario.rfind('/');
  const bool beside = !file.starts_with('/') && slash != std::string::npos;
  const std::filesystem::path path(beside ? scenario.substr(0, slash + 1) + file : file);
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return fail(setting + ": '" + file + "' cannot be read");
  auto text = record::read_file(path);
  if (!text) return fail(setting + ": " + text.error().message);
  return text;
}

Result<void> read_files(Scenario& s, const std::string& scenario) {
  const auto replace = [&](const std::string& setting, std::string& file) -> Result<void> {
    auto content = content_of(setting, file, scenario);
    if (!content) return tl::unexpected(content.error());
    file = std::move(*content);
    return {};
  };
  if (s.topology.kind == "file") {
    if (s.topology.file.empty()) return fail("topology.file: name the file that lists nodes and links");
    if (const auto ok = replace("topology.file", s.topology.file); !ok) return ok;
  } else if (!s.topology.file.empty()) {
    return fail("topology.file: means nothing unless topology.kind is file");
  }
  for (TrafficSpec& t : s.traffic) {
    if (t.pattern == "trace" && t.trace_text.empty())
      return fail("traffic.trace: name the file that lists flows");
    if (t.pattern != "trace" && !t.trace_text.empty())
      return fail("traffic.trace: means nothing unless traffic.pattern is trace");
    if (!t.trace_text.empty()) {
      if (const auto ok = replace("traffic.trace", t.trace_text); !ok) return ok;
    }
    if (sizes_of(t)) continue;
    t.sizes_text = t.sizes;
    if (const auto ok = replace("traffic.sizes", t.sizes_text); !ok)
      return fail(
          "traffic.sizes: '" + t.sizes +
          "' is neither a size from 1 byte to 2 GiB, nor a distribution of weft sim --list, nor a file");
  }
  return {};
}

// Values may contain line ends. A message about a value is one line.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = '?';
  }
  return text;
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

}  // namespace

Result<Scenario> parse_scenario(const std::string& text, const std::string& name,
                                std::span<const std::string> changes, const ScenarioLimits& limits) {
  if (const std::size_t line = line_beyond_ascii(text); line != 0)
    return fail(name + ", line " + std::to_string(line) +
                ": characters beyond ASCII belong in strings and comments");
  toml::table root;
  try {
    root = toml::parse(text, name);
  } catch (const toml::parse_error& e) {
    return fail(one_line(name + ", line " + std::to_string(e.source().begin.line) + ": " +
                         std::string(e.description())));
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
  f.flag("bytes", s.bytes);
  for (const char* t :
       {"measure", "topology", "network", "switch", "transport", "nic", "tcp", "flow", "traffic", "failure"})
    f.known(t);
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
  table("nic", read_nic, s.nic);
  table("measure", read_measure, s.measure);
  table("switch", read_switch, s.network);
  table("transport", read_transport, s.transport);
  table("tcp", read_tcp, s.tcp);
  const auto tables = [&](const char* key, auto read, auto& out) {
    const toml::node* node = root.get(key);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const toml::table* t = (*list)[i].as_table();
      if (t == nullptr) list = nullptr;
      if (t != nullptr) read(Fields(*t, std::string(key) + ".", mistake), out.emplace_back());
    }
    if (list == nullptr && mistake.empty())
      mistake = std::string(key) + ": write a list of tables, [[" + key + "]]";
  };
  tables("flow", read_flow, s.flows);
  tables("traffic", read_traffic, s.traffic);
  tables("failure", read_failure, s.failures);
  if (mistake.empty()) {
    if (const auto ok = read_files(s, name); !ok) mistake = ok.error().message;
  }
  if (mistake.empty()) {
    if (const auto ok = resolve(s, limits); !ok) mistake = ok.error().message;
  }
  if (!mistake.empty()) return fail(one_line(name + ": " + mistake));
  return s;
}

}  // namespace weft::sim
