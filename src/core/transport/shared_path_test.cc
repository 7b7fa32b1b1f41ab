// Every service on one path with little credit, and a network that loses: nobody waits for ever, and nobody
// keeps credit. RC gives it back by acknowledgements and time-outs, UC and UD by presumed flights.
#include <gtest/gtest.h>

#include <array>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

constexpr std::uint32_t kMessages = 80;

struct Shared : Hand {
  explicit Shared(std::uint64_t seed) : Hand(wire::Mode::kRoce, drawn(seed)), random(seed) {
    for (Ends& e : ends) {
      const auto kind = static_cast<std::size_t>(&e - ends.data());
      constexpr std::array kTypes{QpType::kRc, QpType::kRc, QpType::kRc, QpType::kUc, QpType::kUd};
      e.type = type = kTypes[kind];
      mode = static_cast<wire::Mode>(random.below(wire::kModeCount));
      mode_of_b = static_cast<wire::Mode>(random.below(wire::kModeCount));
      e.at_a = a.create(kNoSrq, type);
      e.at_b = b.create(kNoSrq, type);
      connect(e.at_a, e.at_b);
    }
    for (Side* s : {&a, &b})
      s->handle = *s->device.create_ah(s->pd, *s->device.open_path({other(*s).address}));
    loss = random.below(3) == 0 ? 0 : random.below(25);
  }
  struct Ends {
    QpType type{};
    Qpn at_a{};
    Qpn at_b{};
  };
  static DeviceConfig drawn(std::uint64_t seed) {
    Prng r(seed ^ 0x7061'7468);
    DeviceConfig c;
    c.path_credit = Bytes{100 + r.below(3000)};
    c.path_overhead = Bytes{r.below(100)};
    c.presumed_flight = microseconds(static_cast<std::int64_t>(1 + r.below(60)));
    c.read_chunk = r.below(2) == 0 ? 0U : 512U;
    c.burst_packets = static_cast<std::uint32_t>(1 + r.below(16));
    c.ack_coalesce = r.below(2) == 0;
    c.never_give_up = true;
    return c;
  }
  Side& other(Side& s) { return &s == &a ? b : a; }

  // A message from one side: an operation of its service.
  bool say(Side& s) {
    const Ends& e = ends[random.below(ends.size())];
    const std::uint32_t length = static_cast<std::uint32_t>(random.below(e.type == QpType::kUd ? 256 : 1500));
    const Qpn from = &s == &a ? e.at_a : e.at_b;
    constexpr std::array kOps{WrOpcode::kWrite, WrOpcode::kRead};
    SendWr wr;
    wr.opcode = e.type == QpType::kRc ? kOps[random.below(2)] : WrOpcode::kWrite;
    if (e.type == QpType::kUd) wr.opcode = WrOpcode::kSend;
    wr.flags = kSendSignaled;
    const Sge all{Side::kBase + random.below(4096), length, s.mr.lkey};
    wr.sges = {&all, 1};
    wr.remote_address = Side::kBase + 8192 + random.below(4096);
    wr.rkey = other(s).mr.rkey;
    wr.ah = s.handle;
    wr.remote_qpn = &s == &a ? e.at_b : e.at_a;
    wr.remote_qkey = kQkey;
    return s.post(from, wr).has_value();
  }
  void carry(Side& from, Side& to) {
    for (const Side::Frame& f : this->from(from)) {
      moved = true;
      if (random.below(100) >= loss) this->to(to, {f});
    }
  }
  void live() {
    std::uint32_t posted = 0;
    for (int turns = 0; turns < 200'000; ++turns) {
      now = now.after(microseconds(1));
      while (posted < kMessages && random.below(3) != 0) {
        if (!say(random.below(2) == 0 ? a : b)) break;
        ++posted;
      }
      moved = false;
      carry(a, b);
      carry(b, a);
      for (Side* s : {&a, &b}) {
        for (const WcStatus status : statuses(*s)) {
          ASSERT_EQ(status, WcStatus::kSuccess);
          ++completed;
        }
      }
      const Time next = std::min(a.device.next_deadline(), b.device.next_deadline());
      if (!moved && posted == kMessages) {
        if (next == kNever) break;
        now = std::max(now, next);
      }
      a.device.on_timer(now);
      b.device.on_timer(now);
    }
    EXPECT_EQ(completed, kMessages);
    for (Side* s : {&a, &b}) {
      EXPECT_EQ(s->device.path_in_flight(*s->device.open_path({other(*s).address})).n, 0U);
      s->device.check_invariants();
    }
  }

  Prng random;
  std::array<Ends, 5> ends;
  std::uint64_t loss = 0;  // percent
  std::uint32_t completed = 0;
  bool moved = false;
};

TEST(SharedPath, NobodyStarvesAndNobodyKeepsCredit) {
  std::uint64_t waits = 0;
  std::uint64_t repairs = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Shared world(seed);
    world.live();
    if (HasFailure()) return;
    waits += world.a.device.counters().get(Counter::path_blocked);
    repairs += world.a.device.counters().get(Counter::tx_retransmitted);
  }
  EXPECT_GT(waits, 500U * 5);
  EXPECT_GT(repairs, 500U * 5);
}

// What other queue pairs have on its path is on its way all the same.
TEST(SharedPath, ADestroyedQueuePairGivesBackItsOwnCreditAlone) {
  DeviceConfig c;
  c.path_credit = {8192};
  TwoDevices d(wire::Mode::kRoce, c, QpType::kUc);
  const Qpn x = d.a.create(kNoSrq, QpType::kUc);
  const Qpn y = d.b.create(kNoSrq, QpType::kUc);
  d.connect(x, y);
  ASSERT_TRUE(d.a.post(x, d.request(WrOpcode::kWrite, 0, 1024, 0)));
  d.post(d.request(WrOpcode::kWrite, 0, 2048, 0));
  while (d.turn()) {
  }
  const PathId path = *d.a.device.open_path({d.b.address});
  const std::uint64_t both = d.a.device.path_in_flight(path).n;
  ASSERT_TRUE(d.a.device.destroy_qp(x));
  EXPECT_EQ(d.a.device.path_in_flight(path).n, both * 2 / 3);
  d.run();
  EXPECT_EQ(d.a.device.path_in_flight(path).n, 0U);
}

}  // namespace
}  // namespace weft
