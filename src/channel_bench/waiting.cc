// Hybrid polling (X-RDMA §4.2) and the event fd (§4.4): what a program costs that waits for nothing, and how
// long its requests take when there are some.
//
//   polling   weft_wait never sleeps
//   hybrid    it looks busily after whatever happened, and then sleeps
//   sleeping  it sleeps at once
//
// Rows take turns. Then requests whose program sleeps in epoll, poll or select until the fd wakes it.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "channel_bench/bench.h"
#include "channel_bench/host.h"

namespace weft::bench {
namespace {

using tools::now_ns;

constexpr std::uint16_t kContext = 10;
constexpr std::uint32_t kBytes = 64;
constexpr std::uint32_t kMostAsked = 200;  // requests for each time that the fd is to wake the program
constexpr int kNap = 100;                  // ms that weft_wait may sleep

struct Way {
  const char* name;
  std::uint64_t spin_us;
};
constexpr std::array<Way, 3> kWays{{{"polling", 1'000'000'000}, {"hybrid", 50}, {"sleeping", 0}}};

struct Times {
  std::vector<double> idle_percent;
  std::vector<double> us;
};

class Sleeper {
 public:
  virtual ~Sleeper() = default;
  virtual bool wait(int ms) = 0;  // true: the fd is ready
};
class Epoll final : public Sleeper {
 public:
  explicit Epoll(int fd) : own_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event e{EPOLLIN, {}};
    epoll_ctl(own_, EPOLL_CTL_ADD, fd, &e);
  }
  ~Epoll() override { close(own_); }
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;
  bool wait(int ms) override {
    epoll_event e{};
    return epoll_wait(own_, &e, 1, ms) == 1;
  }

 private:
  int own_;
};
class Poll final : public Sleeper {
 public:
  explicit Poll(int fd) : fd_(fd) {}
  bool wait(int ms) override {
    pollfd p{fd_, POLLIN, 0};
    return ::poll(&p, 1, ms) == 1;
  }

 private:
  int fd_;
};
class Select final : public Sleeper {
 public:
  explicit Select(int fd) : fd_(fd) {}
  bool wait(int ms) override {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd_, &set);
    timeval most{ms / 1000, (ms % 1000) * 1000};
    return select(fd_ + 1, &set, nullptr, nullptr, &most) == 1;
  }

 private:
  int fd_;
};

struct Woken {
  std::uint32_t asked = 0;
  std::uint32_t answered = 0;
  std::uint32_t by_fd = 0;    // times that the fd said so
  std::uint32_t by_time = 0;  // and that nothing did
};

// Until the fd has woken it so often. An answer that is here before the program sleeps wakes nobody.
Woken sleep_in(const Pair& pair, Sleeper& sleeper, std::uint32_t wanted) {
  weft_context* const context = pair.session().get();
  Woken w;
  while (w.by_fd < wanted && w.asked < kMostAsked * wanted && w.answered == w.asked) {
    weft_message* const m = weft_allocate(context, kBytes);
    if (m == nullptr || weft_call(pair.channel(), m, 0, 0, nullptr) != 0) break;
    ++w.asked;
    bool answered = false;
    const auto see = [&](const weft_notice& n) {
      answered = answered || n.kind == WEFT_RESPONSE;
      if (n.message != nullptr) weft_release(context, n.message);
    };
    for (const std::uint64_t end = now_ns() + 5'000'000'000; !answered && now_ns() < end;) {
      pair.session().wait(0, see);
      std::uint64_t sleep_us = 0;
      if (answered || weft_arm(context, &sleep_us) == 1) continue;
      // What is the context's own to do is its time to say.
      const int most = static_cast<int>(std::min<std::uint64_t>(sleep_us / 1000 + 1, 1000));
      ++(sleeper.wait(most) ? w.by_fd : w.by_time);
    }
    w.answered += answered ? 1U : 0U;
  }
  return w;
}

class WaitingPart {
 public:
  WaitingPart(FarEnd& far, const Options& o) : far_(far), o_(o) {}

  Result<Measured> go() {
    auto pair = Pair::open(far_, kContext, {"channels=2", "keepalive_intv_ms=0"});
    if (!pair) return tl::unexpected(pair.error());
    pair_ = std::move(*pair);
    if (auto begun = pair_->serve(); !begun) return tl::unexpected(begun.error());
    std::array<Times, kWays.size()> times;
    for (std::uint32_t turn = 0; turn < o_.turns; ++turn) {
      for (std::size_t i = 0; i < kWays.size(); ++i) {
        const std::size_t way = (turn + i) % kWays.size();
        if (auto done = measure(kWays[way], times[way]); !done) return tl::unexpected(done.error());
      }
    }
    Measured out;
    out.record.set("turns", std::uint64_t{o_.turns});
    out.text = "          idle (% of a core)   request (us)   over polling\n";
    for (std::size_t way = 0; way < kWays.size(); ++way) tell(kWays[way], times[way], times[0], out);
    if (auto done = events(out); !done) return tl::unexpected(done.error());
    if (auto ended = pair_->stop(); !ended) return tl::unexpected(ended.error());
    return out;
  }

 private:
  Result<void> measure(const Way& way, Times& t) {
    std::array<char, 256> why{};
    if (weft_set(pair_->session().get(), "spin_us", way.spin_us, why.data(), why.size()) != 0)
      return fail(std::string(why.data()));
    const auto us = call_us(*pair_, kBytes, o_.rounds, kNap);
    if (!us) return tl::unexpected(us.error());
    t.us.push_back(*us);
    const std::uint64_t began = now_ns();
    const std::uint64_t cost = thread_ns();
    const std::uint64_t until = began + (o_.quick ? 50'000'000 : 300'000'000);
    // It ends by itself: weft_wait does not outlast its time.
    while (now_ns() < until) pair_->session().wait(kNap, [](const weft_notice&) {});
    t.idle_percent.push_back(100 * static_cast<double>(thread_ns() - cost) /
                             static_cast<double>(now_ns() - began));
    return {};
  }

  static void tell(const Way& way, const Times& t, const Times& polling, Measured& out) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < t.us.size(); ++i) ratios.push_back(t.us[i] / polling.us[i]);
    record::Record r;
    r.set("idle_percent", median(t.idle_percent)).set("us", median(t.us)).set("over_polling", median(ratios));
    out.record.set(way.name, std::move(r));
    std::array<char, 120> line{};
    std::snprintf(line.data(), line.size(), "%-9s %18.2f %14.1f %14.2f\n", way.name, median(t.idle_percent),
                  median(t.us), median(ratios));
    out.text += line.data();
  }

  Result<void> events(Measured& out) {
    const int fd = weft_event_fd(pair_->session().get());
    if (fd < 0 || fd >= FD_SETSIZE) return fail("the context has no fd to sleep with");
    Epoll epoll(fd);
    Poll poll(fd);
    Select select(fd);
    const std::uint32_t wanted = o_.quick ? 5 : 100;
    const std::array<std::pair<const char*, Sleeper*>, 3> all{
        {{"epoll", &epoll}, {"poll", &poll}, {"select", &select}}};
    for (const auto& [name, sleeper] : all) {
      const Woken w = sleep_in(*pair_, *sleeper, wanted);
      record::Record r;
      r.set("wanted", std::uint64_t{wanted})
          .set("asked", std::uint64_t{w.asked})
          .set("answered", std::uint64_t{w.answered})
          .set("woken_by_fd", std::uint64_t{w.by_fd})
          .set("woken_by_time", std::uint64_t{w.by_time});
      out.record.set(name, std::move(r));
      std::array<char, 120> line{};
      std::snprintf(line.data(), line.size(), "%-6s %u of %u requests answered, woken %u times by the fd\n",
                    name, w.answered, w.asked, w.by_fd);
      out.text += line.data();
    }
    return {};
  }

  FarEnd& far_;
  const Options& o_;
  std::unique_ptr<Pair> pair_;
};

}  // namespace

Result<Measured> waiting(FarEnd& far, const Options& o) { return WaitingPart(far, o).go(); }

}  // namespace weft::bench
