// A pair of boxes between two Devices, under the referee: what an early acknowledgement means, cell by cell
// of the table in docs/ARCHITECTURE.md, "What an acknowledgement means".
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "pair/world.h"

namespace weft::pair {
namespace {

constexpr std::uint32_t kBytes = 1000;

// One end WRITEs messages, `depth` at a time.
class Writer : public Programs {
 public:
  Writer(World& world, wire::Mode mode, std::uint32_t messages, std::uint32_t depth)
      : messages_(messages), depth_(depth), random_(1) {
    for (std::uint32_t h = 0; h < 2; ++h) {
      Device& d = world.host(h).device;
      end_[h].pd = *d.alloc_pd();
      end_[h].send_cq = end_[h].recv_cq = *d.create_cq(1024);
      end_[h].caps.max_send_wr = 256;
      end_[h].timeout = 12;  // 17 ms
      end_[h].mode = mode;
    }
    source_ = world.host(0).allocate(end_[0].pd, kBytes, 0, random_);
    target_ = world.host(1).allocate(end_[1].pd, messages * kBytes, kLocalWrite | kRemoteWrite, random_);
    const World::Connection made = world.connect(0, end_[0], 1, end_[1], 1024);
    qpn_ = made.a;
    far_qpn_ = made.b;
  }

  Time next_wake() const override { return pause_until_ == Time{} ? kNever : pause_until_; }
  bool waiting() const override { return !failed_ && done_ < messages_; }
  void act(World& world, Time now) override {
    Completion polled[64];
    while (const std::uint32_t n = world.poll(0, end_[0].send_cq, polled)) {
      for (const Completion& c : std::span(polled).first(n)) {
        if (c.status == WcStatus::kSuccess) {
          ++done_;
          latencies_.push_back(now - posted_.front());
        } else if (!failed_) {
          failed_ = true;
          status_ = c.status;
        }
        posted_.pop_front();
      }
    }
    if (done_ >= leave_at_) {
      leave_at_ = UINT32_MAX;
      world.destroy(1, far_qpn_);
    }
    if (pause_until_ > now) return;
    pause_until_ = {};
    while (!failed_ && next_ < messages_ && posted_.size() < depth_) {
      if (next_ == pause_at_) {
        pause_at_ = UINT32_MAX;
        pause_until_ = now + pause_;
        return;
      }
      const Sge sge{source_.address, kBytes, source_.mr.lkey};
      SendWr wr;
      wr.wr_id = next_ + 1;
      wr.opcode = WrOpcode::kWrite;
      wr.flags = kSendSignaled;
      wr.sges = {&sge, 1};
      wr.remote_address = target_.address + std::uint64_t{next_} * kBytes;
      wr.rkey = next_ == bad_ ? Key{target_.mr.rkey.v ^ 0x55U} : target_.mr.rkey;
      ASSERT_TRUE(world.post_send(0, qpn_, wr));
      posted_.push_back(now);
      ++next_;
    }
  }

  // How many of the messages are in the far memory, whole.
  std::uint32_t arrived() const { return arrived(messages_); }
  // What was complete and is not there. Messages complete in order, and behind a gap others may be there.
  std::uint32_t lost() const { return done_ - arrived(done_); }
  std::uint32_t done() const { return done_; }
  bool failed() const { return failed_; }
  WcStatus status() const { return status_; }
  Duration median() const {
    std::vector<Duration> sorted = latencies_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  void refuse(std::uint32_t message) { bad_ = message; }
  void leave(std::uint32_t after) { leave_at_ = after; }  // the far end does
  void pause(std::uint32_t before, Duration how_long) {
    pause_at_ = before;
    pause_ = how_long;
  }

 private:
  std::uint32_t arrived(std::uint32_t first) const {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < first; ++i) {
      const auto at = target_.bytes.subspan(std::size_t{i} * kBytes, kBytes);
      n += std::equal(at.begin(), at.end(), source_.bytes.begin()) ? 1 : 0;
    }
    return n;
  }

  std::uint32_t messages_;
  std::uint32_t depth_;
  Prng random_;
  EndConfig end_[2];
  Buffer source_;
  Buffer target_;
  Qpn qpn_;
  Qpn far_qpn_;
  std::uint32_t leave_at_ = UINT32_MAX;
  std::uint32_t next_ = 0;
  std::uint32_t done_ = 0;
  std::uint32_t bad_ = UINT32_MAX;
  std::uint32_t pause_at_ = UINT32_MAX;
  Duration pause_{};
  Time pause_until_{};
  bool failed_ = false;
  WcStatus status_ = WcStatus::kSuccess;
  std::deque<Time> posted_;
  std::vector<Duration> latencies_;
};

constexpr Duration kLineDelay = milliseconds(1);

WorldConfig far_apart(Duration delay = kLineDelay) {
  WorldConfig w;
  for (DeviceConfig& d : w.hosts) d.max_qp = 4;
  w.network.delay = microseconds(1);
  w.rate = gigabits(10);
  LineConfig& l = w.line;
  l.there = true;
  l.network.delay = delay;
  l.rate = gigabits(10);
  for (std::uint64_t i = 0; i < 2; ++i) {
    wan::BoxConfig& b = l.boxes[i];
    b.instance = 100 + i;
    b.seed = 7 + i;
    b.secret = {1, 2, 3};
    b.halves = 8;
    b.frames = 4096;
    b.store = Bytes{8'000'000};
    b.line_timeout = delay * 4;
    b.quiet = delay * 2;
    b.give_up = milliseconds(200);
    b.patience = delay * 8;
    b.hello = delay * 2;
    b.calm = 4;
    b.site_tries = 20;
  }
  return w;
}

class InEachDialect : public testing::TestWithParam<wire::Mode> {};

struct Site {
  explicit Site(const WorldConfig& config, std::uint32_t messages = 400, std::uint32_t depth = 8)
      : world(config), app(world, InEachDialect::GetParam(), messages, depth) {}
  void go() { world.run(app); }
  std::uint64_t count(std::uint32_t box, wan::BoxCounter c) const {
    return world.line()->box(box).counters().get(c);
  }
  World world;
  Writer app;
};

class EarlyAcknowledgement : public InEachDialect {};
class FarAcknowledgement : public InEachDialect {};
class Line : public InEachDialect {};
class FarBox : public InEachDialect {};
class NearBox : public InEachDialect {};
class BothBoxes : public InEachDialect {};
class Refusal : public InEachDialect {};
class FarEndpoint : public InEachDialect {};
class Requester : public InEachDialect {};
class Rest : public InEachDialect {};
class Store : public InEachDialect {};
class Secret : public InEachDialect {};

TEST_P(EarlyAcknowledgement, CompletesAtTheNearBox) {
  Site r(far_apart());
  r.go();
  EXPECT_TRUE(r.world.referee().report().clean()) << r.world.referee().report().text();
  EXPECT_EQ(r.app.done(), 400U);
  EXPECT_EQ(r.app.arrived(), 400U);
  EXPECT_LT(r.app.median(), microseconds(50));
  EXPECT_GT(r.count(0, wan::BoxCounter::taken), 300U);
  EXPECT_GT(r.count(1, wan::BoxCounter::swallowed), 0U);
}

TEST_P(FarAcknowledgement, CompletesAfterTheLine) {
  WorldConfig w = far_apart();
  for (wan::BoxConfig& b : w.line.boxes) b.acknowledge = wan::Acknowledge::kFar;
  Site r(w);
  r.go();
  EXPECT_TRUE(r.world.referee().report().clean()) << r.world.referee().report().text();
  EXPECT_EQ(r.app.arrived(), 400U);
  EXPECT_GE(r.app.median(), kLineDelay * 2);
  EXPECT_GT(r.count(0, wan::BoxCounter::taken), 300U);
}

// NTT §5: local throughput no longer depends on distance.
TEST_P(EarlyAcknowledgement, IsFlatOverDistance) {
  const auto last = [](Duration delay) {
    Site r(far_apart(delay), 2000);
    r.go();
    EXPECT_EQ(r.app.arrived(), 2000U);
    return r.app.median();
  };
  const Duration near = last(microseconds(50));
  EXPECT_LE(last(milliseconds(5)).ps, near.ps * 2);
}

TEST_P(Line, ThatLosesATenthIsRepairedByTheBoxesAlone) {
  WorldConfig w = far_apart();
  w.line.network.loss = 100'000;
  Site r(w, 2000);
  r.go();
  EXPECT_TRUE(r.world.referee().report().clean()) << r.world.referee().report().text();
  EXPECT_EQ(r.app.arrived(), 2000U);
  EXPECT_FALSE(r.app.failed());
  EXPECT_GT(r.count(0, wan::BoxCounter::line_resent), 100U);
  // What came before the boxes knew the connection is the endpoint's own to repair.
  EXPECT_LT(r.world.host(0).device.counters().get(Counter::tx_retransmitted), 100U);
}

TEST_P(Line, ThatIsCutForAWhileLosesNothing) {
  WorldConfig w = far_apart();
  w.line.cut_at = Time{} + milliseconds(20);
  w.line.cut_for = milliseconds(30);
  Site r(w, 20'000);
  r.go();
  EXPECT_TRUE(r.world.referee().report().clean()) << r.world.referee().report().text();
  EXPECT_FALSE(r.app.failed());
  EXPECT_EQ(r.app.arrived(), 20'000U);
}

// The requester waits. Its own time-outs last longer than the cut.
TEST_P(Line, ThatIsCutForAWhileLosesNothingWhereItAcknowledgesFar) {
  WorldConfig w = far_apart();
  for (wan::BoxConfig& b : w.line.boxes) b.acknowledge = wan::Acknowledge::kFar;
  w.line.cut_at = Time{} + milliseconds(20);
  w.line.cut_for = milliseconds(30);
  Site r(w);
  r.go();
  EXPECT_TRUE(r.world.referee().report().clean()) << r.world.referee().report().text();
  EXPECT_FALSE(r.app.failed());
  EXPECT_EQ(r.app.arrived(), 400U);
  EXPECT_EQ(r.app.done(), 400U);
}

TEST_P(Line, ThatIsCutForGoodCompletesNothingThatIsNotThereWhereItAcknowledgesFar) {
  WorldConfig w = far_apart();
  for (wan::BoxConfig& b : w.line.boxes) b.acknowledge = wan::Acknowledge::kFar;
  w.line.cut_at = Time{} + milliseconds(20);
  w.line.cut_for = kForever;
  Site r(w);
  r.go();
  EXPECT_TRUE(r.app.failed());
  EXPECT_TRUE(r.app.status() == WcStatus::kRetryExceeded || r.app.status() == WcStatus::kRemoteOperation);
  EXPECT_GE(r.app.arrived(), r.app.done());
}

TEST_P(Line, ThatIsCutForGoodIsAnErrorAtTheNextRequest) {
  WorldConfig w = far_apart();
  w.line.rate = gigabits(1);  // what waits for it is in the box
  w.line.cut_at = Time{} + milliseconds(20);
  w.line.cut_for = kForever;
  Site r(w, 20'000);
  r.go();
  EXPECT_TRUE(r.app.failed());
  EXPECT_GT(r.app.done(), r.app.arrived()) << "what was acknowledged early is missing";
}

TEST_P(FarBox, ThatIsRestartedLosesNothing) {
  for (const auto acknowledge : {wan::Acknowledge::kEarly, wan::Acknowledge::kFar}) {
    WorldConfig w = far_apart();
    for (wan::BoxConfig& b : w.line.boxes) b.acknowledge = acknowledge;
    w.line.restart_at[1] = Time{} + milliseconds(20);
    Site r(w, acknowledge == wan::Acknowledge::kEarly ? 20'000 : 400);
    r.go();
    EXPECT_TRUE(r.world.referee().report().clean()) << r.world.referee().report().text();
    EXPECT_FALSE(r.app.failed());
    EXPECT_EQ(r.app.arrived(), r.app.done());
    EXPECT_GT(r.count(0, wan::BoxCounter::renewed), 0U);
    EXPECT_EQ(r.count(0, wan::BoxCounter::partner_found), 2U) << "the second one is new";
    EXPECT_EQ(r.count(0, wan::BoxCounter::partner_lost), 0U);
  }
}

TEST_P(NearBox, ThatIsRestartedLosesWhatItAcknowledgedEarlyAndTheConnectionFails) {
  WorldConfig w = far_apart();
  w.line.rate = gigabits(1);  // what waits for it is in the box
  w.line.restart_at[0] = Time{} + milliseconds(20);
  Site r(w, 20'000);
  r.go();
  EXPECT_TRUE(r.app.failed());
  EXPECT_GT(r.app.done(), r.app.arrived());
}

TEST_P(NearBox, ThatIsRestartedLosesNothingWhereItAcknowledgesFar) {
  WorldConfig w = far_apart();
  for (wan::BoxConfig& b : w.line.boxes) b.acknowledge = wan::Acknowledge::kFar;
  w.line.restart_at[0] = Time{} + milliseconds(20);
  Site r(w);
  r.go();
  EXPECT_TRUE(r.world.referee().report().clean()) << r.world.referee().report().text();
  EXPECT_FALSE(r.app.failed());
  EXPECT_EQ(r.app.arrived(), 400U);
}

TEST_P(BothBoxes, ThatAreRestartedLoseWhatTheyHadNotSentAndTheConnectionFails) {
  WorldConfig w = far_apart();
  w.line.rate = gigabits(1);  // what waits for it is in the near box
  for (Time& at : w.line.restart_at) at = Time{} + milliseconds(20);
  Site r(w, 20'000);
  r.go();
  EXPECT_TRUE(r.app.failed());
  EXPECT_GT(r.app.done(), r.app.arrived());
}

// The far site is cut for a while, so that what was acknowledged is in the far box; both boxes are restarted,
// each time a little later. Either everything arrives or the connection fails.
TEST_P(BothBoxes, ThatAreRestartedLoseNothingInSilenceWhereTheyAcknowledgeFar) {
  // Into the cut roce sends its whole window at each time-out, a selective dialect one packet.
  const bool roce = GetParam() == wire::Mode::kRoce;
  const std::uint64_t from = roce ? 3000 : 3150;
  const std::uint64_t cut = roce ? 400 : 120;
  std::uint32_t lost = 0;
  for (int step = 0; step < 24; ++step) {
    WorldConfig w = far_apart();
    for (wan::BoxConfig& b : w.line.boxes) b.acknowledge = wan::Acknowledge::kFar;
    for (std::uint64_t n = from; n < from + cut; ++n) w.script.push_back({n});
    for (Time& at : w.line.restart_at) at = Time{} + milliseconds(10) + milliseconds(1) * step;
    Site r(w, 2000, 64);
    r.go();
    if (r.app.failed()) {
      lost += r.app.lost() != 0 ? 1 : 0;
    } else {
      EXPECT_EQ(r.app.arrived(), 2000U) << "restarted " << step << " ms later";
    }
  }
  EXPECT_GT(lost, 0U) << "nothing was in the boxes of this world";
}

TEST_P(Refusal, OfTheFarEndpointReachesTheRequesterAtItsNextPacket) {
  for (const auto acknowledge : {wan::Acknowledge::kEarly, wan::Acknowledge::kFar}) {
    WorldConfig w = far_apart();
    for (wan::BoxConfig& b : w.line.boxes) b.acknowledge = acknowledge;
    Site r(w, 4000);
    r.app.refuse(1000);
    r.go();
    EXPECT_TRUE(r.app.failed());
    EXPECT_EQ(r.app.status(), WcStatus::kRemoteAccess);
    EXPECT_EQ(r.app.arrived(), 1000U) << "nothing behind the refused request is placed";
    EXPECT_GE(r.app.done(), 1000U);
    if (acknowledge == wan::Acknowledge::kEarly) {
      EXPECT_GT(r.app.done(), 1000U);
    }
  }
}

TEST_P(FarEndpoint, ThatIsGoneIsAnErrorAtTheNextPacket) {
  for (const auto acknowledge : {wan::Acknowledge::kEarly, wan::Acknowledge::kFar}) {
    WorldConfig w = far_apart();
    for (wan::BoxConfig& b : w.line.boxes) b.acknowledge = acknowledge;
    Site r(w, 20'000);
    r.app.leave(acknowledge == wan::Acknowledge::kEarly ? 5000 : 300);
    r.go();
    EXPECT_TRUE(r.app.failed());
    EXPECT_EQ(r.app.status(), WcStatus::kRemoteOperation);
  }
}

// It posts as many requests as the near box acknowledges, and nothing more: the last of them is refused, and
// nobody tells it.
TEST_P(Requester, ThatPostsNothingAnyMoreLearnsOfNoLaterError) {
  for (const auto acknowledge : {wan::Acknowledge::kEarly, wan::Acknowledge::kFar}) {
    WorldConfig w = far_apart();
    for (wan::BoxConfig& b : w.line.boxes) b.acknowledge = acknowledge;
    Site r(w, 400);
    r.app.refuse(399);
    r.go();
    EXPECT_EQ(r.app.done(), 400U);
    EXPECT_FALSE(r.app.failed());
    EXPECT_EQ(r.app.arrived(), 399U);
  }
}

// A half that rests is nobody's: what comes next starts as on a wire, and connections with the same numbers
// may follow.
TEST_P(Rest, ReleasesAHalf) {
  Site r(far_apart(), 800);
  r.app.pause(400, milliseconds(20));
  r.go();
  EXPECT_TRUE(r.world.referee().report().clean()) << r.world.referee().report().text();
  EXPECT_EQ(r.app.arrived(), 800U);
  EXPECT_GE(r.count(0, wan::BoxCounter::released), 2U);
  EXPECT_GE(r.count(0, wan::BoxCounter::owned), 2U);
}

TEST_P(Store, IsNeverAboveItsBound) {
  WorldConfig w = far_apart();
  for (wan::BoxConfig& b : w.line.boxes) b.store = Bytes{60'000};
  Site r(w, 2000);
  r.go();
  EXPECT_TRUE(r.world.referee().report().clean()) << r.world.referee().report().text();
  EXPECT_FALSE(r.app.failed());
  EXPECT_EQ(r.app.arrived(), 2000U);
  EXPECT_LE(r.world.line()->box(0).most_stored().n, 60'000U);
  EXPECT_GT(r.count(0, wan::BoxCounter::drop_full), 0U);
}

// Two boxes with different secrets: neither hears the other, and both are wires.
TEST_P(Secret, ThatDiffersMakesWiresOfBoth) {
  WorldConfig w = far_apart();
  w.line.boxes[1].secret = {9};
  Site r(w, 100);
  r.go();
  EXPECT_TRUE(r.world.referee().report().clean()) << r.world.referee().report().text();
  EXPECT_EQ(r.app.arrived(), 100U);
  EXPECT_GE(r.app.median(), kLineDelay * 2);
  EXPECT_EQ(r.count(0, wan::BoxCounter::owned), 0U);
  EXPECT_GT(r.count(1, wan::BoxCounter::not_heard), 0U);
}

std::string name_of(const testing::TestParamInfo<wire::Mode>& i) {
  return std::string(wire::mode_name(i.param));
}
constexpr wire::Mode kModes[] = {wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic};
INSTANTIATE_TEST_SUITE_P(Dialects, EarlyAcknowledgement, testing::ValuesIn(kModes), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, FarAcknowledgement, testing::ValuesIn(kModes), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, Line, testing::ValuesIn(kModes), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, FarBox, testing::ValuesIn(kModes), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, NearBox, testing::ValuesIn(kModes), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, BothBoxes, testing::ValuesIn(kModes), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, Refusal, testing::ValuesIn(kModes), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, FarEndpoint, testing::ValuesIn(kModes), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, Requester, testing::ValuesIn(kModes), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, Rest, testing::ValuesIn(kModes), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, Store, testing::ValuesIn(kModes), name_of);
INSTANTIATE_TEST_SUITE_P(Dialects, Secret, testing::ValuesIn(kModes), name_of);

}  // namespace
}  // namespace weft::pair
