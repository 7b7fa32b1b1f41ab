#include "sim/world/device_config.h"

#include <algorithm>
#include <bit>

namespace weft::sim {

DeviceConfig device_config(const Scenario& s, std::uint32_t host) {
  const TransportSpec& t = s.transport;
  std::uint32_t queue_pairs = 0;
  std::uint32_t deepest = 1;
  for (const FlowSpec& f : s.flows) {
    if (f.from != host && f.to != host) continue;
    queue_pairs += f.qps;
    deepest = std::max(deepest, f.depth);
  }
  DeviceConfig c;
  queue_pairs += s.derived.flows_of_host[host] + s.derived.plain_of_host[host];
  for (const MessageSpec& m : s.messages) {
    if (m.plain) deepest = std::max({deepest, s.channels.config.depth, m.under_way});
  }
  c.control_ring = 64;  // drained after every packet
  c.burst_packets = 4;  // one is sent at a time
  if (s.nic.detailed) {
    c.control_ring = 4096;  // several QPs are served at once
    c.burst_packets = 64;
  }
  c.max_qp = std::max(queue_pairs + 2, 4U);  // numbers 0 and 1 are never given
  c.qpn_bits = static_cast<std::uint32_t>(std::bit_width(c.max_qp));
  c.max_cq = c.max_pd = c.max_srq = 4;
  c.max_mr = 16;
  c.max_path = s.graph.hosts;
  if (s.derived.channels_of_host[host] != 0) {
    // A context's queue pairs, those that it keeps, its send queues and receives (channel/context.cc), and
    // regions for its frames and for messages of every length.
    const channel::Config ctx = context_config(s, host);
    const std::uint32_t entries = std::bit_ceil(ctx.depth + 16);
    const std::uint64_t all = std::uint64_t{ctx.channels} * 2U * entries;
    std::uint64_t bytes = std::uint64_t{ctx.channels} * (ctx.depth + 8U) * (ctx.small + 256U);
    for (const MessageSpec& m : s.messages)
      bytes +=
          4 * ctx.channels * std::max(m.size.n, m.answer.n) * (m.under_way == 0 ? ctx.depth : m.under_way);
    c.max_qp += ctx.channels + ctx.cached_qps;
    c.qpn_bits = static_cast<std::uint32_t>(std::bit_width(c.max_qp));
    c.max_cqe = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(all, c.max_cqe, UINT32_MAX));
    c.max_mr = static_cast<std::uint32_t>(std::min<std::uint64_t>(256 + bytes / ctx.region.n, 65'535));
    deepest = std::max(deepest, entries);
  }
  c.max_ring = std::min(2 * std::bit_ceil(deepest), 32768U);
  c.seed = s.seed * 0x9E3779B97F4A7C15ULL + host;
  c.loss_blocks = t.loss_blocks;
  c.bdp_cap = t.bdp_cap;
  c.window_packets = std::bit_ceil(std::max(t.bdp_cap, 64U));
  c.rto_low = t.timeouts ? t.rto_low : kForever;
  c.rto_high = t.timeouts ? t.rto_high : kForever;
  if (t.timeouts) c.roce_timeout = t.roce_timeout;
  if (t.timeouts) c.tail_probe = t.tail_probe;
  c.rto_low_packets = t.rto_low_packets;
  c.rto = t.rto;
  c.roce_window = t.roce_window;
  c.never_give_up = !t.give_up;
  c.rto_backs_off = t.rto_backoff;
  c.recovery = t.recovery;
  c.nack_threshold = t.nack_threshold;
  c.controller = t.controller;
  if (s.derived.reach.rate.bps != 0) c.line_rate = s.derived.reach.rate;
  return c;
}

}  // namespace weft::sim
