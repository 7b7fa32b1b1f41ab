#include "channel_world/plan.h"

#include "channel/window.h"
#include "core/base/prng.h"

namespace weft::channel_world {

Plan plan_of(std::uint64_t seed) {
  Prng r = Prng(seed).fork(17);
  Plan p;
  p.world.seed = seed;
  p.world.hosts.resize(r.between(2, 4));
  for (DeviceConfig& d : p.world.hosts) d.loss_blocks = 256, d.max_qp = 64;
  p.world.network.delay = microseconds(static_cast<std::int64_t>(r.between(1, 20)));
  if (r.chance(500'000)) p.world.network.loss = static_cast<std::uint32_t>(r.below(30'000));
  if (r.chance(300'000)) p.world.network.duplicate = static_cast<std::uint32_t>(r.below(20'000));
  if (r.chance(300'000)) p.world.network.jitter = microseconds(static_cast<std::int64_t>(r.below(10)));
  p.world.rate = gigabits(r.between(1, 100));
  p.world.most_under_way = Bytes{64U << 20U};
  channel::Config& c = p.config;
  c.channels = 16;
  c.calls = static_cast<std::uint32_t>(r.between(1, 40));
  const std::uint32_t depths[] = {1, 2, 3, 4, 8, 13, 32};
  c.depth = depths[r.below(7)];
  c.queue = static_cast<std::uint32_t>(r.below(3) == 0 ? 0 : r.between(1, 40));
  c.small = static_cast<std::uint32_t>(r.between(256, 3000));
  c.fragment = static_cast<std::uint32_t>(r.between(1024, 9000));
  c.outstanding = static_cast<std::uint32_t>(r.between(1, 8));
  c.reads = static_cast<std::uint32_t>(r.between(1, 6));
  c.cached_qps = static_cast<std::uint32_t>(r.below(4));
  c.region = Bytes{1U << 18U};
  c.memory = Bytes{r.chance(200'000) ? 3U << 20U : 64U << 20U};
  c.ack_delay = microseconds(static_cast<std::int64_t>(r.between(1, 200)));
  c.patience = microseconds(static_cast<std::int64_t>(r.between(100, 3000)));
  c.keepalive = milliseconds(static_cast<std::int64_t>(r.between(2, 50)));
  c.idle_memory = milliseconds(static_cast<std::int64_t>(r.between(1, 20)));
  c.redial = microseconds(static_cast<std::int64_t>(r.between(50, 5000)));
  c.connecting = milliseconds(200);
  if (r.chance(600'000)) c.reconnect = milliseconds(static_cast<std::int64_t>(r.between(100, 2000)));
  c.terms.mode = static_cast<wire::Mode>(r.below(3));
  c.terms.timeout = static_cast<std::uint8_t>(r.between(7, 9));
  c.terms.retry_count = 7;
  c.terms.min_rnr_timer = 1;
  p.channels = static_cast<std::uint32_t>(r.between(1, 4));
  p.messages = static_cast<std::uint32_t>(r.between(5, 60));
  if (r.chance(600'000)) p.think = microseconds(static_cast<std::int64_t>(r.between(1, 300)));
  if (r.chance(600'000)) p.hold = microseconds(static_cast<std::int64_t>(r.between(1, 2000)));
  if (r.chance(400'000)) p.failures = static_cast<std::uint32_t>(r.between(1, 4));
  if (r.chance(150'000)) p.crashes = 1;
  p.requests = static_cast<std::uint32_t>(r.below(600'000));
  p.large = static_cast<std::uint32_t>(r.below(400'000));
  p.rude = r.chance(150'000);
  // Of their own, so that the worlds of earlier seeds stay what they were.
  Prng t = Prng(seed).fork(18);
  if (t.chance(500'000)) {
    c.trace_mask = t.chance(500'000) ? ~std::uint64_t{0} : t.next();
    c.clock_interval = milliseconds(static_cast<std::int64_t>(t.between(1, 20)));
    if (t.chance(500'000)) c.slow = microseconds(static_cast<std::int64_t>(t.between(1, 100)));
    if (t.chance(500'000)) p.switches = 5'000;
  }
  Prng m = Prng(seed).fork(19);
  if (m.chance(500'000)) {
    p.tcp = true;
    if (m.chance(800'000)) c.reconnect = milliseconds(static_cast<std::int64_t>(m.between(100, 2000)));
    if (m.chance(900'000)) c.tcp_port = 9;
    c.mock = m.chance(100'000) ? 1 : 0;
    if (m.chance(300'000)) c.mock_slow = microseconds(static_cast<std::int64_t>(m.between(1, 60)));
    c.mock_slow_for = microseconds(static_cast<std::int64_t>(m.below(500)));
    c.mock_redials = static_cast<std::uint32_t>(m.below(3));
    c.mock_cool = microseconds(static_cast<std::int64_t>(m.below(5'000)));
    p.moves = static_cast<std::uint32_t>(m.below(12));
    p.cuts = static_cast<std::uint32_t>(m.below(5));
    const bool narrow = m.chance(500'000);
    p.streams.delay = microseconds(static_cast<std::int64_t>(narrow ? m.between(1, 10) : m.between(5, 200)));
    p.streams.capacity = static_cast<std::uint32_t>(narrow ? m.between(50, 600) : m.between(600, 60'000));
    p.streams.refused = static_cast<std::uint32_t>(m.chance(300'000) ? m.below(400'000) : 0);
    p.streams.ignored = static_cast<std::uint32_t>(m.chance(200'000) ? m.below(200'000) : 0);
  }
  Prng s = Prng(seed).fork(20);
  if (s.chance(400'000)) {
    c.use_srq = true;
    const std::uint32_t each = c.depth + channel::kControls;
    c.srq_size = c.channels * each;
    if (s.chance(500'000)) {  // fewer than peers may fill, and many channels that hurry
      c.srq_size = static_cast<std::uint32_t>(s.between(each, each + each / 2));
      p.channels = static_cast<std::uint32_t>(s.between(4, 10));
      p.think = {};
    }
  }
  Prng n = Prng(seed).fork(21);
  if (n.chance(c.use_srq ? 800'000 : 300'000))
    p.nap = microseconds(static_cast<std::int64_t>(n.between(20, 1000)));
  return p;
}

}  // namespace weft::channel_world
