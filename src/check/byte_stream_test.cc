// Each rule of the observer of TCP connections, kept and broken.
#include "check/byte_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace weft::check {
namespace {

constexpr Time at(std::int64_t us) { return Time{} + microseconds(us); }

// Ten segments of 100 bytes, a window of five; `rules` are those broken since the last look.
struct Watch {
  explicit Watch(bool sack = true) {
    streams.opened(1, {100, 5, 3, 0, microseconds(1000), sack});
    streams.wrote(1, 1000);
  }
  void send(std::uint64_t segment, Time now = at(1)) {
    streams.data_sent(1, {100 * segment, 100 * segment + 100}, now);
  }
  void ack(std::uint64_t segments, std::initializer_list<ByteRange> blocks = {}, Time now = at(2)) {
    streams.ack_arrived(1, 100 * segments, {blocks.begin(), blocks.size()}, now);
  }
  void arrive(std::uint64_t segment) { streams.data_arrived(1, {100 * segment, 100 * segment + 100}); }
  std::string rules() {
    std::string all;
    for (; seen < report.violations().size(); ++seen)
      all += std::string(report.violations()[seen].rule) + " ";
    return all;
  }
  Report report;
  ByteStreams streams{report};
  std::size_t seen = 0;
};

TEST(ByteStreams, DeliveryIsOnceAndInOrderAndOfWhatArrived) {
  Watch w;
  w.arrive(0);
  w.arrive(2);
  w.streams.delivered(1, {0, 100}, at(1));
  EXPECT_EQ(w.rules(), "");
  w.streams.delivered(1, {0, 100}, at(1));
  EXPECT_EQ(w.rules(), "tcp-order ");
  w.streams.delivered(1, {100, 200}, at(1));
  EXPECT_EQ(w.rules(), "tcp-invented ");
  w.streams.delivered(1, {300, 400}, at(1));
  EXPECT_EQ(w.rules(), "tcp-order tcp-invented ");
}

TEST(ByteStreams, AcknowledgmentsSayWhatArrived) {
  Watch w;
  const ByteRange third{200, 300};
  w.arrive(0);
  w.arrive(2);
  w.streams.delivered(1, {0, 100}, at(1));
  w.streams.ack_sent(1, 100, {&third, 1}, at(1));
  EXPECT_EQ(w.rules(), "");
  w.streams.ack_sent(1, 300, {}, at(1));
  EXPECT_EQ(w.rules(), "tcp-ack ");
  w.streams.ack_sent(1, 100, {}, at(1));
  EXPECT_EQ(w.rules(), "tcp-sack-first ");
  const ByteRange more{200, 400};
  w.streams.ack_sent(1, 100, {&more, 1}, at(1));
  EXPECT_EQ(w.rules(), "tcp-sack ");
}

TEST(ByteStreams, TheWindowHoldsAndGrowsByASegmentAnAck) {
  Watch w;
  for (std::uint64_t i = 0; i < 5; ++i) w.send(i);
  EXPECT_EQ(w.rules(), "");
  w.ack(1);
  w.send(5);
  w.send(6);
  EXPECT_EQ(w.rules(), "");
  w.send(7);
  EXPECT_EQ(w.rules(), "tcp-window ");
  w.send(9);
  EXPECT_EQ(w.rules(), "tcp-hole tcp-window ");
}

TEST(ByteStreams, ARepairNeedsACause) {
  for (const bool sack : {true, false}) {
    Watch w(sack);
    for (std::uint64_t i = 0; i < 5; ++i) w.send(i);
    w.ack(1);
    w.ack(1);
    w.ack(1);
    w.send(1);
    EXPECT_EQ(w.rules(), "tcp-cause ") << "two duplicates";
  }
  Watch w;
  for (std::uint64_t i = 0; i < 5; ++i) w.send(i);
  w.ack(1, {{200, 500}});
  w.send(1);
  EXPECT_EQ(w.rules(), "") << "three segments above it arrived";
  w.send(2);
  EXPECT_EQ(w.rules(), "tcp-needless ");
  Watch silent;
  silent.send(0);
  silent.send(0, at(500));
  EXPECT_EQ(silent.rules(), "tcp-cause ");
  Watch longer;
  longer.send(0);
  longer.send(0, at(1001));
  EXPECT_EQ(longer.rules(), "");
}

// PFC stops the link when the second time-out wants to repair, and an acknowledgment comes first.
TEST(ByteStreams, ARepairMayWaitForItsLinkAfterASecondTimeOut) {
  for (const bool second : {true, false}) {
    Watch w(false);
    for (std::uint64_t i = 0; i < 3; ++i) w.send(i);
    w.send(0, at(1001));  // a time-out
    w.ack(1, {}, at(1002));
    w.send(3, at(1002));
    w.ack(2, {}, at(second ? 2003 : 1500));
    w.send(3, at(second ? 2004 : 1501));
    EXPECT_EQ(w.rules(), second ? "" : "tcp-cause ");
  }
}

// The duplicates had spoken for three segments when the time-out came; it speaks for the fourth, too.
TEST(ByteStreams, ATimeOutAfterDuplicatesRepairsAllThatWasSent) {
  Watch w(false);
  for (std::uint64_t i = 0; i < 3; ++i) w.send(i);
  for (int i = 0; i < 3; ++i) w.ack(0);
  w.send(3);
  for (std::uint64_t i = 0; i < 4; ++i) {
    w.send(i, at(1002));
    w.ack(0, {}, at(1003));
  }
  EXPECT_EQ(w.rules(), "");
}

TEST(ByteStreams, RepairsAreClockedByWhatArrives) {
  Watch w;
  for (std::uint64_t i = 0; i < 5; ++i) w.send(i);
  w.ack(0, {{400, 500}}, at(2));
  for (std::uint64_t i = 0; i < 3; ++i) w.send(i, at(1500));
  EXPECT_EQ(w.rules(), "") << "a window of two, and the first whatever it is";
  w.send(3, at(1500));
  EXPECT_EQ(w.rules(), "tcp-conservation ");
}

TEST(ByteStreams, AConnectionThatClosesIsDone) {
  Watch w;
  w.send(0);
  w.streams.closed(1, at(9));
  EXPECT_EQ(w.rules(), "tcp-unfinished ");
  w.send(1);
  EXPECT_EQ(w.rules(), "tcp-unknown ");
}

}  // namespace
}  // namespace weft::check
