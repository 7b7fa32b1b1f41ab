// Establishing connections (X-RDMA §7.3): one after the other, and a storm of them at once.
//
//   plain    librdmacm, as a plain program uses it: one after the other, a queue pair each
//   fresh    channels of a context that keeps no queue pairs
//   cached   channels whose queue pairs served others before
//   tcp      TCP, for scale
//
// Rows take turns. Channels close between turns, and a turn of `cached` is the second one of its context at
// the earliest.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "channel_bench/bench.h"
#include "channel_bench/counters.h"
#include "channel_bench/opening.h"
#include "channel_bench/plain_cm.h"

namespace weft::bench {
namespace {

using tools::now_ns;

constexpr std::uint16_t kFresh = 2;
constexpr std::uint16_t kCached = 3;
constexpr double kWaveSeconds = 120;
constexpr std::uint64_t kRemembered = 2'000'000'000;  // ns: the connection managers' time wait, and some more

struct Wave {
  double seconds = 0;  // from the first call to the last channel that is open
  std::vector<double> us;
  std::uint64_t refused = 0;
};

// Channels of one context, opened together or one after the other, and closed again.
class Waves {
 public:
  Waves(FarEnd& far, Pair& pair) : far_(far), pair_(pair) {}

  Result<Wave> one_by_one(std::uint32_t count) {
    Wave w;
    const std::uint64_t began = now_ns();
    for (std::uint32_t i = 0; i < count; ++i) {
      if (auto done = run(1, w); !done) return tl::unexpected(done.error());
    }
    w.seconds = static_cast<double>(now_ns() - began) / 1e9;
    return w;
  }
  Result<Wave> at_once(std::uint32_t count) {
    Wave w;
    const std::uint64_t began = now_ns();
    if (auto done = run(count, w); !done) return tl::unexpected(done.error());
    w.seconds = static_cast<double>(now_ns() - began) / 1e9;
    return w;
  }
  Result<void> close() {
    if (auto closed = close_all(pair_.session(), open_, kWaveSeconds); !closed) return closed;
    open_.clear();
    return {};
  }

 private:
  Result<void> run(std::uint32_t count, Wave& w) {
    Opening opening(far_, pair_);
    if (auto done = opening.wait_for(count, kWaveSeconds); !done) return done;
    w.refused += opening.refused();
    w.us.insert(w.us.end(), opening.us().begin(), opening.us().end());
    open_.insert(open_.end(), opening.open().begin(), opening.open().end());
    return {};
  }

  FarEnd& far_;
  Pair& pair_;
  std::vector<weft_channel*> open_;
};

class Connect {
 public:
  Connect(FarEnd& far, const Options& o) : far_(far), o_(o) {}

  Result<Measured> go() {
    if (auto ready = prepare(); !ready) return tl::unexpected(ready.error());
    const std::uint32_t few = std::min(o_.connections, 32U);
    Row plain;
    Row fresh;
    Row cached;
    Row tcp;
    for (std::uint32_t turn = 0; turn < o_.storms; ++turn) {
      if (auto done = by_plain(few, plain); !done) return tl::unexpected(done.error());
      if (auto done = by_channels(kFresh, few, fresh); !done) return tl::unexpected(done.error());
      if (auto done = by_channels(kCached, few, cached); !done) return tl::unexpected(done.error());
      const auto us = connect_tcp(far_.address(), few);
      if (!us) return tl::unexpected(us.error());
      tcp.one_us.push_back(median(*us));
    }
    Measured out;
    out.record.set("connections", std::uint64_t{o_.connections}).set("turns", std::uint64_t{o_.storms});
    out.text = "             one (us)   storm of " + std::to_string(o_.connections) +
               " (s)    refused  made  reused\n";
    tell("plain", plain, out);
    tell("fresh", fresh, out);
    tell("cached", cached, out);
    tell("tcp", tcp, out);
    out.text +=
        "medians of " + std::to_string(o_.storms) + " turns; plain: its storm is one after the other\n";
    return out;
  }

 private:
  struct Row {
    std::vector<double> one_us;
    std::vector<double> storm_s;
    std::uint64_t refused = 0;
    std::uint64_t made = 0;  // queue pairs of this end
    std::uint64_t reused = 0;
  };

  Result<void> prepare() {
    const std::vector<std::string> lean{"channels=" + std::to_string(o_.connections + 1),
                                        "depth=8",
                                        "small_msg_size=256",
                                        "calls=64",
                                        "connect_ms=60000",
                                        "keepalive_intv_ms=600000"};
    for (const std::uint16_t id : {kFresh, kCached}) {
      std::vector<std::string> parameters = lean;
      parameters.push_back("cached_qps=" + std::to_string(id == kFresh ? 0 : o_.connections));
      auto pair = Pair::open(far_, id, parameters);
      if (!pair) return tl::unexpected(pair.error());
      pairs_[id] = std::move(*pair);
    }
    // Queue pairs for the cache.
    Row unused;
    return by_channels(kCached, o_.connections, unused);
  }

  Result<void> by_channels(std::uint16_t id, std::uint32_t few, Row& row) {
    Pair& pair = *pairs_[id];
    Waves waves(far_, pair);
    if (auto begun = pair.serve(0, true); !begun) return begun;
    const std::uint64_t made = count("qps_made");
    const std::uint64_t reused = count("qps_reused");
    for (const bool storm : {false, true}) {
      rest(id);
      const auto wave = storm ? waves.at_once(o_.connections) : waves.one_by_one(few);
      if (!wave) return tl::unexpected(wave.error());
      row.refused += wave->refused;
      if (storm) row.storm_s.push_back(wave->seconds);
      if (!storm) row.one_us.push_back(median(wave->us));
      if (auto closed = waves.close(); !closed) return closed;
      closed_[id] = now_ns();
    }
    row.made += count("qps_made") - made;
    row.reused += count("qps_reused") - reused;
    return pair.stop();
  }
  // The numbers of queue pairs are free again.
  void rest(std::uint16_t id) {
    const std::uint64_t until = closed_[id] + kRemembered;
    const std::uint64_t now = now_ns();
    if (id == kCached && now < until) usleep(static_cast<useconds_t>((until - now) / 1000));
  }
  static std::uint64_t count(const char* column) {
    std::uint64_t n = 0;
    (void)counted("channels", "context", column, n);
    return n;
  }

  Result<void> by_plain(std::uint32_t few, Row& row) {
    if (const auto begun = far_.ask("accept"); !begun) return tl::unexpected(begun.error());
    for (const bool storm : {false, true}) {
      const auto us = connect_plain(far_.address(), storm ? o_.connections : few);
      if (!us) return tl::unexpected(us.error());
      double all = 0;
      for (const double one : *us) all += one;
      if (storm) row.storm_s.push_back(all / 1e6);
      if (!storm) row.one_us.push_back(median(*us));
    }
    if (const auto ended = far_.ask("stop", 60); !ended) return tl::unexpected(ended.error());
    return {};
  }

  static void tell(const char* name, const Row& row, Measured& out) {
    std::array<char, 120> line{};
    record::Record r;
    r.set("one_us", median(row.one_us));
    std::snprintf(line.data(), line.size(), "%-8s %12.1f", name, median(row.one_us));
    out.text += line.data();
    if (!row.storm_s.empty()) {
      r.set("storm_seconds", median(row.storm_s));
      std::snprintf(line.data(), line.size(), " %18.3f", median(row.storm_s));
      out.text += line.data();
    }
    if (row.made + row.reused != 0) {
      r.set("refused", row.refused).set("made", row.made).set("reused", row.reused);
      std::snprintf(line.data(), line.size(), " %14llu %7llu %7llu",
                    static_cast<unsigned long long>(row.refused), static_cast<unsigned long long>(row.made),
                    static_cast<unsigned long long>(row.reused));
      out.text += line.data();
    }
    out.text += "\n";
    out.record.set(name, std::move(r));
  }

  FarEnd& far_;
  const Options& o_;
  std::map<std::uint16_t, std::unique_ptr<Pair>> pairs_;
  std::map<std::uint16_t, std::uint64_t> closed_;  // when the last wave of a context was over
};

}  // namespace

Result<Measured> connecting(FarEnd& far, const Options& o) { return Connect(far, o).go(); }

}  // namespace weft::bench
