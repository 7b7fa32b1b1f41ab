// A scenario file becomes a Scenario: TOML in, or one sentence about what is wrong with it.
#include "sim/world/scenario.h"

#include <filesystem>
#include <utility>

#include "channel/params.h"
#include "core/base/parse.h"
#include "record/input.h"
#include "sim/world/fields.h"
#include "sim/world/nic_design.h"
#include "sim/world/toml_text.h"
#include "sim/world/words.h"

namespace weft::sim {
namespace {

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
  f.text("design", n.design);
  f.text("set", n.changes);
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
  f.integer("depth", s.depth, 1, 16384);
  f.integer("qps", s.qps, 1, 4'000'000);
  f.integer("batch", s.batch, 1, 16384);
  f.flag("rotate", s.rotate);
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

void read_line(Fields f, LineSpec& l) {
  f.text("link", l.link);
  f.distance("distance", l.distance);
  f.rate("rate", l.rate);
  f.probability("loss", l.impair.loss);
  f.probability("duplicate", l.impair.duplicate);
  f.probability("corrupt", l.impair.corrupt);
  f.probability("reorder", l.impair.reorder);
  f.duration("reorder_by", l.impair.reorder_by);
  f.duration("jitter", l.impair.jitter);
  f.finish();
}

void read_accelerator(Fields f, AcceleratorSpec& a) {
  f.text("link", a.link);
  f.text("near", a.near);
  f.text("far", a.far);
  f.choice("acknowledge", a.acknowledge, kAcknowledges);
  f.size("store", a.store);
  f.integer("frames", a.frames, 4, 1U << 22U);
  f.duration("frame_time", a.frame_time);
  f.rate("rate", a.rate);
  f.duration("quiet", a.quiet);
  f.duration("give_up", a.give_up);
  f.text("parity", a.parity);
  f.flag("repair_answers", a.repair_answers);
  f.finish();
}

void read_failure(Fields f, FailureSpec& s) {
  f.text("link", s.link);
  f.integer("links", s.links, 1, 65535);
  f.duration("at", s.at);
  f.duration("repair", s.repair);
  f.finish();
}

// Every parameter of a context, by the middleware's own table. `channels` and `calls` follow from the
// messages.
void read_channels(Fields f, ChannelsSpec& c, std::string& mistake) {
  c.given = true;
  f.flag("flow_control", c.flow_control);
  if (!c.flow_control && (f.has("fragment") || f.has("outstanding")) && mistake.empty())
    mistake = "channels.flow_control: without it there is no fragment and no bound on what is outstanding";
  for (const channel::Param& p : channel::params()) {
    if (computed_param(p.name)) continue;
    std::string text;
    f.text(p.name, text);
    if (text.empty() || !mistake.empty()) continue;
    if (const auto set = set_param(c.config, std::string(p.name) + "=" + text); !set)
      mistake = "channels." + set.error().message;
  }
  f.finish();
}

void read_messages(Fields f, MessageSpec& s) {
  const bool answered = f.has("answer");
  f.choice("pattern", s.pattern, kMessagePatterns);
  f.choice("over", s.plain, kOver);
  f.integer("from", s.from, 0, 65535);
  f.integer("to", s.to, 0, 65535);
  f.integer("target", s.target, 0, 65534);
  f.integer("fan_in", s.fan_in, 1, 65535);
  f.integer("connections", s.connections, 1, 65535);
  f.size("size", s.size);
  f.size("answer", s.answer);
  f.integer("count", s.count, 1, 100'000'000);
  f.integer("under_way", s.under_way, 0, 65535);
  f.duration("every", s.every);
  f.duration("hold", s.hold);
  f.duration("start", s.start);
  f.duration("upgrade_at", s.upgrade_at);
  f.probability("upgrade_part", s.upgrade_part);
  f.duration("upgrade_over", s.upgrade_over);
  f.finish();
  s.asks = answered || s.pattern != MessagePattern::kIncast;
  if (s.asks && !answered) s.answer = s.size;
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
  if (s.nic.design != "ideal") {
    const std::size_t slash = scenario.rfind('/');
    auto text = design_text(s.nic.design, slash == std::string::npos ? "" : scenario.substr(0, slash + 1));
    if (!text) return fail("nic.design: " + text.error().message);
    auto design = parse_design(*text, s.nic.design, s.nic.changes);
    if (!design) return fail("nic.design: " + design.error().message);
    s.nic.text = std::move(*text);
    s.nic.detailed = std::move(*design);
  } else if (!s.nic.changes.empty()) {
    return fail("nic.set: changes a design, and nic.design is ideal");
  }
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
  auto parsed = read_toml(text, name);
  if (!parsed) return tl::unexpected(parsed.error());
  toml::table& root = *parsed;
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
  for (const char* t : {"measure", "topology", "network", "switch", "transport", "nic", "tcp", "flow",
                        "traffic", "line", "accelerator", "failure", "channels", "messages"})
    f.known(t);
  f.finish();
  const auto table = [&](const char* key, auto read, auto& out) {
    read_part(root, key, mistake, [&](Fields g) { read(std::move(g), out); });
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
  table(
      "channels", [&](Fields g, ChannelsSpec& c) { read_channels(std::move(g), c, mistake); }, s.channels);
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
  tables("messages", read_messages, s.messages);
  tables("line", read_line, s.lines);
  tables("accelerator", read_accelerator, s.accelerators);
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
