// A ring between two ends that believe nothing of each other.
#include "live/wires/shared_ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <vector>

#include "core/base/prng.h"

namespace weft::live {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Both ends in one process, each with a mapping of its own, and a third for whoever means ill.
struct Ring {
  Ring()
      : file(memfd_create("ring", MFD_CLOEXEC)),
        sized(ftruncate(file, ring::kBytes)),
        writer(SharedMemory(file, ring::kBytes)),
        reader(SharedMemory(file, ring::kBytes)),
        raw(file, ring::kBytes) {}
  ~Ring() { close(file); }

  bool write(const Bytes& bytes, std::uint32_t frame_size) {
    return writer.write({.bytes = bytes, .frame_size = frame_size, .destination = {}, .ip = {3, 9}});
  }
  // The next train's bytes; empty if there is none.
  Bytes read() {
    return reader.read(buffer.data(), train) ? Bytes(train.data, train.data + train.bytes) : Bytes{};
  }
  template <class T>
  void poke(std::size_t at, T value) {
    std::memcpy(raw.data() + at, &value, sizeof value);
  }

  int file;
  int sized;
  RingWriter writer;
  RingReader reader;
  SharedMemory raw;
  Bytes buffer = Bytes(ring::kLargestTrain);
  RxTrain train;
};

constexpr std::size_t kWritten = 0;
constexpr std::size_t kTaken = 64;

Bytes some(std::size_t size, std::uint8_t first) {
  Bytes b(size);
  for (std::size_t i = 0; i < size; ++i) b[i] = static_cast<std::uint8_t>(first + i * 7);
  return b;
}

TEST(SharedRing, GivesTrainsAsTheyWereWritten) {
  Ring r;
  EXPECT_FALSE(r.reader.waiting());
  EXPECT_EQ(r.read(), Bytes{});
  ASSERT_TRUE(r.write(some(100, 1), 40));
  EXPECT_TRUE(r.reader.waiting());
  EXPECT_EQ(r.read(), some(100, 1));
  EXPECT_EQ(r.train.frame_size, 40U);
  EXPECT_EQ(r.train.tos, 3);
  EXPECT_EQ(r.train.ttl, 9);
  EXPECT_FALSE(r.reader.waiting());
}

// Trains of all sizes, many times around, with any number of them under way.
TEST(SharedRing, KeepsOrderAroundItsEnd) {
  Ring r;
  Prng prng(7);
  std::deque<Bytes> under_way;
  std::size_t refused = 0;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::size_t size = prng.below(3) == 0 ? 1 + prng.below(200) : 1 + prng.below(ring::kLargestTrain);
    Bytes b = some(size, static_cast<std::uint8_t>(i));
    if (r.write(b, static_cast<std::uint32_t>(size))) {
      bytes += size;
      under_way.push_back(std::move(b));
    } else {
      ++refused;
    }
    while (!under_way.empty() && prng.below(under_way.size() > 30 ? 2 : 3) == 0) {
      ASSERT_EQ(r.read(), under_way.front());
      under_way.pop_front();
    }
  }
  for (const Bytes& b : under_way) ASSERT_EQ(r.read(), b);
  EXPECT_FALSE(r.reader.waiting());
  EXPECT_GT(bytes, 20 * ring::kRoom);
  EXPECT_GT(refused, 0U) << "it was never full";
  EXPECT_FALSE(r.reader.broken());
  EXPECT_FALSE(r.writer.broken());
}

TEST(SharedRing, RefusesWhatDoesNotFitAndLosesNothing) {
  Ring r;
  std::size_t held = 0;
  while (held < 100 && r.write(some(60'000, static_cast<std::uint8_t>(held)), 1024)) ++held;
  EXPECT_EQ(held, ring::kRoom / 60'032);
  EXPECT_FALSE(r.writer.broken());
  EXPECT_EQ(r.read(), some(60'000, 0));
  EXPECT_FALSE(r.writer.half_empty());
  EXPECT_TRUE(r.write(some(40'000, 99), 1024));
  for (std::size_t i = 1; i < held; ++i) ASSERT_EQ(r.read(), some(60'000, static_cast<std::uint8_t>(i)));
  EXPECT_EQ(r.read(), some(40'000, 99));
}

TEST(SharedRing, AWriterRingsOnceForAReaderThatSleeps) {
  Ring r;
  ASSERT_TRUE(r.write(some(10, 1), 10));
  EXPECT_FALSE(r.writer.reader_sleeps());
  r.reader.rest();
  EXPECT_TRUE(r.reader.waiting()) << "written before it lay down";
  ASSERT_TRUE(r.write(some(10, 1), 10));
  EXPECT_TRUE(r.writer.reader_sleeps());
  EXPECT_FALSE(r.writer.reader_sleeps());
  r.reader.rest();
  r.reader.wake();
  EXPECT_FALSE(r.writer.reader_sleeps());
}

struct Lie {
  const char* what;
  std::size_t at;
  std::uint64_t value;
  std::size_t size;
};

// Everything that a writer can say and that cannot be.
TEST(SharedRing, AReaderGivesUpARingThatMakesNoSense) {
  const Lie lies[] = {
      {"more than there is room for", kWritten, ring::kRoom + 64, 8},
      {"less than was taken", kWritten, ~std::uint64_t{63}, 8},
      {"part of a line", kWritten, 70, 8},
      {"no bytes", ring::kHead, 0, 4},
      {"more than a train has", ring::kHead, ring::kLargestTrain + 1, 4},
      {"more than was written", ring::kHead, 128, 4},
      {"no frame", ring::kHead + 4, 0, 4},
      {"a frame longer than its train", ring::kHead + 4, 11, 4},
      {"an end of the ring that was not written", ring::kHead, UINT32_MAX, 4},
  };
  for (const Lie& lie : lies) {
    Ring r;
    ASSERT_TRUE(r.write(some(10, 1), 10));
    if (lie.size == 4) {
      r.poke(lie.at, static_cast<std::uint32_t>(lie.value));
    } else {
      r.poke(lie.at, lie.value);
    }
    EXPECT_EQ(r.read(), Bytes{}) << lie.what;
    EXPECT_TRUE(r.reader.broken()) << lie.what;
    EXPECT_FALSE(r.reader.waiting()) << lie.what;
  }
}

// The ring has room for eight of the longest trains, so only their own bound keeps a longer one out.
TEST(SharedRing, AReaderGivesUpATrainThatIsLongerThanAnyMayBe) {
  Ring r;
  ASSERT_TRUE(r.write(some(10, 1), 10));
  r.poke(kWritten, ring::kRoom);
  r.poke(ring::kHead, ring::kLargestTrain + 1);
  EXPECT_EQ(r.read(), Bytes{});
  EXPECT_TRUE(r.reader.broken());
}

TEST(SharedRing, AWriterGivesUpAReaderThatTookMoreThanThereWas) {
  Ring r;
  ASSERT_TRUE(r.write(some(10, 1), 10));
  r.poke<std::uint64_t>(kTaken, 2 * ring::kRoom);
  while (r.write(some(60'000, 1), 1024)) {
  }
  EXPECT_TRUE(r.writer.broken());
}

TEST(SharedRing, AWriterGivesUpAReaderThatTakesBackWhatItTook) {
  Ring r;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(r.write(some(60'000, 1), 1024));
  for (int i = 0; i < 4; ++i) ASSERT_FALSE(r.read().empty());
  EXPECT_TRUE(r.writer.half_empty());
  EXPECT_FALSE(r.writer.broken());
  r.poke<std::uint64_t>(kTaken, 64);
  EXPECT_FALSE(r.writer.half_empty());
  EXPECT_TRUE(r.writer.broken());
}

TEST(SharedRing, AReaderKnowsWhenItHasPassedAMark) {
  Ring r;
  r.reader.mark();
  EXPECT_TRUE(r.reader.passed());
  ASSERT_TRUE(r.write(some(100, 1), 40));
  ASSERT_TRUE(r.write(some(100, 2), 40));
  r.reader.mark();
  ASSERT_TRUE(r.write(some(100, 3), 40));
  r.read();
  EXPECT_FALSE(r.reader.passed());
  r.read();
  EXPECT_TRUE(r.reader.passed()) << "what came after the mark still lies there";
}

// Noise all over the ring, again and again: nothing outside of a train is touched (the address sanitizer sees
// the buffer's ends), and no length is believed.
TEST(SharedRing, NoiseEndsInNothingWorseThanABrokenRing) {
  Prng prng(11);
  std::size_t read = 0;
  for (int i = 0; i < 300; ++i) {
    Ring r;
    for (std::size_t at = 0; at < 64; ++at)
      r.poke(ring::kHead + 4 * at,
             static_cast<std::uint32_t>(prng.below(4) == 0 ? prng.below(UINT32_MAX) : prng.below(300)));
    r.poke<std::uint64_t>(kWritten, 64 * prng.below(20));
    for (int k = 0; k < 30; ++k) {
      const Bytes b = r.read();
      EXPECT_LE(b.size(), ring::kLargestTrain);
      read += b.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(read, 0U) << "noise was never a train";
}

}  // namespace
}  // namespace weft::live
