#include "sim/world/channel_spec.h"

#include <algorithm>

#include "sim/world/scenario.h"

namespace weft::sim {
namespace {

constexpr std::uint64_t kMostChannels = 1'000'000;
constexpr std::uint32_t kMostOfHost = 1U << 19U;  // an upgrade may double them; a context counts to 2^20

std::uint64_t pairs_number(const MessageSpec& m, std::uint64_t hosts) {
  const std::uint64_t each = m.connections;
  switch (m.pattern) {
    case MessagePattern::kPingPong:
      return each;
    case MessagePattern::kIncast:
      return each * (m.fan_in == 0 ? hosts - 1 : m.fan_in);
    case MessagePattern::kAllToAll:
      return each * hosts * (hosts - 1);
  }
  return 0;
}

std::string wrong_table(const Scenario& s, const MessageSpec& m) {
  const std::uint32_t hosts = s.graph.hosts;
  const std::string numbered = "hosts are numbered 0 to " + std::to_string(hosts - 1);
  const channel::Config& c = s.channels.config;
  if (m.pattern == MessagePattern::kPingPong) {
    if (m.from >= hosts || m.to >= hosts) return "from, to: " + numbered;
    if (m.from == m.to) return "from and to are the same host";
  }
  if (m.pattern == MessagePattern::kIncast) {
    if (m.target >= hosts) return "target: " + numbered;
    if (m.fan_in >= hosts)
      return "fan_in: there are " + std::to_string(hosts - 1) + " hosts beside the target";
  }
  if (pairs_number(m, hosts) > kMostChannels)
    return "more than " + std::to_string(kMostChannels) + " channels";
  if (m.plain) {
    if (m.asks) return "over: verbs carry messages of incast without answer, and nothing else";
    if (m.upgrade_at.ps != 0) return "upgrade_at: only channels connect anew";
    if (m.under_way > 8192) return "under_way: a queue pair has at most 8192 SENDs posted";
    if (m.size.n == 0 || m.size.n > (1ULL << 30U)) return "size: a SEND has 1 byte to 1 GiB";
    return {};
  }
  for (const std::uint64_t n : {m.size.n, m.answer.n}) {
    if (n > c.largest)
      return "size: " + std::to_string(n) + " bytes are more than channels.largest, " +
             std::to_string(c.largest);
  }
  if (m.upgrade_at.ps != 0 && m.upgrade_at < m.start) return "upgrade_at must not come before start";
  return {};
}

}  // namespace

std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_of(const MessageSpec& m, std::uint32_t hosts) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
  all.reserve(pairs_number(m, hosts));
  // Connections in turns over the pairs, as programs on many hosts would come.
  for (std::uint32_t i = 0; i < m.connections; ++i) {
    if (m.pattern == MessagePattern::kPingPong) all.emplace_back(m.from, m.to);
    if (m.pattern == MessagePattern::kIncast) {
      const std::uint32_t wanted = m.fan_in == 0 ? hosts - 1 : m.fan_in;
      for (std::uint32_t h = 0, n = 0; n < wanted; ++h) {
        if (h == m.target) continue;
        all.emplace_back(h, m.target);
        ++n;
      }
    }
    if (m.pattern == MessagePattern::kAllToAll) {
      for (std::uint32_t step = 1; step < hosts; ++step) {
        for (std::uint32_t h = 0; h < hosts; ++h) all.emplace_back(h, (h + step) % hosts);
      }
    }
  }
  return all;
}

std::string wrong_messages(const Scenario& s) {
  if (s.messages.empty()) return s.channels.given ? "channels: mean nothing without [[messages]]" : "";
  if (s.transport.tcp) return "messages: channels run over queue pairs, and transport.mode is tcp";
  if (s.check)
    return "check: the observers of packets know nothing of channels; ./dev channels is where they are "
           "judged";
  for (std::size_t i = 0; i < s.messages.size(); ++i) {
    if (std::string wrong = wrong_table(s, s.messages[i]); !wrong.empty())
      return "messages " + std::to_string(i) + ": " + wrong;
  }
  for (std::uint32_t h = 0; h < s.graph.hosts; ++h) {
    if (s.derived.channels_of_host[h] > kMostOfHost)
      return "messages: " + s.graph.name(h) + " would have more than " + std::to_string(kMostOfHost) +
             " channels";
    if (s.derived.channels_of_host[h] == 0) continue;
    if (const auto sound = context_config(s, h).validate(); !sound)
      return "channels." + sound.error().message;
  }
  return {};
}

void count_channels(Scenario& s) {
  s.derived.channels_of_host.assign(s.graph.hosts, 0);
  s.derived.plain_of_host.assign(s.graph.hosts, 0);
  for (const MessageSpec& m : s.messages) {
    // What is out of range is refused later.
    if (std::max({m.from, m.to, m.target, m.fan_in}) >= s.graph.hosts ||
        pairs_number(m, s.graph.hosts) > kMostChannels)
      continue;
    for (const auto& [from, to] : pairs_of(m, s.graph.hosts)) {
      std::vector<std::uint32_t>& counts = m.plain ? s.derived.plain_of_host : s.derived.channels_of_host;
      ++counts[from];
      ++counts[to];
    }
  }
}

channel::Config context_config(const Scenario& s, std::uint32_t host) {
  channel::Config c = s.channels.config;
  bool upgrades = false;
  std::uint64_t calls = 1;
  for (const MessageSpec& m : s.messages) {
    upgrades = upgrades || m.upgrade_at.ps != 0;
    if (m.asks)
      calls += std::uint64_t{s.derived.channels_of_host[host]} * (m.under_way == 0 ? 64 : m.under_way);
  }
  // One that connects anew may come before the old one has left.
  c.channels = std::max(s.derived.channels_of_host[host] * (upgrades ? 2 : 1), 1U);
  c.calls = static_cast<std::uint32_t>(std::min<std::uint64_t>(calls, 1U << 16U));
  if (!s.channels.flow_control) {
    c.fragment = 1U << 30U;
    c.outstanding = 1U << 20U;
  }
  const TransportSpec& t = s.transport;
  c.terms.mode = t.mode;
  c.terms.mtu = t.mtu;
  c.terms.min_rnr_timer = 1;
  c.terms.timeout = t.timeouts ? t.timeout : std::uint8_t{0};
  c.terms.retry_count = t.retry_count;
  c.terms.rnr_retry = t.rnr_retry;
  c.terms.controller = t.controller;
  return c;
}

}  // namespace weft::sim
