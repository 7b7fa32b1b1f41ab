// Thousands of channels of a host (X-RDMA §7 and §7.5, Figure 11), and an upgrade: half of them close and
// connect anew while requests go on over the others.
//
//   rolling   the half goes little by little, and queue pairs wait in a cache
//   storm     the half goes at once, and queue pairs wait in a cache
//   fresh     the half goes at once, and queue pairs are made
//
// A row has three times: requests over all channels, requests over those that stay while the others come
// back, and over all again. Requests go round the channels, and as many as kOutstanding are without an
// answer. What the row says is how the second time compares with the first.
#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "channel_bench/bench.h"
#include "channel_bench/counters.h"
#include "channel_bench/opening.h"

namespace weft::bench {
namespace {

using tools::now_ns;

constexpr std::uint16_t kCachedContext = 6;
constexpr std::uint16_t kFreshContext = 7;
constexpr std::uint32_t kBytes = 128;
constexpr std::uint32_t kOutstanding = 32;
constexpr double kLimit = 60;  // seconds for what has to end by itself
// ns: the connection managers' time wait, and some more. Until then a queue pair of the cache is refused.
constexpr std::uint64_t kRemembered = 2'000'000'000;

// Requests while one of the times lasts.
struct Times {
  std::vector<double> us;
  double seconds = 0;
  double rate() const { return seconds > 0 ? static_cast<double>(us.size()) / seconds : 0; }
  double at(double share) {
    if (us.empty()) return 0;
    const auto place = us.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(us.size() - 1));
    std::nth_element(us.begin(), place, us.end());
    return *place;
  }
};

// Requests round some channels.
class Load {
 public:
  explicit Load(const tools::Session& session) : context_(session.get()) {}

  void go_over(std::vector<weft_channel*> channels) { channels_ = std::move(channels); }
  void lose(const weft_channel* c) { std::erase(channels_, c); }
  void count_into(Times* times) { times_ = times; }
  bool idle() const { return outstanding_ == 0; }
  std::uint64_t failed() const { return failed_; }

  void fill() {
    while (outstanding_ < kOutstanding && !channels_.empty()) {
      weft_message* const m = weft_allocate(context_, kBytes);
      if (m == nullptr) return;
      weft_channel* const c = channels_[next_++ % channels_.size()];
      if (weft_call(c, m, now_ns(), 0, nullptr) != 0) {  // its window is full: the next one
        weft_release(context_, m);
        return;
      }
      ++outstanding_;
    }
  }
  void see(const weft_notice& n) {
    if (n.message != nullptr) weft_release(context_, n.message);
    if (n.kind == WEFT_OUTCOME) ++failed_;
    if (n.kind == WEFT_RESPONSE && times_ != nullptr)
      times_->us.push_back(static_cast<double>(now_ns() - n.user) / 1e3);
    if (n.kind == WEFT_OUTCOME || n.kind == WEFT_RESPONSE) --outstanding_;
  }

 private:
  weft_context* context_;
  std::vector<weft_channel*> channels_;
  std::size_t next_ = 0;
  std::uint32_t outstanding_ = 0;
  std::uint64_t failed_ = 0;
  Times* times_ = nullptr;
};

struct Row {
  std::size_t open = 0;  // before and after
  std::size_t open_after = 0;
  std::uint64_t failed = 0, broken = 0, refused = 0, made = 0, reused = 0, naks = 0;
  Times calm, storm, after;
  std::vector<double> back_us;
};

class Host {
 public:
  Host(FarEnd& far, const Options& o) : far_(far), o_(o) {}

  // Queue pairs for half of the channels wait in the cache from here on, if there is one.
  Result<void> prepare(std::uint16_t id) {
    const std::uint32_t half = o_.connections / 2;
    auto pair = Pair::open(far_, id,
                           {"channels=" + std::to_string(o_.connections + half + 1), "depth=8",
                            "small_msg_size=256", "calls=64", "connect_ms=60000", "keepalive_intv_ms=600000",
                            "cached_qps=" + std::to_string(id == kFreshContext ? 0 : half)});
    if (!pair) return tl::unexpected(pair.error());
    pair_ = std::move(*pair);
    if (auto begun = pair_->serve(0, true); !begun) return begun;
    Opening opening(far_, *pair_);
    if (auto done = opening.wait_for(o_.connections + half - 1, kLimit); !done) return done;
    std::vector<weft_channel*> all = opening.open();
    std::vector<weft_channel*> more;
    for (; more.size() < half; all.pop_back()) more.push_back(all.back());
    all.push_back(pair_->channel());
    if (auto closed = close_all(pair_->session(), more, kLimit); !closed) return closed;
    channels_ = std::move(all);
    return pair_->stop();
  }

  // `over` seconds lie between the first channel that goes and the last one; 0: they go at once.
  Result<void> upgrade(double over, Row& r) {
    rest(r);
    if (auto begun = pair_->serve(0, true); !begun) return begun;
    const std::uint64_t made = count("qps_made");
    const std::uint64_t reused = count("qps_reused");
    const auto before = naks(r);
    if (!before) return tl::unexpected(before.error());
    Load load(pair_->session());
    r.open = channels_.size();
    if (auto done = keep_on(load, r.calm, r); !done) return done;
    if (auto done = go_and_come_back(load, over, r); !done) return done;
    r.open_after = channels_.size();
    if (auto done = keep_on(load, r.after, r); !done) return done;
    r.failed = load.failed();
    r.made = count("qps_made") - made;
    r.reused = count("qps_reused") - reused;
    if (auto ended = pair_->stop(); !ended) return ended;
    const auto now = naks(r);
    if (!now) return tl::unexpected(now.error());
    r.naks = *now - *before;
    return {};
  }

 private:
  // Requests over all channels for a while.
  Result<void> keep_on(Load& load, Times& times, Row& r) {
    load.go_over(channels_);
    const double wanted = o_.quick ? 0.05 : 2;
    // What the last change has left behind is not counted.
    const auto run = [&](double seconds) {
      const std::uint64_t until = now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
      turn(
          load, r, [](const weft_notice&) {}, [&] { return now_ns() > until; });
    };
    run(wanted / 10);
    load.count_into(&times);
    const std::uint64_t began = now_ns();
    run(wanted);
    times.seconds = static_cast<double>(now_ns() - began) / 1e9;
    load.count_into(nullptr);
    return drain(load, r);
  }

  Result<void> go_and_come_back(Load& load, double over, Row& r) {
    const std::size_t half = channels_.size() / 2;
    const std::vector<weft_channel*> going(channels_.begin(),
                                           channels_.begin() + static_cast<std::ptrdiff_t>(half));
    Opening opening(far_, *pair_);
    channels_.erase(channels_.begin(), channels_.begin() + static_cast<std::ptrdiff_t>(half));
    load.go_over(channels_);
    load.count_into(&r.storm);
    const std::uint64_t began = now_ns();
    std::size_t gone = 0;
    // A closed channel's place may serve the next one, so each counts once.
    std::set<const weft_channel*> expected(going.begin(), going.end());
    const auto see = [&](const weft_notice& n) {
      opening.see(n);
      if (n.kind != WEFT_CLOSED) return;
      if (opening.lose(n.channel)) ++r.broken;
      if (expected.erase(n.channel) == 0) return;
      opening.ask(1);
    };
    const bool ended = turn(load, r, see, [&] {
      const double passed = static_cast<double>(now_ns() - began) / 1e9;
      const auto due = over <= 0 || passed >= over
                           ? half
                           : static_cast<std::size_t>(passed / over * static_cast<double>(half));
      for (; gone < due; ++gone) {
        if (expected.contains(going[gone])) weft_close(going[gone]);
      }
      opening.step();
      return (gone == half && expected.empty() && opening.missing() == 0) || !opening.why().empty();
    });
    r.storm.seconds = static_cast<double>(now_ns() - began) / 1e9;
    load.count_into(nullptr);
    if (!opening.why().empty()) return fail("a channel: " + opening.why());
    if (!ended)
      return fail("the channels do not come back: " + std::to_string(expected.size()) + " are not closed, " +
                  std::to_string(opening.missing()) + " not open again, and " +
                  std::to_string(opening.refused()) + " were refused");
    closed_ = now_ns();
    r.refused = opening.refused();
    r.back_us = opening.us();
    channels_.insert(channels_.end(), opening.open().begin(), opening.open().end());
    return drain(load, r);
  }
  // A channel that is gone; false: it is none of those that are to stay.
  bool lose(Load& load, const weft_channel* c) {
    load.lose(c);
    return std::erase(channels_, c) != 0;
  }

  // Until `done`, or for kLimit seconds; false: it gave up.
  bool turn(Load& load, Row& r, const std::function<void(const weft_notice&)>& see,
            const std::function<bool()>& done) {
    return poll_until(
        pair_->session(), kLimit,
        [&](const weft_notice& n) {
          load.see(n);
          if (n.kind == WEFT_CLOSED) r.broken += lose(load, n.channel) ? 1U : 0U;
          see(n);
        },
        [&] {
          load.fill();
          return done();
        },
        1);
  }
  Result<void> drain(Load& load, Row& r) {
    load.go_over({});
    if (!turn(
            load, r, [](const weft_notice&) {}, [&] { return load.idle(); }))
      return fail("requests stay without an answer");
    return {};
  }

  void rest(Row& r) {
    Load none(pair_->session());
    const std::uint64_t until = closed_ + kRemembered;
    turn(
        none, r, [](const weft_notice&) {}, [&] { return now_ns() >= until; });
  }
  static std::uint64_t count(const char* column) {
    std::uint64_t n = 0;
    (void)counted("channels", "context", column, n);
    return n;
  }
  // Of this process's NIC.
  Result<std::uint64_t> naks(Row& r) {
    Load none(pair_->session());
    const std::uint64_t settled = now_ns() + kPageAge;
    turn(
        none, r, [](const weft_notice&) {}, [&] { return now_ns() > settled; });
    std::uint64_t n = 0;
    if (!counted("nic", "nic", "nak_rnr", n))
      return fail("this process has no statistics page to count NAKs in (WEFT_STAT=0?)");
    return n;
  }

  FarEnd& far_;
  const Options& o_;
  std::unique_ptr<Pair> pair_;
  std::vector<weft_channel*> channels_;
  std::uint64_t closed_ = now_ns();  // when the last channels were
};

record::Record record_of(Times& t) {
  record::Record r;
  r.set("requests_per_second", t.rate())
      .set("seconds", t.seconds)
      .set("us_p50", t.at(0.5))
      .set("us_p99", t.at(0.99));
  return r;
}

void tell(const char* name, Row& r, Measured& out) {
  const double kept = r.calm.rate() > 0 ? r.storm.rate() / r.calm.rate() : 0;
  const double jitter = r.calm.at(0.99) > 0 ? r.storm.at(0.99) / r.calm.at(0.99) : 0;
  Times back{r.back_us, 0};
  record::Record one;
  one.set("channels", std::uint64_t{r.open})
      .set("channels_after", std::uint64_t{r.open_after})
      .set("failed", r.failed)
      .set("broken", r.broken)
      .set("naks", r.naks)
      .set("calm", record_of(r.calm))
      .set("meanwhile", record_of(r.storm))
      .set("after", record_of(r.after))
      .set("kept", kept)
      .set("jitter", jitter)
      .set("back_us_p99", back.at(0.99))
      .set("refused", r.refused)
      .set("made", r.made)
      .set("reused", r.reused);
  out.record.set(name, std::move(one));
  std::array<char, 200> line{};
  std::snprintf(line.data(), line.size(),
                "%-8s %8zu %10.0f %8.0f %10.0f %8.0f %10.0f %8.0f %9.3f %7llu %6llu\n", name, r.open,
                r.calm.rate(), r.calm.at(0.99), r.storm.rate(), r.storm.at(0.99), r.after.rate(),
                r.after.at(0.99), r.storm.seconds, static_cast<unsigned long long>(r.refused),
                static_cast<unsigned long long>(r.failed + r.broken));
  out.text += line.data();
}

}  // namespace

Result<Measured> scale(FarEnd& far, const Options& o) {
  Measured out;
  out.record.set("connections", std::uint64_t{o.connections});
  out.text =
      "                    before               meanwhile            after              half back in\n"
      "         channels  requests/s p99 us  requests/s p99 us  requests/s p99 us   seconds refused failed\n";
  {
    Host host(far, o);
    if (auto done = host.prepare(kCachedContext); !done) return tl::unexpected(done.error());
    for (const bool rolling : {true, false}) {
      Row r;
      if (auto done = host.upgrade(rolling ? (o.quick ? 0.05 : 2.0) : 0, r); !done)
        return tl::unexpected(done.error());
      tell(rolling ? "rolling" : "storm", r, out);
    }
  }
  Host host(far, o);
  if (auto done = host.prepare(kFreshContext); !done) return tl::unexpected(done.error());
  Row r;
  if (auto done = host.upgrade(0, r); !done) return tl::unexpected(done.error());
  tell("fresh", r, out);
  out.text += "requests of " + std::to_string(kBytes) + " bytes, " + std::to_string(kOutstanding) +
              " without an answer; meanwhile: over the half that stays\n";
  return out;
}

}  // namespace weft::bench
