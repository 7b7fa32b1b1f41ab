#include "sim/world/message_result.h"

#include <algorithm>

namespace weft::sim {
namespace {

void set_quantiles(record::Record& r, const std::string& name, const std::vector<Duration>& all) {
  const Quantiles q = quantiles_of(all);
  r.set(name + "_us_p50", q.p50_us).set(name + "_us_p99", q.p99_us);
  r.set(name + "_us_max", q.max_us).set(name + "_us_mean", q.mean_us);
}

}  // namespace

Quantiles quantiles_of(std::vector<Duration> all) {
  if (all.empty()) return {};
  std::sort(all.begin(), all.end());
  Quantiles q;
  for (const Duration d : all) q.mean_us += static_cast<double>(d.ps) / 1e6;
  q.mean_us /= static_cast<double>(all.size());
  const auto at = [&](std::size_t percent) {
    return static_cast<double>(all[(all.size() - 1) * percent / 100].ps) / 1e6;
  };
  q.p50_us = at(50);
  q.p99_us = at(99);
  q.max_us = at(100);
  return q;
}

record::Record to_record(const MessageResult& m) {
  record::Record r;
  r.set("messages", m.messages).set("failed", m.failed).set("bytes", m.bytes);
  r.set("elapsed_ps", m.elapsed().ps).set("goodput_gbps", m.goodput_bps() / 1e9);
  r.set("messages_per_second",
        m.elapsed().ps == 0 ? 0.0
                            : static_cast<double>(m.messages) * 1e12 / static_cast<double>(m.elapsed().ps));
  set_quantiles(r, "latency", m.latencies);
  r.set("channels_lost", m.lost);
  if (m.why != nullptr) r.set("why", m.why);
  set_quantiles(r, "connect", m.connects);
  if (m.upgraded == Time{}) return r;
  r.set("reconnected", std::uint64_t{m.reconnects.size()});
  set_quantiles(r, "reconnect", m.reconnects);
  set_quantiles(r, "calm", m.calm);
  set_quantiles(r, "storm", m.storm);
  r.set("storm_ps", (m.upgraded - m.upgrade_at).ps);
  // Messages done while channels were away, and in as long a time before.
  const Duration storm = m.upgraded - m.upgrade_at;
  std::uint64_t before = 0;
  std::uint64_t during = 0;
  for (const Time t : m.done_at) {
    before += t < m.upgrade_at && t + storm >= m.upgrade_at ? 1U : 0U;
    during += t >= m.upgrade_at && t < m.upgraded ? 1U : 0U;
  }
  r.set("messages_before", before).set("messages_during", during);
  return r;
}

}  // namespace weft::sim
