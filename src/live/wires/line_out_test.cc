// The line that a process sends on, over a wire in memory and in virtual time: the rate and its queue, what
// is lost, doubled, damaged and late, and that every frame that leaves has the ICRC of its place in its
// train.
#include "live/wires/line_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "live/wires/impaired.h"
#include "live/wires/pack.h"

namespace weft::live {
namespace {

wire::Address peer(std::uint8_t n) { return wire::Address::v4(10, 0, 0, n); }

struct Left {
  std::vector<std::uint8_t> bytes;
  std::uint32_t frame_size;
  wire::Address to;
  Time at;
  std::uint32_t frames() const {
    return static_cast<std::uint32_t>((bytes.size() + frame_size - 1) / frame_size);
  }
};

// Keeps what is sent, in a place that outlives it.
class KeepingWire final : public Wire {
 public:
  explicit KeepingWire(std::vector<Left>& left) : left_(left) {
    facts_.own.first = peer(1);
    facts_.port = 4791;
    facts_.max_frames = 16;
    facts_.identification_counts = true;
  }
  const WireFacts& facts() const override { return facts_; }
  std::span<const RxTrain> receive(Time) override { return {}; }
  SendStatus send(const TxTrain& t) override {
    if (full) return SendStatus::kFull;
    if (cuts_no_more && facts_.identification_counts && t.bytes.size() > t.frame_size) {
      facts_.identification_counts = false;
      return SendStatus::kUncut;
    }
    left_.push_back({{t.bytes.begin(), t.bytes.end()}, t.frame_size, t.destination, t.now});
    return SendStatus::kSent;
  }
  int descriptor() const override { return -1; }
  void abandon(int) override {}

  bool full = false;
  bool cuts_no_more = false;

 private:
  std::vector<Left>& left_;
  WireFacts facts_;
};

struct Told {
  std::uint16_t identification;
  std::string fate;
};
class KeepingLog final : public FrameLog {
 public:
  void received(const RxTrain&, Time, std::string_view) override {}
  void sent(const TxTrain& frame, std::uint16_t identification, Time, std::string_view fate) override {
    EXPECT_EQ(frame.bytes.size(), frame.frame_size);
    told.push_back({identification, std::string(fate)});
    ++fates[std::string(fate)];
  }
  void abandon(int) override {}
  void visit_counters(const Wire::SeeCounter&) const override {}
  std::vector<Told> told;
  std::map<std::string, int> fates;
};

struct World {
  explicit World(const LineConfig& config)
      : wire(left), line(config, wire, &log), packer(wire.facts(), true) {}

  // A train of `frames` SENDs, numbered on, with `payload` bytes each.
  void send(std::uint32_t frames, std::uint32_t payload, Time now, std::uint8_t to = 2,
            std::uint32_t qpn = 0x10007) {
    packer.clear();
    const std::vector<std::uint8_t> bytes(payload, 0x5A);
    for (std::uint32_t i = 0; i < frames; ++i) {
      wire::Header h;
      h.opcode = wire::kSendOnly;
      h.dest_qp = {qpn};
      h.psn = {psn++};
      const Piece piece{bytes.data(), payload};
      ASSERT_TRUE(packer.append(peer(to), h, {&piece, 1}, payload));
    }
    TxTrain train = packer.train();
    train.now = now;
    line.take(train);
    line.release(now);
  }

  // The numbers of the frames that left; every ICRC is that of the frame's place.
  std::vector<std::uint32_t> numbers() {
    std::vector<std::uint32_t> all;
    for (const Left& t : left) {
      for (std::uint32_t i = 0; i < t.frames(); ++i) {
        const std::size_t at = std::size_t{i} * t.frame_size;
        const auto frame =
            std::span(t.bytes).subspan(at, std::min<std::size_t>(t.frame_size, t.bytes.size() - at));
        wire::Icrc icrc(wire::IpFacts{.source = peer(1),
                                      .destination = t.to,
                                      .source_port = 4791,
                                      .udp_length = static_cast<std::uint16_t>(8 + frame.size()),
                                      .identification = wire.facts().identification_counts
                                                            ? static_cast<std::uint16_t>(i)
                                                            : std::uint16_t{0}});
        icrc.packet(frame.first(frame.size() - 4));
        if (icrc.value() != wire::load_le32(&frame[frame.size() - 4])) ++damaged;
        all.push_back(wire::load_be24(&frame[9]));
      }
    }
    return all;
  }

  std::vector<Left> left;
  KeepingWire wire;
  KeepingLog log;
  LineOut line;
  Packer packer;
  std::uint32_t psn = 0;
  int damaged = 0;
};

std::vector<std::uint32_t> up_to(std::uint32_t n) {
  std::vector<std::uint32_t> all(n);
  for (std::uint32_t i = 0; i < n; ++i) all[i] = i;
  return all;
}

// At any time no more has left than the rate allows since the first packet, however much is waiting; nothing
// is reordered or lost, and the last leaves when the rate says.
TEST(LineOut, LeavesNoFasterThanTheRate) {
  World w({.rate = gigabits(1)});
  const Time start = Time{} + seconds(1);
  for (int i = 0; i < 20; ++i) w.send(10, 1000, start);
  EXPECT_TRUE(w.left.empty());
  const Duration each = gigabits(1).time_for({1000 + 16 + LineOut::around(peer(1))});
  std::uint64_t sent = 0;
  for (Time now = start; w.line.next_due() != kNever; now = now + microseconds(7)) {
    w.line.release(now);
    std::uint64_t frames = 0;
    for (const Left& t : w.left) frames += t.frames();
    EXPECT_LE(each * static_cast<std::int64_t>(frames), now - start);
    sent = frames;
  }
  EXPECT_EQ(sent, 200U);
  EXPECT_LT(w.left.back().at - start, each * 200 + microseconds(7));
  EXPECT_EQ(w.numbers(), up_to(200));
  EXPECT_EQ(w.damaged, 0);
}

// The rate is the line's: time that nobody used does not come back.
TEST(LineOut, SavesNothingUpWhileNothingLeaves) {
  World w({.rate = gigabits(1)});
  w.send(1, 1000, Time{} + seconds(1));
  w.line.release(Time{} + seconds(2));
  w.send(10, 1000, Time{} + seconds(3));
  w.line.release(Time{} + seconds(3) + microseconds(20));
  std::uint32_t frames = 0;
  for (const Left& t : w.left) frames += t.frames();
  EXPECT_EQ(frames, 1U + 2U);  // 8.7 us each
}

TEST(LineOut, DropsWhatItsQueueDoesNotHold) {
  World w({.rate = gigabits(1), .queue = {64U << 10U}});
  for (int i = 0; i < 20; ++i) w.send(10, 1000, Time{} + seconds(1));
  EXPECT_EQ(w.line.counters().frames, 200U);
  // The one that is on the line already does not wait.
  const std::uint64_t held = (64U << 10U) / (1016 + LineOut::around(peer(1))) + 2;
  EXPECT_NEAR(static_cast<double>(w.line.counters().overflow), 200.0 - static_cast<double>(held), 1.0);
  EXPECT_EQ(w.log.fates["dropped: the queue before --rate was full"],
            static_cast<int>(w.line.counters().overflow));
  w.line.release(Time{} + seconds(2));
  EXPECT_EQ(w.numbers(), up_to(200 - static_cast<std::uint32_t>(w.line.counters().overflow)));
}

// What is left of a train is a train, and its frames have the identifications of their new places.
TEST(LineOut, SealsAnewWhatTheLossLeft) {
  World w({.impairments = {.loss = 300'000}, .seed = 5});
  for (int i = 0; i < 50; ++i) w.send(12, 64, Time{} + microseconds(i));
  const auto numbers = w.numbers();
  EXPECT_EQ(w.damaged, 0);
  EXPECT_EQ(numbers.size() + w.line.counters().dropped, 600U);
  EXPECT_GT(w.line.counters().dropped, 100U);
  EXPECT_LT(w.line.counters().dropped, 260U);
  EXPECT_EQ(w.left.size(), 50U);  // a train each, at once
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_EQ(w.log.fates["dropped by --loss out"], static_cast<int>(w.line.counters().dropped));
  EXPECT_EQ(w.log.fates[""], static_cast<int>(numbers.size()));
}

TEST(LineOut, DoublesDamagesAndDelays) {
  World w({.impairments = {.duplicate = 200'000, .corrupt = 100'000, .delay = microseconds(50)}, .seed = 6});
  for (int i = 0; i < 50; ++i) w.send(4, 64, Time{} + microseconds(i));
  EXPECT_EQ(w.line.next_due(), Time{} + microseconds(50));
  for (int i = 50; i < 120; ++i) w.line.release(Time{} + microseconds(i));
  const LineCounters& c = w.line.counters();
  EXPECT_EQ(w.numbers().size(), 200 + c.duplicated);
  EXPECT_EQ(w.damaged, static_cast<int>(c.corrupted));
  EXPECT_GT(c.duplicated, 10U);
  EXPECT_GT(c.corrupted, 5U);
  for (std::size_t i = 0; i < w.left.size(); ++i) EXPECT_GE(w.left[i].at, Time{} + microseconds(50));
  EXPECT_EQ(w.log.fates["second copy, by --duplicate out"], static_cast<int>(c.duplicated));
  EXPECT_EQ(w.log.fates["one bit flipped by --corrupt out"], static_cast<int>(c.corrupted));
}

// Frames that leave together share a train only if they are for one process of one host.
TEST(LineOut, SharesTrainsWithinOneProcessOnly) {
  World w({.impairments = {.delay = microseconds(10)}});
  w.send(2, 64, Time{}, 2, 0x10007);
  w.send(2, 64, Time{}, 2, 0x20007);
  w.send(2, 64, Time{}, 3, 0x20007);
  w.send(2, 64, Time{}, 3, 0x20008);
  w.line.release(Time{} + microseconds(10));
  ASSERT_EQ(w.left.size(), 3U);
  EXPECT_EQ(w.left[2].frames(), 4U);
  EXPECT_EQ(w.numbers(), up_to(8));
  EXPECT_EQ(w.damaged, 0);
}

// A train that the wire does not take is kept, and goes first.
TEST(LineOut, KeepsWhatTheWireDoesNotTake) {
  World w({.impairments = {.delay = microseconds(10)}});
  w.send(3, 64, Time{});
  w.send(3, 64, Time{} + microseconds(5));
  w.wire.full = true;
  w.line.release(Time{} + microseconds(10));
  EXPECT_TRUE(w.left.empty());
  EXPECT_EQ(w.line.next_due(), Time{});
  w.wire.full = false;
  w.line.release(Time{} + microseconds(20));
  EXPECT_EQ(w.numbers(), up_to(6));
  EXPECT_EQ(w.damaged, 0);
  EXPECT_EQ(w.line.next_due(), kNever);
}

// A device that cuts no trains after all: the same train leaves with the other identifications.
TEST(LineOut, SealsAnewForAWireThatCutsNoTrains) {
  World w({.impairments = {.delay = microseconds(10)}});
  w.send(3, 64, Time{});
  w.wire.cuts_no_more = true;
  w.line.release(Time{} + microseconds(10));
  EXPECT_EQ(w.numbers(), up_to(3));
  EXPECT_EQ(w.damaged, 0);
  for (const Told& t : w.log.told) EXPECT_EQ(t.identification, 0);
}

// The last answers of a device that closes wait for nobody.
TEST(LineOut, LetsEverythingGoWhenTheDeviceCloses) {
  std::vector<Left> left;
  {
    ImpairedWire wire(std::make_unique<KeepingWire>(left), {}, 1, {.rate = megabits(1)});
    const std::vector<std::uint8_t> frame(100, 1);
    EXPECT_EQ(wire.send({frame, 100, peer(2)}), SendStatus::kSent);
    EXPECT_TRUE(left.empty());
    EXPECT_EQ(wire.next_due(), Time{} + megabits(1).time_for({100 + LineOut::around(peer(1))}));
  }
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].frames(), 1U);
}

}  // namespace
}  // namespace weft::live
