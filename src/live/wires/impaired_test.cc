// The impaired wire over a wire in memory and virtual time: what is held, dropped, doubled and flipped.
#include "live/wires/impaired.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weft::live {
namespace {

// Gives out one train per receive().
class MemoryWire final : public Wire {
 public:
  MemoryWire(std::deque<std::vector<std::uint8_t>>& trains, std::uint32_t frame_size)
      : trains_(trains), frame_size_(frame_size) {}
  const WireFacts& facts() const override { return facts_; }
  std::span<const RxTrain> receive(Time) override {
    if (trains_.empty()) return {};
    bytes_ = trains_.front();
    trains_.pop_front();
    train_.data = bytes_.data();
    train_.bytes = static_cast<std::uint32_t>(bytes_.size());
    train_.frame_size = frame_size_;
    return {&train_, 1};
  }
  SendStatus send(const TxTrain&) override { return SendStatus::kSent; }
  int descriptor() const override { return -1; }
  void abandon(int) override {}
  // From here on trains are numbered from this identification on.
  void number(std::uint16_t first) {
    train_.header_seen = true;
    train_.identification = train_.first = first;
  }

 private:
  std::deque<std::vector<std::uint8_t>>& trains_;
  std::uint32_t frame_size_;
  std::vector<std::uint8_t> bytes_;
  RxTrain train_;
  WireFacts facts_;
};

constexpr std::uint32_t kFrame = 32;

// Frames are numbered across trains in their first two bytes.
std::deque<std::vector<std::uint8_t>> numbered(std::size_t trains, std::size_t frames) {
  std::deque<std::vector<std::uint8_t>> all;
  std::size_t n = 0;
  for (std::size_t t = 0; t < trains; ++t) {
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = 0; i < frames; ++i, ++n) {
      std::vector<std::uint8_t> frame(kFrame, 0);
      frame[0] = static_cast<std::uint8_t>(n >> 8U);
      frame[1] = static_cast<std::uint8_t>(n);
      bytes.insert(bytes.end(), frame.begin(), frame.end());
    }
    all.push_back(bytes);
  }
  return all;
}

// Two frames that lie back to back in memory.
class TwoWire final : public Wire {
 public:
  explicit TwoWire(const RxTrain& first, const RxTrain& second) : trains_{first, second} {
    for (std::size_t i = 0; i < 2; ++i) {
      trains_[i].data = &bytes_[i * 32U];
      trains_[i].bytes = trains_[i].frame_size = 32;
    }
  }
  const WireFacts& facts() const override { return facts_; }
  std::span<const RxTrain> receive(Time) override { return std::exchange(given_, true) ? none_ : trains_; }
  SendStatus send(const TxTrain&) override { return SendStatus::kSent; }
  int descriptor() const override { return -1; }
  void abandon(int) override {}

 private:
  std::array<std::uint8_t, 64> bytes_{};
  std::array<RxTrain, 2> trains_;
  std::span<const RxTrain> none_;
  bool given_ = false;
  WireFacts facts_;
};

std::size_t trains_of(const RxTrain& first, const RxTrain& second) {
  ImpairedWire wire(std::make_unique<TwoWire>(first, second), {}, 1);
  return wire.receive(Time{}).size();
}

// What one process hands to another lies like this, whoever sent it.
TEST(ImpairedWire, JoinsOnlyFramesOfOneSender) {
  const RxTrain usual{.source = wire::Address::v4(127, 0, 0, 1), .source_port = 4791};
  EXPECT_EQ(trains_of(usual, usual), 1U);
  RxTrain other = usual;
  other.source = wire::Address::v4(127, 0, 0, 2);
  EXPECT_EQ(trains_of(usual, other), 2U);
  other = usual;
  other.source_port = 4792;
  EXPECT_EQ(trains_of(usual, other), 2U);
  other = usual;
  other.ttl = 3;
  EXPECT_EQ(trains_of(usual, other), 2U);
  other = usual;
  other.handed = true;
  EXPECT_EQ(trains_of(usual, other), 2U);
  other = usual;
  other.stray = true;
  EXPECT_EQ(trains_of(usual, other), 2U);
}

struct Arrival {
  std::size_t number;
  bool intact;
};

std::vector<Arrival> drain(ImpairedWire& wire, Time now) {
  std::vector<Arrival> got;
  for (;;) {
    const auto trains = wire.receive(now);
    if (trains.empty()) return got;
    for (const RxTrain& t : trains) {
      for (std::uint32_t at = 0; at < t.bytes; at += t.frame_size) {
        const std::uint8_t* f = t.data + at;
        bool intact = true;
        for (std::uint32_t k = 2; k < std::min(t.frame_size, t.bytes - at); ++k) intact = intact && f[k] == 0;
        got.push_back({static_cast<std::size_t>(f[0] << 8U | f[1]), intact});
      }
    }
  }
}

// No impairment: the trains of the inner wire come through whole and in place.
TEST(ImpairedWire, PassesWholeTrainsWhenNothingHappens) {
  auto trains = numbered(3, 20);
  ImpairedWire wire(std::make_unique<MemoryWire>(trains, kFrame), {}, 1);
  const auto first = wire.receive({});
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].bytes, 20 * kFrame);
  EXPECT_EQ(drain(wire, {}).size(), 40U);
}

// 5 % loss drops about one in twenty; the survivors keep their order.
TEST(ImpairedWire, DropsAboutAsManyAsAskedAndKeepsTheOrder) {
  auto trains = numbered(200, 50);
  ImpairedWire wire(std::make_unique<MemoryWire>(trains, kFrame), {.loss = 50'000}, 7);
  const auto got = drain(wire, {});
  EXPECT_GT(got.size(), 9'300U);
  EXPECT_LT(got.size(), 9'700U);
  EXPECT_EQ(got.size() + wire.counters().dropped, 10'000U);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(i == 0 || got[i - 1].number < got[i].number);
  }
}

// Everything lost is not the end of the wire: batches that vanish whole are read past.
TEST(ImpairedWire, ReadsPastBatchesThatVanish) {
  auto trains = numbered(5, 10);
  ImpairedWire wire(std::make_unique<MemoryWire>(trains, kFrame), {.loss = impair::kMillion}, 7);
  EXPECT_TRUE(wire.receive({}).empty());
  EXPECT_EQ(wire.counters().dropped, 50U);
}

// A delayed frame is not seen before its time, announces when it is due, and comes out in order.
TEST(ImpairedWire, HoldsFramesUntilTheyAreDue) {
  auto trains = numbered(1, 10);
  ImpairedWire wire(std::make_unique<MemoryWire>(trains, kFrame), {.delay = microseconds(50)}, 7);
  const Time start{1'000'000};
  EXPECT_TRUE(drain(wire, start).empty());
  EXPECT_EQ(wire.next_due(), start + microseconds(50));
  EXPECT_TRUE(drain(wire, start + microseconds(49)).empty());
  const auto got = drain(wire, start + microseconds(50));
  ASSERT_EQ(got.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(got[i].number, i);
  }
  EXPECT_EQ(wire.next_due(), kNever);
}

// A reordered frame is overtaken by its successors and still arrives.
TEST(ImpairedWire, ReordersByHoldingBack) {
  auto trains = numbered(100, 10);
  ImpairedWire wire(std::make_unique<MemoryWire>(trains, kFrame),
                    {.reorder = 100'000, .reorder_by = microseconds(100)}, 7);
  auto got = drain(wire, {});
  EXPECT_LT(got.size(), 1'000U);
  const auto late = drain(wire, Time{} + microseconds(100));
  EXPECT_GT(late.size(), 50U);
  EXPECT_EQ(got.size() + late.size(), 1'000U);
}

// Duplicates arrive twice; flipped frames differ in one place.
TEST(ImpairedWire, DuplicatesAndCorrupts) {
  auto trains = numbered(100, 10);
  ImpairedWire twice(std::make_unique<MemoryWire>(trains, kFrame), {.duplicate = 100'000}, 7);
  const auto got = drain(twice, {});
  EXPECT_EQ(got.size(), 1'000U + twice.counters().duplicated);
  EXPECT_GT(twice.counters().duplicated, 50U);
  auto more = numbered(100, 10);
  ImpairedWire flipped(std::make_unique<MemoryWire>(more, kFrame), {.corrupt = impair::kMillion}, 7);
  std::size_t damaged = 0;
  for (const Arrival& a : drain(flipped, {})) damaged += a.intact ? 0U : 1U;
  EXPECT_GT(damaged, 800U);  // the rest was hit in the two bytes of its number
  EXPECT_EQ(flipped.counters().corrupted, 1'000U);
}

// What --stats shows: every effect by its name, and what it counted.
TEST(ImpairedWire, TellsWhatItDid) {
  auto trains = numbered(100, 10);
  ImpairedWire wire(std::make_unique<MemoryWire>(trains, kFrame),
                    {.loss = 100'000, .duplicate = 100'000, .corrupt = 100'000, .mark = 100'000}, 7);
  drain(wire, {});
  std::map<std::string, std::uint64_t> told;
  wire.visit_counters([&](const char* name, const char*, std::uint64_t value) { told[name] = value; });
  EXPECT_EQ(told["impaired_frames"], 1'000U);
  for (const char* effect : {"dropped", "duplicated", "corrupted", "marked"})
    EXPECT_GT(told[std::string("impaired_") + effect], 50U) << effect;
  EXPECT_EQ(told["impaired_held"], told["impaired_duplicated"]) << "a second copy is held back";
}

// A train that loses frames, or whose frames are held back, is several trains: each frame keeps the
// identification that it came with.
TEST(ImpairedWire, FramesKeepTheirIdentifications) {
  constexpr std::uint16_t kFirst = 0xFFF0;
  auto trains = numbered(1, 60);
  auto inner = std::make_unique<MemoryWire>(trains, kFrame);
  inner->number(kFirst);
  ImpairedWire wire(std::move(inner), {.loss = 200'000, .reorder = 200'000, .reorder_by = microseconds(5)},
                    7);
  std::size_t frames = 0;
  std::size_t pieces = 0;
  for (const Time now : {Time{}, Time{} + microseconds(10)}) {
    for (const RxTrain& t : wire.receive(now)) {
      ++pieces;
      EXPECT_EQ(t.first, kFirst);
      for (std::uint32_t at = 0; at < t.bytes; at += kFrame, ++frames) {
        const unsigned n = t.data[at] * 256U + t.data[at + 1];
        EXPECT_EQ(static_cast<std::uint16_t>(t.identification + at / kFrame),
                  static_cast<std::uint16_t>(kFirst + n));
      }
    }
  }
  EXPECT_GT(frames, 30U);
  EXPECT_GT(pieces, 5U);
}

// More frames than slots: the surplus is dropped and counted, and nothing is written out of bounds.
TEST(ImpairedWire, DropsWhatItCannotHold) {
  auto trains = numbered(400, 50);
  ImpairedWire wire(std::make_unique<MemoryWire>(trains, kFrame), {.delay = seconds(1)}, 7);
  EXPECT_TRUE(drain(wire, {}).empty());
  while (!trains.empty()) EXPECT_TRUE(drain(wire, {}).empty());
  EXPECT_EQ(wire.counters().held, ImpairedWire::kSlots);
  EXPECT_EQ(wire.counters().overflow, 20'000U - ImpairedWire::kSlots);
  EXPECT_EQ(drain(wire, Time{} + seconds(1)).size(), ImpairedWire::kSlots);
}

}  // namespace
}  // namespace weft::live
