// The conformance suite: what every row of the table of controllers must do, whatever its algorithm.
//
//   bounds        windows and rates within their limits, for any sequence of samples, extreme ones too
//   recovery      after losses, marks and CNPs stop, full speed comes back, and how soon
//   sharing       two flows through one bottleneck, the second begun later: the link stays busy, and the
//                 smaller share is at least what the row promises
//   determinism   the same samples, the same answers
//
// A new row needs an entry in kPromises, or the first test says so.
#include "core/transport/cc/controller.h"

#include <gtest/gtest.h>

#include <cstring>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "core/base/prng.h"

namespace weft {
namespace {

constexpr std::uint32_t kBdp = 110;
constexpr Rate kLine = gigabits(100);

// --- a bottleneck -----------------------------------------------------------------------------------
// Two senders, one FIFO at 40 Gb/s that marks as the row's source says, then a wire. For a row that does
// not listen to marks it drops instead; acknowledgements come
// back one by one. Packets are 4096 bytes and 82 of headers.

constexpr Rate kBottleneck = gigabits(40);
constexpr std::uint32_t kPacket = 4178;
constexpr Duration kWire = microseconds(8);  // each way

struct Marking {
  std::uint64_t low = 0;   // bytes of queue below which nothing is marked; all zero: no marking
  std::uint64_t high = 0;  // above which everything is
  std::uint32_t most = 0;  // chance at `high`, in millionths
  std::uint64_t buffer = 0;
};

struct Promise {
  const char* row;
  Marking marking;
  int busy;           // percent of the link that is used, at least
  int smaller;        // percent of the link that the smaller flow has, at least
  Duration recovers;  // to line rate or a full window, once nothing disturbs it any more
};

constexpr Marking kRandomDrops{200'000, 600'000, 50'000,
                               1'000'000};                        // a full queue drops in step with one flow
constexpr Marking kStep{120'000, 120'000, 1'000'000, 4'000'000};  // DCTCP: 30 KB per 10 Gb/s
constexpr Marking kRed{160'000, 640'000, 200'000, 4'000'000};     // HPCC's configuration at 40G
constexpr Marking kDeep{0, 0, 0, 4'000'000};
constexpr Promise kPromises[] = {
    {"none", kDeep, 99, 40, Duration{}},
    {"aimd", kRandomDrops, 95, 30, milliseconds(20)},
    {"dctcp", kStep, 95, 35, milliseconds(20)},
    {"dcqcn", kRed, 90, 30, milliseconds(500)},
    {"dcqcn-hpcc", kRed, 90, 30, milliseconds(500)},
    {"dcqcn-conweave", kRed, 90, 30, milliseconds(500)},
    {"dcqcn-ns3", kRed, 90, 30, milliseconds(500)},
    {"timely", kDeep, 90, 10, milliseconds(100)},
    {"timely-40g", kDeep, 90, 10, milliseconds(100)},
    {"timely-backoff", kRandomDrops, 90, 30, milliseconds(100)},
    {"timely-40g-backoff", kRandomDrops, 90, 30, milliseconds(100)},
    {"dcqcn-backoff", kRed, 90, 30, milliseconds(500)},
};

const Promise* promise_of(const Controller& row) {
  for (const Promise& p : kPromises) {
    if (std::string(p.row) == row.name) return &p;
  }
  return nullptr;
}

class Bottleneck {
 public:
  Bottleneck(const Controller& row, const Marking& marking, std::uint64_t seed)
      : row_(row), marking_(marking), random_(seed) {
    for (int i = 0; i < 2; ++i) row.start(flows_[i].state, {kBottleneck, kWindow, Time{}});
  }

  struct Share {
    std::uint64_t delivered[2] = {};
  };
  // What each flow delivers in the last half; the second begins after an eighth.
  Share run(Duration length) {
    push({Time{}, Kind::kSend, 0});
    push({Time{} + length / 8, Kind::kSend, 1});
    const Time half = Time{} + length / 2;
    Share share;
    while (!events_.empty() && events_.top().at <= Time{} + length) {
      const Due e = events_.top();
      events_.pop();
      now_ = e.at;
      Flow& f = flows_[e.flow];
      switch (e.kind) {
        case Kind::kSend:
          f.asked = false;
          send(e.flow);
          break;
        case Kind::kArrive:
          if (now_ > half) ++share.delivered[e.flow];
          if (e.marked && now_ >= f.next_cnp) {
            f.next_cnp = now_ + row_.cnp_interval;
            push({now_ + kWire, Kind::kCnp, e.flow});
          }
          push({now_ + kWire, Kind::kAck, e.flow, e.marked, e.sent});
          break;
        case Kind::kAck: {
          --f.in_flight;
          AckSample a;
          a.now = now_;
          a.packets = 1;
          a.congestion_echo = e.marked;
          // One packet is timed at a time, as in the transport.
          if (e.sent >= f.timed_from) {
            a.rtt = now_ - e.sent;
            f.timed_from = now_;
          }
          row_.on_ack(f.state, a);
          send(e.flow);
          break;
        }
        case Kind::kCnp:
          row_.on_cnp(f.state, now_);
          break;
        case Kind::kLoss:
          --f.in_flight;
          if (e.sent >= f.recovered) {  // of packets sent since the last recovery began
            row_.on_loss(f.state, {now_, false});
            f.recovered = now_;
          }
          send(e.flow);
          break;
      }
    }
    return share;
  }

 private:
  static constexpr std::uint32_t kWindow = 256;
  enum class Kind { kSend, kArrive, kAck, kCnp, kLoss };
  struct Due {
    Time at;
    Kind kind;
    std::size_t flow;
    bool marked = false;
    Time sent{};
    std::uint64_t order = 0;
    bool operator>(const Due& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  struct Flow {
    ControllerState state;
    std::uint32_t in_flight = 0;
    bool asked = false;  // a kSend is pending
    Time next_send{};
    Time next_cnp{};
    Time timed_from{};
    Time recovered{};
  };

  void push(Due e) {
    e.order = order_++;
    events_.push(e);
  }
  void send(std::size_t i) {
    Flow& f = flows_[i];
    for (;;) {
      const Permit p = row_.permit(f.state, now_);
      if (f.in_flight >= std::min(p.window_packets, kWindow)) return;  // an ACK comes
      if (f.next_send > now_) {
        if (!f.asked) push({f.next_send, Kind::kSend, i});
        f.asked = true;
        return;
      }
      ++f.in_flight;
      row_.on_sent(f.state, {now_, kPacket});
      // A sender's own port is as fast as the bottleneck.
      const Rate rate = p.rate.bps == 0 ? kBottleneck : p.rate;
      f.next_send = std::max(f.next_send, now_) + rate.time_for(Bytes{kPacket});
      enqueue(i);
    }
  }
  void enqueue(std::size_t i) {
    const Duration waits = std::max(free_at_, now_) - now_;
    const auto queued = static_cast<std::uint64_t>(waits.ps) * (kBottleneck.bps / 8'000'000'000U) / 1000U;
    if (queued + kPacket > marking_.buffer) {
      push({now_ + waits + kWire * 2, Kind::kLoss, i, false, now_});
      return;
    }
    std::uint64_t chance = 0;
    if (marking_.most != 0 && queued > marking_.low) {
      chance = queued >= marking_.high
                   ? 1'000'000
                   : marking_.most * (queued - marking_.low) / (marking_.high - marking_.low);
    }
    const bool marked = chance != 0 && random_.chance(static_cast<std::uint32_t>(chance));
    if (marked && !row_.wants_marks) {
      push({now_ + waits + kWire * 2, Kind::kLoss, i, false, now_});
      return;
    }
    free_at_ = std::max(free_at_, now_) + kBottleneck.time_for(Bytes{kPacket});
    push({free_at_ + kWire, Kind::kArrive, i, marked, now_});
  }

  const Controller& row_;
  Marking marking_;
  Prng random_;
  Flow flows_[2];
  std::priority_queue<Due, std::vector<Due>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  Time now_{};
  Time free_at_{};
};

// --- samples ----------------------------------------------------------------------------------------

void expect_sane(const Controller& row, ControllerState& s, Time now) {
  const Permit p = row.permit(s, now);
  EXPECT_GE(p.window_packets, 1U) << row.name;
  EXPECT_TRUE(p.window_packets <= kBdp || p.window_packets == UINT32_MAX) << row.name << p.window_packets;
  if (p.rate.bps == 0) return;
  EXPECT_GE(p.rate, kLeastRate) << row.name;
  EXPECT_LE(p.rate, kLine) << row.name;
}

// One random sample.
void disturb(const Controller& row, ControllerState& s, Prng& r, Time now, bool extreme) {
  const auto size = [&](std::uint32_t usual) {
    return extreme && r.below(3) == 0 ? UINT32_MAX - static_cast<std::uint32_t>(r.below(3))
                                      : static_cast<std::uint32_t>(r.below(usual));
  };
  switch (r.below(4)) {
    case 0: {
      AckSample a;
      a.now = now;
      a.packets = size(64);
      a.congestion_echo = r.below(4) == 0;
      if (r.below(2) == 0) a.rtt = picoseconds(static_cast<std::int64_t>(r.below(1'000'000'000)));
      if (extreme && r.below(4) == 0) a.rtt = r.below(2) == 0 ? kForever : picoseconds(1);
      row.on_ack(s, a);
      break;
    }
    case 1:
      row.on_loss(s, {now, r.below(2) == 0});
      break;
    case 2:
      row.on_cnp(s, now);
      break;
    default:
      row.on_sent(s, {now, size(65'000)});
      break;
  }
}

// Undisturbed: every packet is acknowledged after 12 us.
void undisturbed(const Controller& row, ControllerState& s, Time& now) {
  const Permit p = row.permit(s, now);
  now = now + microseconds(12);
  const std::uint32_t window = std::min(p.window_packets, kBdp);
  row.on_sent(s, {now, window * kPacket});
  AckSample a;
  a.now = now;
  a.packets = window;
  a.rtt = microseconds(12);
  row.on_ack(s, a);
}
bool at_full_speed(const Controller& row, ControllerState& s, Time now) {
  const Permit p = row.permit(s, now);
  return p.window_packets >= kBdp && (p.rate.bps == 0 || p.rate == kLine);
}

class EveryController : public ::testing::TestWithParam<const Controller*> {
 protected:
  const Controller& row = *GetParam();
};

TEST_P(EveryController, HasAPromiseANameAndASource) {
  ASSERT_NE(promise_of(row), nullptr) << "say in kPromises how the row " << row.name << " shares a link";
  EXPECT_GT(std::strlen(row.text), 10U);
  EXPECT_GT(std::strlen(row.source), 5U);
  EXPECT_GT(row.cnp_interval.ps, 0);
  EXPECT_EQ(find_controller(row.name).has_value(), true);
  EXPECT_EQ(controllers()[*find_controller(row.name)], &row);
}

TEST_P(EveryController, StartsAtLineRate) {
  ControllerState s;
  row.start(s, {kLine, kBdp, Time{}});
  EXPECT_TRUE(at_full_speed(row, s, Time{}));
}

TEST_P(EveryController, StaysWithinItsBoundsWhateverItHears) {
  for (const bool extreme : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      Prng r(seed);
      ControllerState s;
      Time now{};
      row.start(s, {kLine, kBdp, now});
      for (int i = 0; i < 2000; ++i) {
        const std::uint64_t step = extreme && r.below(100) == 0 ? 100'000'000'000ULL : 20'000'000ULL;
        now = now + picoseconds(static_cast<std::int64_t>(r.below(step)));
        disturb(row, s, r, now, extreme);
        expect_sane(row, s, now);
        if (HasFailure()) return;
      }
    }
  }
}

// A slow port: the floor of rates must not lie above the line.
TEST_P(EveryController, NeverExceedsASlowPort) {
  const Rate slow = megabits(10);
  Prng r(3);
  ControllerState s;
  row.start(s, {slow, 1, Time{}});
  for (int i = 0; i < 1000; ++i) {
    const Time now = Time{} + microseconds(10 * i);
    disturb(row, s, r, now, false);
    const Permit p = row.permit(s, now);
    ASSERT_LE(p.rate, slow);
    ASSERT_TRUE(p.window_packets == 1 || p.window_packets == UINT32_MAX);
  }
}

TEST_P(EveryController, ComesBackToFullSpeed) {
  Prng r(11);
  ControllerState s;
  Time now{};
  row.start(s, {kLine, kBdp, now});
  for (int i = 0; i < 3000; ++i) {
    now = now + microseconds(1 + static_cast<std::int64_t>(r.below(60)));
    disturb(row, s, r, now, false);
  }
  const Time calm = now;
  const Time end = calm + promise_of(row)->recovers;
  while (now < end && !at_full_speed(row, s, now)) undisturbed(row, s, now);
  EXPECT_TRUE(at_full_speed(row, s, now)) << row.name << ": window " << row.permit(s, now).window_packets
                                          << ", rate " << row.permit(s, now).rate.bps;
  RecordProperty("recovers_us", static_cast<int>((now - calm).us()));
}

// A controller that hears of trouble does something about it; `none` alone does not.
TEST_P(EveryController, SlowsDownForItsOwnSignal) {
  ControllerState s;
  Time now{};
  row.start(s, {kLine, kBdp, now});
  for (int i = 0; i < 40; ++i) {
    now = now + microseconds(100);
    AckSample a;
    a.now = now;
    a.packets = 16;
    a.congestion_echo = true;
    a.rtt = microseconds(600 + 10 * i);
    row.on_ack(s, a);
    row.on_cnp(s, now);
    row.on_loss(s, {now, false});
  }
  EXPECT_EQ(at_full_speed(row, s, now), &row == &kNoController);
}

TEST_P(EveryController, SharesABottleneck) {
  const Promise& p = *promise_of(row);
  const Duration length = milliseconds(400);
  Bottleneck link(row, p.marking, 5);
  const Bottleneck::Share share = link.run(length);
  const double full =
      static_cast<double>((length / 2).ps) / static_cast<double>(kBottleneck.time_for(Bytes{kPacket}).ps);
  const double a = 100.0 * static_cast<double>(share.delivered[0]) / full;
  const double b = 100.0 * static_cast<double>(share.delivered[1]) / full;
  EXPECT_GE(a + b, p.busy) << row.name << ": " << a << " and " << b << " percent";
  EXPECT_GE(std::min(a, b), p.smaller) << row.name << ": " << a << " and " << b << " percent";
  RecordProperty("first_percent", static_cast<int>(a));
  RecordProperty("second_percent", static_cast<int>(b));
}

TEST_P(EveryController, IsAFunctionOfItsSamples) {
  ControllerState s[2];
  for (ControllerState& each : s) {
    Prng r(21);
    Time now{};
    row.start(each, {kLine, kBdp, now});
    for (int i = 0; i < 5000; ++i) {
      now = now + picoseconds(static_cast<std::int64_t>(r.below(30'000'000)));
      disturb(row, each, r, now, true);
    }
  }
  EXPECT_EQ(std::memcmp(s[0].bytes, s[1].bytes, sizeof s[0].bytes), 0);
}

// A timer that nobody asks about catches up exactly: how often one asks makes no difference.
TEST_P(EveryController, DoesNotMindHowOftenItIsAsked) {
  ControllerState often, seldom;
  for (ControllerState* each : {&often, &seldom}) {
    row.start(*each, {kLine, kBdp, Time{}});
    for (int i = 0; i < 5; ++i) row.on_cnp(*each, Time{} + microseconds(60 * i));
  }
  for (int us = 300; us < 30'000; us += 7) static_cast<void>(row.permit(often, Time{} + microseconds(us)));
  const Time end = Time{} + milliseconds(30);
  EXPECT_EQ(row.permit(often, end).rate, row.permit(seldom, end).rate);
}

TEST(Controllers, HaveDifferentNames) {
  std::set<std::string> names;
  for (const Controller* c : controllers()) EXPECT_TRUE(names.insert(c->name).second) << c->name;
  EXPECT_EQ(controllers()[0], &kNoController);
  EXPECT_FALSE(find_controller("no such row").has_value());
}

INSTANTIATE_TEST_SUITE_P(Rows, EveryController,
                         ::testing::ValuesIn(controllers().begin(), controllers().end()), [](const auto& p) {
                           std::string name = p.param->name;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace weft
