// Which events count as progress, and after how long without progress the observer complains.
#include <gtest/gtest.h>

#include "check/referee.h"

namespace weft::check {
namespace {

// One connection whose requester fails after a single time-out of 262 us, over a network of 1 us.
struct OneConnection {
  explicit OneConnection(std::uint8_t retry_count = 0, Duration answers_kept = {}, Duration probe = {}) {
    a.self = b.peer = {HostId{0}, Qpn{2}};
    a.peer = b.self = {HostId{1}, Qpn{3}};
    mode = probe.ps == 0 ? wire::Mode::kIrn : wire::Mode::kRoce;
    for (QpFacts* f : {&a, &b}) {
      f->mode = mode;
      f->timeout = 6;
      f->retry_count = retry_count;
      f->probe = probe;
      f->answers_kept = answers_kept;
    }
    referee.connected(a, b);
  }
  // An empty WRITE: posted, sent and arrived.
  void write(Time now) {
    SendWr wr;
    wr.wr_id = ++posted;
    wr.opcode = WrOpcode::kWrite;
    wr.flags = kSendSignaled;
    referee.posted_send(a.self, wr, {}, now);
    wire::Header h;
    h.mode = mode;
    h.opcode = wire::kWriteOnly;
    h.dest_qp = b.self.qpn;
    h.psn = {posted - 1};
    h.bits = wire::kAckReq;
    referee.sent(a.self.host, b.self.host, h, 0, now);
    referee.arrived(b.self.host, h, now);
  }
  void acknowledge(Time now, std::uint32_t messages) {
    wire::Header h;
    h.mode = mode;
    h.opcode = wire::kAcknowledge;
    h.dest_qp = a.self.qpn;
    h.psn = {messages - 1};
    h.set_aeth(wire::kSyndromeAck, messages);
    referee.sent(b.self.host, a.self.host, h, 0, now);
    referee.arrived(a.self.host, h, now);
  }
  QpFacts a, b;
  wire::Mode mode{};
  Referee referee{microseconds(1)};
  std::uint32_t posted = 0;
};

Time at(std::int64_t us) { return Time{}.after(microseconds(us)); }

TEST(Progress, ARequesterMustFailWhenItsTimeOutsAreUsedUp) {
  OneConnection w;
  w.write(at(0));
  EXPECT_TRUE(w.referee.waiting(at(263)));
  EXPECT_FALSE(w.referee.waiting(at(264)));
}

// The last packet may be placed long before its ACK arrives. The time-outs of the next request begin only
// when that ACK arrives.
TEST(Progress, AnAckThatTellsSomethingNewIsProgress) {
  OneConnection w;
  w.write(at(0));
  w.write(at(0));
  w.acknowledge(at(200), 1);
  EXPECT_TRUE(w.referee.waiting(at(462)));
  EXPECT_TRUE(w.referee.report().clean());
  EXPECT_FALSE(w.referee.waiting(at(464)));
}

TEST(Progress, AnAckThatTellsNothingNewIsNone) {
  OneConnection w;
  w.write(at(0));
  w.write(at(0));
  w.acknowledge(at(10), 1);
  w.acknowledge(at(200), 1);
  EXPECT_FALSE(w.referee.waiting(at(274)));
}

// What the answer of a probe sends out again has a whole time-out of its own.
TEST(Progress, ARequesterThatProbesHasOneTimeOutMore) {
  OneConnection w(1, {}, microseconds(100));
  w.write(at(0));
  EXPECT_TRUE(w.referee.waiting(at(787)));
  EXPECT_FALSE(w.referee.waiting(at(788)));
}

// A responder that refused a message keeps its receives until the answers before it are acknowledged, or
// given up.
TEST(Progress, AResponderMayHoldOnToItsAnswers) {
  OneConnection w(0, microseconds(1000));
  w.write(at(0));
  w.referee.failed(w.a.self, at(100));
  EXPECT_TRUE(w.referee.waiting(at(1101)));
  EXPECT_FALSE(w.referee.waiting(at(1102)));
}

TEST(Progress, WhoTakesAQueuePairAwayActs) {
  for (const bool destroy : {false, true}) {
    OneConnection w;
    w.write(at(0));
    destroy ? w.referee.destroyed(w.a.self, at(200)) : w.referee.forced_error(w.a.self, at(200));
    EXPECT_TRUE(w.referee.waiting(at(463)));
    EXPECT_FALSE(w.referee.waiting(at(464)));
  }
}

}  // namespace
}  // namespace weft::check
