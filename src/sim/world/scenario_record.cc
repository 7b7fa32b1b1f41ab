// A scenario for programs to read: every setting as it was decided.
#include "channel/params.h"
#include "sim/world/words.h"

namespace weft::sim {

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
  add("transport.recovery", variants());
  add("transport.rto (of irn and srnic)", kRtos);
  add("transport.controller", controller_words());
  add("tcp.flavour", flavours());
  add("flow.op", kOps);
  add("traffic.verb", kVerbs);
  add("messages.pattern", kMessagePatterns);
  add("messages.over", kOver);
  add("accelerator.acknowledge", kAcknowledges);
  return all;
}

const char* op_name(WrOpcode op) { return word_for(kOps, op); }
const char* message_pattern_name(MessagePattern p) { return word_for(kMessagePatterns, p); }

record::Record to_record(const Scenario& s) {
  record::Record r;
  r.set("seed", s.seed)
      .set("hosts", std::uint64_t{s.graph.hosts})
      .set("limit_ps", s.limit.ps)
      .set("check", s.check)
      .set("bytes", s.bytes);
  r.set("measure_from_ps", s.measure.from.ps).set("measure_until_ps", s.measure.until.ps);
  r.set("measure_cut_off_ps", s.measure.cut_off.ps);
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
  sw.set("alpha_64ths", std::uint64_t{w.alpha_64})
      .set("pfc", w.pfc)
      .set("credits", w.credits)
      .set("xoff_bytes", w.xoff.n);
  sw.set("xon_bytes", w.xon.n).set("headroom_bytes", s.derived.reach.headroom.n);
  sw.set("ecn", word_for(kEcnKinds, w.ecn.kind)).set("ecn_low_bytes", w.ecn.low);
  sw.set("ecn_high_bytes", w.ecn.high).set("ecn_probability_ppm", std::uint64_t{w.ecn.probability});
  r.set("switch", std::move(sw));
  record::Record n;
  n.set("rate_bps", s.topology.rate.bps).set("delay_ps", s.topology.delay.ps);
  n.set("data_class", std::uint64_t{s.network.data_class});
  n.set("control_class", std::uint64_t{s.network.control_class});
  if (!s.failures.empty()) n.set("reconverge_ps", s.network.reconverge.ps);
  n.set("loss_ppm", std::uint64_t{i.loss}).set("duplicate_ppm", std::uint64_t{i.duplicate});
  n.set("corrupt_ppm", std::uint64_t{i.corrupt}).set("reorder_ppm", std::uint64_t{i.reorder});
  n.set("mark_ppm", std::uint64_t{i.mark});
  n.set("reorder_by_ps", i.reorder_by.ps).set("jitter_ps", i.jitter.ps);
  r.set("network", std::move(n));
  const TransportSpec& t = s.transport;
  record::Record tr;
  tr.set("mode", word_for(modes(), TransportChoice{t.mode, t.tcp})).set("mtu", std::uint64_t{t.mtu});
  tr.set("recovery", word_for(variants(), t.recovery)).set("nack_threshold", std::uint64_t{t.nack_threshold});
  tr.set("controller", word_for(controller_words(), t.controller));
  tr.set("bdp_cap", std::uint64_t{t.bdp_cap}).set("roce_window", std::uint64_t{t.roce_window});
  tr.set("rto", word_for(kRtos, t.rto));
  tr.set("rto_low_ps", t.rto_low.ps).set("rto_high_ps", t.rto_high.ps);
  tr.set("rto_low_packets", std::uint64_t{t.rto_low_packets})
      .set("loss_blocks", std::uint64_t{t.loss_blocks});
  tr.set("timeouts", t.timeouts).set("roce_timeout_ps", t.roce_timeout.ps);
  tr.set("tail_probe_ps", t.tail_probe.ps);
  tr.set("timeout", std::uint64_t{t.timeout}).set("retry_count", std::uint64_t{t.retry_count});
  tr.set("give_up", t.give_up).set("rto_backoff", t.rto_backoff);
  tr.set("rnr_retry", std::uint64_t{t.rnr_retry});
  r.set("transport", std::move(tr));
  record::Record nic;
  nic.set("design", s.nic.design).set("set", s.nic.changes);
  nic.set("retransmit_delay_ps", s.nic.retransmit_delay.ps)
      .set("extra_header", std::uint64_t{s.nic.extra_header})
      .set("ack_bytes", std::uint64_t{s.nic.ack_bytes});
  r.set("nic", std::move(nic));
  if (t.tcp) {
    record::Record c;
    c.set("flavour", word_for(flavours(), s.tcp.flavour)).set("mss", std::uint64_t{s.tcp.mss});
    c.set("initial_window", std::uint64_t{s.tcp.initial_window});
    c.set("duplicate_acks", std::uint64_t{s.tcp.duplicate_acks});
    c.set("receive_window_bytes", s.tcp.receive_window.n).set("delayed_ack_ps", s.tcp.delayed_ack.ps);
    c.set("rto_min_ps", s.tcp.rto_min.ps).set("rto_initial_ps", s.tcp.rto_initial.ps);
    c.set("rto_max_ps", s.tcp.rto_max.ps);
    r.set("tcp", std::move(c));
  }
  for (const FlowSpec& f : s.flows) {
    record::Record one;
    one.set("from", std::uint64_t{f.from}).set("to", std::uint64_t{f.to}).set("op", op_name(f.op));
    one.set("size", f.size.n).set("count", f.count).set("depth", std::uint64_t{f.depth});
    one.set("qps", std::uint64_t{f.qps}).set("start_ps", f.start.ps);
    if (f.batch != 1) one.set("batch", std::uint64_t{f.batch});
    if (f.rotate) one.set("rotate", true);
    r.append("flows", std::move(one));
  }
  for (const LineSpec& l : s.lines) {
    record::Record one;
    one.set("link", l.link).set("rate_bps", l.rate.bps);
    if (l.distance) one.set("metres", l.distance->metres);
    one.set("loss_ppm", std::uint64_t{l.impair.loss}).set("duplicate_ppm", std::uint64_t{l.impair.duplicate});
    one.set("corrupt_ppm", std::uint64_t{l.impair.corrupt})
        .set("reorder_ppm", std::uint64_t{l.impair.reorder});
    one.set("reorder_by_ps", l.impair.reorder_by.ps).set("jitter_ps", l.impair.jitter.ps);
    r.append("lines", std::move(one));
  }
  for (std::size_t at_box = 0; at_box < s.derived.boxes.size(); ++at_box) {
    const AcceleratorSpec& a = s.accelerators[s.derived.accelerator_of[at_box]];
    const wan::BoxConfig& b = s.derived.boxes[at_box];
    const BoxPlace& at = s.graph.boxes[at_box];
    const Link& site = s.graph.links[at.site];
    const Link& line = s.graph.links[at.line];
    const std::uint32_t node = s.graph.box_node(static_cast<std::uint32_t>(at_box));
    record::Record one;
    one.set("site", s.graph.name(site.a == node ? site.b : site.a));
    one.set("line", s.graph.name(line.a == node ? line.b : line.a));
    one.set("acknowledge", word_for(kAcknowledges, a.acknowledge)).set("store_bytes", b.store.n);
    one.set("frames", std::uint64_t{b.frames}).set("halves", std::uint64_t{b.halves});
    one.set("window", std::uint64_t{b.window})
        .set("frame_time_ps", a.frame_time.ps)
        .set("rate_bps", a.rate.bps);
    one.set("line_timeout_ps", b.line_timeout.ps).set("patience_ps", b.patience.ps);
    one.set("quiet_ps", b.quiet.ps).set("give_up_ps", b.give_up.ps);
    if (b.parity.there()) one.set("parity", a.parity);
    if (b.repair_answers) one.set("repair_answers", true);
    r.append("boxes", std::move(one));
  }
  for (const LinkChange& c : s.derived.link_changes) {
    const Link& l = s.graph.links[c.link];
    record::Record one;
    one.set("link", s.graph.name(l.a) + "-" + s.graph.name(l.b))
        .set("at_ps", (c.at - Time{}).ps)
        .set("up", c.up);
    r.append("link_changes", std::move(one));
  }
  for (const TrafficSpec& f : s.traffic) {
    record::Record one;
    one.set("pattern", f.pattern).set("sizes", f.sizes).set("verb", word_for(kVerbs, f.verb));
    if (f.pattern == "poisson") {
      one.set("load_ppm", std::uint64_t{f.load}).set("flows", f.flows).set("duration_ps", f.duration.ps);
    }
    if (f.pattern == "incast") {
      one.set("fan_in", std::uint64_t{f.fan_in})
          .set("connections", std::uint64_t{f.connections})
          .set("total", f.total.n)
          .set("requests", std::uint64_t{f.requests});
      one.set("every_ps", f.every.ps);
      if (f.target != UINT32_MAX) one.set("target", std::uint64_t{f.target});
    }
    one.set("start_ps", f.start.ps);
    r.append("traffic", std::move(one));
  }
  if (s.messages.empty()) return r;
  record::Record c;
  c.set("flow_control", s.channels.flow_control);
  for (const channel::Param& p : channel::params()) {
    if (!computed_param(p.name)) c.set(p.name, p.get(s.channels.config));
  }
  r.set("channels", std::move(c));
  for (const MessageSpec& m : s.messages) {
    record::Record one;
    one.set("pattern", word_for(kMessagePatterns, m.pattern)).set("over", word_for(kOver, m.plain));
    if (m.pattern == MessagePattern::kPingPong)
      one.set("from", std::uint64_t{m.from}).set("to", std::uint64_t{m.to});
    if (m.pattern == MessagePattern::kIncast)
      one.set("target", std::uint64_t{m.target}).set("fan_in", std::uint64_t{m.fan_in});
    one.set("connections", std::uint64_t{m.connections}).set("size", m.size.n);
    if (m.asks) one.set("answer", m.answer.n);
    one.set("count", std::uint64_t{m.count}).set("under_way", std::uint64_t{m.under_way});
    one.set("every_ps", m.every.ps).set("hold_ps", m.hold.ps).set("start_ps", m.start.ps);
    if (m.upgrade_at.ps != 0) {
      one.set("upgrade_at_ps", m.upgrade_at.ps).set("upgrade_part_ppm", std::uint64_t{m.upgrade_part});
      one.set("upgrade_over_ps", m.upgrade_over.ps);
    }
    r.append("messages", std::move(one));
  }
  return r;
}

}  // namespace weft::sim
