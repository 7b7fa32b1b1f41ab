// A peer that dies without a word (X-RDMA §5.1, and §3, robustness): what its channels hold, and for how
// long.
//
//   watched   keepalive: the channels of the dead peer close, and everything they had is given back
//   kept      without: they stay open, with their receives and their queue pairs
//
// Before it dies, a peer that is only asked by probes sleeps on.
#include <algorithm>
#include <array>
#include <cstdio>

#include "channel_bench/bench.h"
#include "channel_bench/counters.h"
#include "channel_bench/opening.h"

namespace weft::bench {
namespace {

using tools::now_ns;

constexpr std::uint16_t kContext = 8;
constexpr std::uint64_t kKeepalive = 300;  // ms of silence before a probe
constexpr double kOpenSeconds = 60;
constexpr double kLongest = 30;  // seconds for the channels to close, and for memory to come back

struct Held {
  std::uint64_t channels = 0;
  std::uint64_t used = 0;  // bytes of posted receives
  std::uint64_t registered = 0;
  std::uint64_t qps = 0;
};

struct Row {
  Held before, after;
  std::uint64_t probes = 0;      // of this end, while the peer lived
  std::uint64_t woken = 0;       // times that these woke the peer's program
  std::vector<double> closed_s;  // of each channel, from the death on
  double waited_s = 0;           // until there was nothing left, or for as long as the row before
};

Result<Held> held() {
  Held h;
  const std::array<std::pair<const char*, std::uint64_t*>, 3> wanted{
      {{"channels", &h.channels}, {"recv_memory_used", &h.used}, {"recv_memory", &h.registered}}};
  for (const auto& [column, into] : wanted) {
    const auto n = count_of("channels", "context", column);
    if (!n) return tl::unexpected(n.error());
    *into = *n;
  }
  const auto qps = count_of("nic", "nic", "qps");
  if (!qps) return tl::unexpected(qps.error());
  h.qps = *qps;
  return h;
}

class Dying {
 public:
  Dying(FarEnd& far, std::uint32_t channels) : far_(far), channels_(channels) {}

  // `wait`: how long it looks after the death where nothing is to happen.
  Result<Row> go(bool watched, double wait) {
    auto pair = Pair::open(far_, kContext,
                           {"channels=" + std::to_string(channels_), "cached_qps=0", "keepalive_intv_ms=0",
                            "idle_memory_ms=100"});
    if (!pair) return tl::unexpected(pair.error());
    pair_ = std::move(*pair);
    if (auto begun = pair_->serve(0, true); !begun) return tl::unexpected(begun.error());
    Opening opening(far_, *pair_);
    if (auto done = opening.wait_for(channels_ - 1, kOpenSeconds); !done) return tl::unexpected(done.error());
    if (auto done = look_at_the_living(watched); !done) return tl::unexpected(done.error());
    const auto before = held();
    if (!before) return tl::unexpected(before.error());
    row_.before = *before;
    far_.kill_it();
    const std::uint64_t death = now_ns();
    if (auto done = look_at_the_dead(death, watched ? kLongest : wait); !done)
      return tl::unexpected(done.error());
    pair_.reset();
    if (auto back = far_.replace(); !back) return tl::unexpected(back.error());
    return row_;
  }

 private:
  // Several probes of every channel, if there are any.
  Result<void> look_at_the_living(bool watched) {
    const auto probes = count_of("channels", "channel", "probes");
    const auto woken = count_of("channels", "context", "woken_by_events", far_.process());
    if (!probes) return tl::unexpected(probes.error());
    if (!woken) return tl::unexpected(woken.error());
    std::array<char, 256> why{};
    if (watched &&
        weft_set(pair_->session().get(), "keepalive_intv_ms", kKeepalive, why.data(), why.size()) != 0)
      return fail(std::string(why.data()));
    pass(watched ? 4 * kKeepalive * 1'000'000 : 2 * kPageAge);
    const auto probes_now = count_of("channels", "channel", "probes");
    const auto woken_now = count_of("channels", "context", "woken_by_events", far_.process());
    if (!probes_now) return tl::unexpected(probes_now.error());
    if (!woken_now) return tl::unexpected(woken_now.error());
    row_.probes = *probes_now - *probes;
    row_.woken = *woken_now - *woken;
    return {};
  }

  // Until nothing is left, for `most` seconds at most.
  Result<void> look_at_the_dead(std::uint64_t death, double most) {
    const auto since = [death] { return static_cast<double>(now_ns() - death) / 1e9; };
    const auto see = [&](const weft_notice& n) {
      if (n.kind == WEFT_CLOSED) row_.closed_s.push_back(since());
    };
    while (since() < most) {
      const std::uint64_t next = now_ns() + kPageAge;
      poll_until(
          pair_->session(), 1, see, [&] { return now_ns() > next; }, 1);
      const auto now = held();
      if (!now) return tl::unexpected(now.error());
      row_.after = *now;
      if (now->channels == 0 && now->used == 0 && now->registered == 0 && now->qps == 0) break;
    }
    row_.waited_s = since();
    return {};
  }

  void pass(std::uint64_t ns) {
    const std::uint64_t until = now_ns() + ns;
    poll_until(
        pair_->session(), kLongest, [](const weft_notice&) {}, [&] { return now_ns() > until; }, 1);
  }

  FarEnd& far_;
  const std::uint32_t channels_;
  std::unique_ptr<Pair> pair_;
  Row row_;
};

record::Record record_of(const Held& h) {
  record::Record r;
  r.set("channels", h.channels).set("bytes", h.used).set("registered", h.registered).set("qps", h.qps);
  return r;
}

void tell(const char* name, const Row& r, std::uint64_t channels, Measured& out) {
  const auto [first, last] = std::minmax_element(r.closed_s.begin(), r.closed_s.end());
  record::Record one;
  one.set("before", record_of(r.before))
      .set("after", record_of(r.after))
      .set("closed", std::uint64_t{r.closed_s.size()})
      .set("probes_per_channel", static_cast<double>(r.probes) / static_cast<double>(channels))
      .set("peer_woken", r.woken)
      .set("waited_seconds", r.waited_s);
  if (!r.closed_s.empty()) one.set("first_seconds", *first).set("last_seconds", *last);
  out.record.set(name, std::move(one));
  std::array<char, 200> line{};
  std::snprintf(
      line.data(), line.size(), "%-8s %8llu %9llu %6llu %9llu %9llu %6llu %9.3f %9.3f %7.1f %7llu\n", name,
      static_cast<unsigned long long>(r.before.channels),
      static_cast<unsigned long long>(r.before.used / 1024), static_cast<unsigned long long>(r.before.qps),
      static_cast<unsigned long long>(r.after.channels), static_cast<unsigned long long>(r.after.used / 1024),
      static_cast<unsigned long long>(r.after.qps), r.closed_s.empty() ? 0 : *first,
      r.closed_s.empty() ? 0 : *last, static_cast<double>(r.probes) / static_cast<double>(channels),
      static_cast<unsigned long long>(r.woken));
  out.text += line.data();
}

}  // namespace

Result<Measured> gone(FarEnd& far, const Options& o) {
  Measured out;
  out.record.set("channels", std::uint64_t{o.channels}).set("keepalive_ms", kKeepalive);
  out.text =
      "         before                    after its death          channels closed    before it:\n"
      "         channels       KiB    qps  channels       KiB    qps   first s    last s  probes   woken\n";
  const auto watched = Dying(far, o.channels).go(true, 0);
  if (!watched) return tl::unexpected(watched.error());
  tell("watched", *watched, o.channels, out);
  const auto kept = Dying(far, o.channels).go(false, watched->waited_s + 0.5);
  if (!kept) return tl::unexpected(kept.error());
  tell("kept", *kept, o.channels, out);
  out.text +=
      "a peer that dies, with a probe after " + std::to_string(kKeepalive) + " ms of silence and without\n";
  return out;
}

}  // namespace weft::bench
