// The conformance suite: what every loss-recovery scheme must do, whatever its algorithm. The transport's own
// Sender (sender.h) and a receiver's stream are connected by a wire that loses, without headers, queue pairs
// or a clock: silence is when nothing is on the wire.
//
//   delivery      whatever is lost, in both directions, every packet is accepted exactly once, in a bounded
//                 number of transmissions
//   cause         next_lost names nothing that is acknowledged, nor what was selectively acknowledged while
//                 the sender holds a bitmap to know it by
//   pools         every block is given back; with a pool of zero the same packets arrive
//   credit        what the path was charged is given back
//   classify      what the receiver has is a duplicate, what it keeps can be asked for no further
#include "core/transport/loss/scheme.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>

#include "core/base/prng.h"
#include "core/transport/dialect.h"
#include "core/transport/loss/advance.h"
#include "core/transport/sender.h"

namespace weft {
namespace {

constexpr std::uint32_t kWindow = 64;
constexpr std::uint64_t kFirst = 0x1'00FF'FFF0;  // 24-bit numbers wrap soon

struct Answer {
  Seq expected{};
  bool nack = false;
  Seq trigger{};
  bool kept = false;
  Hole hole;
};

class Line {
 public:
  Line(const LossScheme& scheme, std::uint32_t blocks, std::uint64_t seed, std::uint32_t loss)
      : scheme_(scheme), pool_(blocks, kWindow), random_(seed), loss_(loss) {
    s.start(Seq{kFirst});
    r.expected = Seq{kFirst};
  }

  // Sends `total` packets, `cap` of them in flight at most. False: it did not end.
  bool run(std::uint32_t total, std::uint32_t cap) {
    const Seq end = Seq{kFirst} + total;
    for (std::uint32_t silences = 0; s.una < end;) {
      const bool sent = send(end, cap);
      if (!answers_.empty()) {
        const Answer a = answers_.front();
        answers_.pop_front();
        take(a);
      } else if (!sent) {
        if (++silences > 40 * total) return false;
        Sending half = sending();
        half.strike(now_);
        half.resend();
      }
      now_ = now_.after(microseconds(1));
      if (transmissions > 400U * total) return false;
      EXPECT_LE(s.una, s.nxt);
      EXPECT_LE(s.nxt, s.max);
      if (::testing::Test::HasFailure()) return false;
    }
    return r.expected == end;
  }

  std::uint32_t blocks_in_use() const { return pool_.in_use(); }
  std::uint64_t bytes_in_flight() const { return path_.in_flight; }

  Sender s;
  RecvStream r;
  std::set<std::uint64_t> accepted;
  std::uint64_t transmissions = 0;

 private:
  static constexpr std::uint64_t kBytes = 100;  // of each packet
  LossContext context() { return {pool_, counters_}; }
  Sending sending() {
    return {s, account_, silence_, scheme_, context(), path_, {config_, round_trip_, 0, true}};
  }

  bool send(Seq end, std::uint32_t cap) {
    Sending half = sending();
    Seq seq;
    const bool repair = half.next_repair(seq);
    if (repair) {
      Seq again;
      EXPECT_TRUE(half.next_repair(again));
      EXPECT_EQ(again, seq) << "looking again names another packet";
      EXPECT_GE(seq, s.una) << "it was acknowledged";
      EXPECT_LT(seq, s.max) << "it was never sent";
      if (s.block == kNoBlock) sacked_.clear();
      if (&scheme_ != &kIrnWithoutSack && &scheme_ != &kSrnicStateless) {
        EXPECT_EQ(sacked_.count(seq.v), 0U) << "it was selectively acknowledged";
      }
    } else {
      if (s.nxt < s.max) s.nxt = scheme_.skip_received(half.loss, s, s.nxt);
      EXPECT_LE(s.nxt, s.max);
      if (s.nxt >= end || s.nxt - s.una >= cap) return false;
      seq = s.nxt;
    }
    half.left({seq, 1, kBytes, repair ? Origin::kRepair : Origin::kNext}, now_);
    ++transmissions;
    if (!random_.chance(loss_)) arrive(seq);
    return true;
  }

  void arrive(Seq seq) {
    LossContext c = context();
    if (seq == r.expected) {
      const Seq before = r.expected;
      receive_in_order(pool_, r, true);
      EXPECT_TRUE(accepted.insert(before.v).second) << "accepted twice";
      nak_sent_ = false;
      return answer({r.expected, false, {}, false, {}});
    }
    switch (scheme_.classify(c, r, seq)) {
      case Arrival::kDuplicate:
        EXPECT_TRUE(accepted.count(seq.v) == 1) << "called a duplicate, but never accepted";
        return answer({r.expected, false, {}, false, {}});
      case Arrival::kKeep:
        EXPECT_GT(seq, r.expected);
        scheme_.hold(c, r, seq, true);
        EXPECT_TRUE(accepted.insert(seq.v).second) << "accepted twice";
        EXPECT_EQ(scheme_.classify(c, r, seq), Arrival::kDuplicate);
        return answer({r.expected, true, seq, true, hole_before(pool_, r, seq)});
      case Arrival::kPoolEmpty:
      case Arrival::kDecline:
        return answer({r.expected, true, seq, false, {}});
      case Arrival::kDrop:
        if (!nak_sent_) answer({r.expected, true, r.expected, false, {}});
        nak_sent_ = true;
        return;
      case Arrival::kBeyond:
        return;
    }
  }

  void answer(const Answer& a) {
    if (!random_.chance(loss_)) answers_.push_back(a);
  }

  void take(const Answer& a) {
    Sending half = sending();
    if (a.expected > s.una) {
      half.acknowledge(a.expected, now_);
      half.settle((s.una - Seq{kFirst}) * kBytes);
    }
    if (!a.nack || s.una >= s.max || a.expected != s.una) return;
    half.nack({a.trigger, a.kept && a.trigger != s.una, a.hole}, a.kept, now_);
    if (a.kept && s.block != kNoBlock) sacked_.insert(a.trigger.v);
  }

  const LossScheme& scheme_;
  const DeviceConfig config_;
  SenderAccount account_;
  SenderSilence silence_;
  Path path_;
  RoundTrip round_trip_;
  Time now_{};
  LossPool pool_;
  Counters counters_;
  Prng random_;
  std::uint32_t loss_;
  std::deque<Answer> answers_;
  std::set<std::uint64_t> sacked_;
  bool nak_sent_ = false;
};

class EveryScheme : public ::testing::TestWithParam<const LossScheme*> {
 protected:
  const LossScheme& scheme = *GetParam();
};

TEST_P(EveryScheme, DeliversEveryPacketOnceWhateverIsLost) {
  for (const std::uint32_t loss : {0U, 10'000U, 100'000U, 300'000U}) {
    for (const std::uint32_t cap : {1U, 7U, kWindow}) {
      for (const std::uint32_t blocks : {0U, 1U, 2U}) {
        for (std::uint64_t seed = 1; seed <= 25; ++seed) {
          SCOPED_TRACE(std::string(scheme.name) + " loss " + std::to_string(loss) + " cap " +
                       std::to_string(cap) + " blocks " + std::to_string(blocks) + " seed " +
                       std::to_string(seed));
          Line line(scheme, blocks, seed, loss);
          ASSERT_TRUE(line.run(200, cap));
          ASSERT_EQ(line.accepted.size(), 200U);
          ASSERT_EQ(line.blocks_in_use(), 0U);
          ASSERT_EQ(line.bytes_in_flight(), 0U);
          ASSERT_EQ(line.s.block, kNoBlock);
          ASSERT_EQ(line.r.held, 0U);
        }
      }
    }
  }
}

TEST_P(EveryScheme, ResendsNothingWhenNothingIsLost) {
  Line line(scheme, 2, 1, 0);
  ASSERT_TRUE(line.run(1000, kWindow));
  EXPECT_EQ(line.transmissions, 1000U);
}

// Nothing further is named once all that was lost has been sent again.
TEST_P(EveryScheme, NamesALostPacketOncePerRecovery) {
  LossPool pool(2, kWindow);
  Counters counters;
  LossContext c{pool, counters};
  SendStream s;
  s.start(Seq{kFirst});
  s.nxt = s.max = Seq{kFirst} + 10;
  scheme.on_nack(c, s,
                 {Seq{kFirst} + 1, dialect(scheme.mode).places_itself, {1, 0}});  // the first is missing
  std::uint32_t named = 0;
  Seq seq;
  while (s.recovering() && scheme.next_lost(c, s, seq)) {
    s.resent(seq);
    EXPECT_EQ(seq, Seq{kFirst});
    ASSERT_LE(++named, 1U);
  }
  // Those without selective recovery go back instead.
  EXPECT_TRUE(named == 1 || s.nxt == s.una);
  release_block(pool, s.block);
}

TEST_P(EveryScheme, TakesTheReceiverForWhatItIs) {
  LossPool pool(1, kWindow);
  Counters counters;
  LossContext c{pool, counters};
  RecvStream r;
  r.expected = Seq{kFirst};
  EXPECT_EQ(scheme.classify(c, r, Seq{kFirst} - 1), Arrival::kDuplicate);
  const Arrival next = scheme.classify(c, r, Seq{kFirst} + 1);
  // Who keeps nothing drops it, or says that it could not keep it.
  EXPECT_TRUE(next == Arrival::kKeep || next == Arrival::kDrop || next == Arrival::kDecline);
  if (next == Arrival::kKeep) {
    EXPECT_EQ(scheme.classify(c, r, Seq{kFirst} + kWindow), Arrival::kBeyond);
    scheme.hold(c, r, Seq{kFirst} + 1, false);
    EXPECT_EQ(scheme.classify(c, r, Seq{kFirst} + 1), Arrival::kDuplicate);
    EXPECT_EQ(r.held, 1U);
  }
  release_block(pool, r.block);
  EXPECT_EQ(pool.in_use(), 0U);
}

// Whoever goes back and finds a second gap on the way goes back again at once, not only after a time-out.
// What still comes of the first gap says nothing.
TEST(GoBackN, GoesBackForEachGap) {
  for (const LossScheme* scheme : {&kGoBackN, &kIrnGoBackN}) {
    LossPool pool(1, kWindow);
    Counters counters;
    LossContext c{pool, counters};
    SendStream s;
    s.start(Seq{kFirst});
    s.nxt = s.max = Seq{kFirst} + 10;
    scheme->on_nack(c, s, {Seq{kFirst} + 2, false, {}});
    EXPECT_EQ(s.nxt, s.una) << scheme->name;
    scheme->on_nack(c, s, {Seq{kFirst} + 3, false, {}});
    EXPECT_EQ(s.nxt, s.una) << scheme->name;
    s.nxt = s.max;
    s.una = Seq{kFirst} + 4;
    scheme->on_ack(c, s, 4);
    scheme->on_nack(c, s, {Seq{kFirst} + 6, false, {}});
    EXPECT_EQ(s.nxt, s.una) << scheme->name;
    EXPECT_EQ(counters.get(Counter::recoveries), 2U) << scheme->name;
  }
}

TEST(Schemes, HaveDifferentNamesAndModesComeFirst) {
  std::set<std::string> names;
  for (const LossScheme* s : loss_schemes()) {
    EXPECT_TRUE(names.insert(s->name).second) << s->name;
    EXPECT_EQ(find_loss_scheme(s->name), s);
  }
  for (std::uint8_t m = 0; m < wire::kModeCount; ++m)
    EXPECT_EQ(loss_schemes()[m]->mode, static_cast<wire::Mode>(m));
}

INSTANTIATE_TEST_SUITE_P(Rows, EveryScheme, ::testing::ValuesIn(loss_schemes().begin(), loss_schemes().end()),
                         [](const auto& p) {
                           std::string name = p.param->name;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace weft
