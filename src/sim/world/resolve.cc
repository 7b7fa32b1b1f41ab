// Computes what a scenario leaves open from its topology, and refuses scenarios that contradict themselves.
#include <algorithm>
#include <numeric>

#include "check/facts.h"
#include "core/transport/loss/scheme.h"
#include "sim/fabric/frame.h"
#include "sim/nic/context/store.h"
#include "sim/nic/explain.h"
#include "sim/tcp/frame.h"
#include "sim/world/accelerators.h"
#include "sim/world/device_config.h"
#include "sim/world/failures.h"
#include "sim/world/scenario.h"

namespace weft::sim {
namespace {

// Checks that need more than one value.
std::string contradiction(const Scenario& s) {
  if (const auto ok = s.network.impair.validate(); !ok) return "network: " + ok.error().message;
  const SwitchConfig& sw = s.network.switches;
  const EcnConfig& ecn = sw.ecn;
  if (ecn.kind == EcnConfig::Kind::kRed && ecn.high <= ecn.low)
    return "switch.ecn_high must be above ecn_low";
  if (sw.xon.n != 0 && sw.xoff.n != 0 && sw.xon > sw.xoff) return "switch.xon must not be above xoff";
  if ((sw.xoff.n != 0 || sw.xon.n != 0) && !sw.pfc)
    return "switch.xoff and xon mean nothing without pfc = true";
  if (sw.credits && sw.pfc) return "switch.credits: there is pfc or credits, not both";
  if (sw.credits && sw.queue.n != 0)
    return "network.queue bounds queues, which credits = true are to keep from dropping";
  if (sw.pfc && sw.queue.n != 0)
    return "network.queue bounds queues, which pfc = true is to keep from dropping";
  if (sw.kind == SwitchKind::kInputQueued && s.graph.links.size() > 8U * s.graph.switches() * 128U)
    return "switch.kind: an input-queued switch of so many ports has too many queues";
  if (s.transport.mtu % 4 != 0)
    return "transport.mtu: " + std::to_string(s.transport.mtu) + " is not a multiple of 4";
  if (s.nic.detailed) {
    if (s.transport.tcp) return "nic.design: a TCP host has a NIC of its own; leave it ideal";
    if (s.nic.retransmit_delay.ps != 0)
      return "nic.retransmit_delay: a design has delays of its own; this one is the ideal NIC's";
  }
  if (s.transport.tail_probe.ps < 0) return "transport.tail_probe must not be negative";
  if (s.transport.rto_low.ps <= 0 || s.transport.rto_high < s.transport.rto_low)
    return "transport.rto_low must be positive and no longer than rto_high";
  if (s.transport.roce_timeout.ps != 0 && s.transport.mode != wire::Mode::kRoce)
    return "transport.roce_timeout: only mode roce has it";
  const LossScheme* recovery = s.transport.recovery;
  if (recovery != nullptr && s.transport.mode != recovery->mode)
    return "transport.recovery: " + std::string(recovery->name) + " is a variant of mode " +
           std::string(wire::mode_name(recovery->mode));
  if (s.transport.nack_threshold > 1 && (recovery != nullptr || s.transport.mode == wire::Mode::kRoce))
    return "transport.nack_threshold: only irn and srnic count NACKs, and none of their variants";
  if (s.transport.rto != Rto::kStatic && s.transport.mode == wire::Mode::kRoce)
    return "transport.rto: mode roce has the verbs timeout only, which is static";
  if (s.measure.until.ps != 0 && s.measure.until <= s.measure.from)
    return "measure.until must be after measure.from";
  if (!s.measure.all() && s.traffic.empty()) return "measure: means nothing without [[traffic]]";
  if (s.limit.ps <= 0) return "limit must be positive";
  if (s.measure.cut_off.ps != 0 && (s.measure.until.ps == 0 || s.limit <= s.measure.until))
    return "measure.cut_off: counts from measure.until, which must be set and lie before limit";
  if (s.flows.empty() && s.traffic.empty() && s.messages.empty())
    return "a scenario needs at least one [[flow]], [[traffic]] or [[messages]]";
  if (std::string wrong = wrong_messages(s); !wrong.empty()) return wrong;
  for (const FailureSpec& f : s.failures) {
    if (f.link.empty() == (f.links == 0)) return "failure: give either link or links";
    if (f.repair.ps != 0 && f.repair <= f.at) return "failure.repair must come after at";
  }
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
    if (f.batch > f.depth)
      return where + "batch: " + std::to_string(f.batch) + " messages at once do not fit into depth, " +
             std::to_string(f.depth);
    queue_pairs += f.qps;
  }
  // Each takes about 2 KB at either end.
  if (queue_pairs > 4'000'000) return "more than 4000000 queue pairs";
  if (s.nic.detailed) {
    const std::uint32_t most = most_queue_pairs(s.nic.detailed->context);
    for (std::uint32_t h = 0; h < hosts; ++h) {
      const std::uint64_t there = queue_pairs_of(s, h);
      if (there > most)
        return "nic.design: " + s.nic.detailed->name + " has contexts for " + std::to_string(most) +
               " queue pairs, and " + s.graph.name(h) + " needs " + std::to_string(there);
    }
  }
  return {};
}

// Refuses values that would overflow the arithmetic below.
std::string out_of_scale(const Scenario& s) {
  constexpr std::uint64_t kMost = 1ULL << 40U;
  for (const Link& l : s.graph.links) {
    if (l.rate.bps != 0 && l.rate.bps < 1'000'000)
      return "topology: the link between " + s.graph.name(l.a) + " and " + s.graph.name(l.b) +
             " is slower than 1 Mb/s";
  }
  const SwitchConfig& sw = s.network.switches;
  if (sw.buffer.n > kMost || sw.queue.n > kMost || sw.xoff.n > kMost)
    return "switch.buffer, queue and xoff are at most 1 TiB";
  return {};
}

// Bytes on the wire of a full packet and of its ACK.
struct Frames {
  std::uint32_t data;
  std::uint32_t ack;
};
Frames frames_of(const TransportSpec& t, const NicSpec& nic) {
  if (t.tcp) return {tcp::frame_bytes(t.mtu, 0), tcp::frame_bytes(0, 0)};
  wire::Header data;
  data.mode = t.mode;
  data.opcode = wire::kWriteMiddle;
  wire::Header ack;
  ack.mode = t.mode;
  ack.opcode = wire::kAcknowledge;
  ack.syndrome = wire::kSyndromeAck;
  return {frame_bytes(data, t.mtu, Framing::kWire),
          nic.ack_bytes != 0 ? nic.ack_bytes : frame_bytes(ack, 0, Framing::kWire)};
}

// Refuses settings that mode tcp does not have, and fills in its time-outs: the least is irn's longer one,
// the first is the round trip that a handshake over an idle network would have measured.
Result<void> resolve_tcp(Scenario& s) {
  tcp::Config& c = s.tcp;
  if (!s.flows.empty()) return fail("transport.mode: tcp runs [[traffic]] only, and there is a [[flow]]");
  for (const TrafficSpec& t : s.traffic) {
    if (t.verb == Verb::kRead || t.verb == Verb::kMixed)
      return fail("traffic.verb: a stream of tcp knows write and send only");
  }
  if (s.transport.controller != 0)
    return fail("transport.controller: tcp has its own, and takes no other than none");
  if (s.nic.ack_bytes != 0) return fail("nic.ack_bytes: an ACK of tcp is a segment like any other");
  if (s.bytes) return fail("bytes: tcp counts bytes only");
  c.mss = s.transport.mtu;
  if (c.rto_min.ps == 0) c.rto_min = s.transport.rto_high;
  if (!s.transport.timeouts) c.rto_min = c.rto_initial = c.rto_max = kForever;
  if (c.rto_max < c.rto_min) return fail("tcp.rto_max must not be below rto_min");
  if (c.rto_initial.ps == 0) c.rto_initial = std::clamp(s.derived.base_rtt * 3, c.rto_min, c.rto_max);
  if (c.receive_window.n != 0 && c.receive_window.n < c.mss)
    return fail("tcp.receive_window: " + std::to_string(c.receive_window.n) + " bytes hold no segment of " +
                std::to_string(c.mss));
  return {};
}

// Draws all flows once, to know how many there will be: Devices and progress bars are sized by it.
Result<void> count_traffic(Scenario& s, std::uint64_t most) {
  s.derived.traffic_flows = s.derived.measured_flows = 0;
  s.derived.flows_of_host.assign(s.graph.hosts, 0);
  s.derived.bytes_of_host.assign(s.graph.hosts, 0);
  for (std::size_t i = 0; i < s.traffic.size(); ++i) {
    const auto arrivals = make_arrivals(s.traffic[i], ground_of(s, i));
    if (!arrivals) return fail("traffic." + arrivals.error().message);
    for (Arrival a; (*arrivals)->next(a);) {
      if (++s.derived.traffic_flows > most)
        return fail("traffic: more than " + std::to_string(most) + " flows");
      s.derived.measured_flows += s.measure.counts(a.at) ? 1U : 0U;
      ++s.derived.flows_of_host[a.from];
      ++s.derived.flows_of_host[a.to];
      s.derived.bytes_of_host[a.from] += a.bytes;
      s.derived.bytes_of_host[a.to] += a.bytes;
    }
  }
  if (!s.traffic.empty() && s.derived.measured_flows == 0)
    return fail("measure: no flow begins in this time");
  return {};
}

// Where bytes are real, hosts have memory for everything that may be under way, and for every drawn flow.
Result<void> check_memory(const Scenario& s) {
  constexpr std::uint64_t kMost = 1ULL << 30U;
  if (!s.bytes) return {};
  if (!s.check) return fail("bytes: real bytes are for the observers, and mean nothing without check = true");
  std::uint64_t all = std::accumulate(s.derived.bytes_of_host.begin(), s.derived.bytes_of_host.end(), 0ULL);
  for (const FlowSpec& f : s.flows) all += 2 * f.stretch() * f.qps;
  if (all > kMost)
    return fail("bytes: the hosts would need " + std::to_string(all) +
                " bytes of real memory; no more than 1 GiB is given");
  return {};
}

}  // namespace

std::uint64_t queue_pairs_of(const Scenario& s, std::uint32_t host) {
  std::uint64_t n = 0;
  for (const FlowSpec& f : s.flows) n += f.from == host || f.to == host ? f.qps : 0;
  return n + s.derived.channels_of_host[host] + s.derived.plain_of_host[host];
}

Result<void> resolve(Scenario& s, const ScenarioLimits& limits) {
  auto graph = build_topology(s.topology);
  if (!graph) return tl::unexpected(graph.error());
  s.graph = std::move(*graph);
  if (s.graph.hosts > limits.hosts || s.graph.switches() > limits.switches)
    return fail("topology: more than " + std::to_string(limits.hosts) + " hosts or " +
                std::to_string(limits.switches) + " switches");
  if (const auto ok = place_lines(s); !ok) return ok;
  if (std::string wrong = out_of_scale(s); !wrong.empty()) return fail(std::move(wrong));
  SwitchConfig& sw = s.network.switches;
  TransportSpec& t = s.transport;
  const Frames frames = frames_of(t, s.nic);
  const std::uint32_t frame = frames.data + s.nic.extra_header;
  sw.largest_frame = frame + 32;  // the first packet of a message may carry more headers
  Reach reach = reach_of(s.graph, sw);
  // One switch at each end of a link: what PFC needs, twice the pipe for each port (IRN §4.1).
  sw.classes = s.network.data_class == s.network.control_class ? 1 : 2;
  if (s.network.buffer_auto || (sw.pfc && sw.buffer.n == 0)) {
    std::uint64_t each = 2 * reach.bdp.n;
    if (sw.pfc) each = sw.xoff.n != 0 ? sw.xoff.n + reach.headroom.n : std::max(each, 2 * reach.headroom.n);
    sw.buffer.n = each * sw.classes * (sw.kind == SwitchKind::kInputQueued ? 1U : reach.most_ports);
    reach = reach_of(s.graph, sw);
  }
  if (sw.credits && sw.buffer.n == 0) {
    sw.buffer.n =
        reach.headroom.n * sw.classes * (sw.kind == SwitchKind::kInputQueued ? 1U : reach.most_ports);
    reach = reach_of(s.graph, sw);
  }
  if (sw.credits && credit_share(sw, reach.most_ports) < sw.largest_frame)
    return fail("switch.buffer: " + std::to_string(sw.buffer.n) +
                " bytes are less than one frame for each port and class, which credits need");
  const std::uint64_t shares = sw.classes * (sw.kind == SwitchKind::kInputQueued ? 1U : reach.most_ports);
  if (sw.pfc && sw.buffer.n < shares * (reach.headroom.n + std::max<std::uint64_t>(sw.xoff.n, 1)))
    return fail("switch.buffer: " + std::to_string(sw.buffer.n) +
                " bytes leave no room above the headroom of " + std::to_string(reach.headroom.n) +
                " bytes that pfc needs for each of " + std::to_string(shares) + " ports and classes" +
                (sw.xoff.n == 0 ? "" : ", and xoff"));
  s.derived.reach = reach;
  const Rate rate = reach.rate;
  s.derived.base_rtt = reach.one_way * 2 + (rate.time_for({frame}) + rate.time_for({frames.ack})) *
                                               static_cast<std::int64_t>(reach.hops);
  if (s.nic.detailed)
    s.derived.base_rtt +=
        round_trip_of(*s.nic.detailed, t.mtu, s.nic.detailed->context.policy != ContextPolicy::kOnChip);
  if (t.bdp_cap == 0) {
    // Two packets more than a round trip holds: each end is just deciding on one.
    const std::int64_t each = rate.time_for({frame}).ps;
    const std::int64_t cap = each == 0 ? 110 : (s.derived.base_rtt.ps + each - 1) / each + 2;
    t.bdp_cap = static_cast<std::uint32_t>(std::clamp<std::int64_t>(cap, 4, 8192));
  }
  if (t.rto_low.ps == 0) {
    t.rto_low = microseconds(100);  // IRN §4.1
    if (t.rto_low <= s.derived.base_rtt) t.rto_low = s.derived.base_rtt * 2;
    if (t.rto_high.ps != 0) t.rto_low = std::min(t.rto_low, t.rto_high);
  }
  if (t.timeout == TransportSpec::kComputed) {
    t.timeout = 8;
    while (t.timeout < 31 && check::verbs_timeout(t.timeout) <= s.derived.base_rtt * 2) ++t.timeout;
  }
  if (t.rto_high.ps == 0) {
    t.rto_high = reach.fullest_switch.n == 0
                     ? microseconds(320)
                     : s.derived.base_rtt + std::min(rate.time_for(reach.fullest_switch), seconds(86'400));
    t.rto_high = std::max(t.rto_high, t.rto_low);
  }
  count_channels(s);
  if (std::string wrong = contradiction(s); !wrong.empty()) return fail(std::move(wrong));
  if (t.tcp) {
    if (const auto ok = resolve_tcp(s); !ok) return ok;
  }
  if (const auto ok = count_traffic(s, limits.flows); !ok) return ok;
  for (FlowSpec& f : s.flows) f.place_for_each = s.check && !s.graph.boxes.empty();
  if (const auto ok = check_memory(s); !ok) return ok;
  if (const auto ok = configure_boxes(s); !ok) return ok;
  auto changes = link_changes(s);
  if (!changes) return tl::unexpected(changes.error());
  s.derived.link_changes = std::move(*changes);
  for (std::uint32_t h = 0; h < s.graph.hosts; ++h) {
    if (const auto ok = device_config(s, h).validate(); !ok) return fail("transport: " + ok.error().message);
  }
  return {};
}

TrafficGround ground_of(const Scenario& s, std::size_t index) {
  // A load counts plain RoCE packets whatever the mode and verb, so that all modes get the same flows. The
  // longer headers of a mode are additional load.
  wire::Header h;
  h.opcode = wire::kWriteMiddle;
  TrafficGround g;
  g.hosts = s.graph.hosts;
  g.rate = s.derived.reach.rate;
  g.mtu = s.transport.mtu;
  g.packet_overhead =
      s.transport.tcp ? tcp::frame_bytes(g.mtu, 0) - g.mtu : frame_bytes(h, 0, Framing::kWire);
  g.seed = s.seed * 0xD134'2543'DE82'EF95ULL + index;
  return g;
}

}  // namespace weft::sim
