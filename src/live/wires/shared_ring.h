// A ring of trains in memory that two processes share: one writes, the other reads, neither waits in the
// kernel.
//
//   +--------+---------+----------------------------------------------+
//   | writer | reader  | record | train | record | train | ...  (wraps) |
//   +--------+---------+----------------------------------------------+
//   written   taken, asleep
//
// Each side believes its own count and checks the other's, because the memory is the other's as much as ours:
// what does not add up ends the ring (broken()), and nothing outside of it is ever touched. The reader copies
// a train out before anybody looks at it, so that no byte changes under a check.
//
// Who sleeps says so first (rest()) and looks once more; who writes looks for that behind a fence. So either
// the reader sees the train, or the writer sees the sleeper and rings.
//
// No system calls but for mapping. Not thread-safe: each end belongs to its wire.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "live/wires/wire.h"

namespace weft::live {

// A mapping of shared memory, unmapped at its end.
class SharedMemory {
 public:
  SharedMemory() = default;
  // Maps all `bytes` of it; empty if that fails.
  SharedMemory(int fd, std::size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();
  std::uint8_t* data() const { return data_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

namespace ring {
// The bytes of trains. A longer ring would find more of itself in memory and less in
// the caches; and a host with many processes has a ring for each two of them.
constexpr std::uint64_t kRoom = 512U << 10U;
constexpr std::size_t kHead = 4096;  // what both ends count
constexpr std::size_t kBytes = kHead + kRoom;
constexpr std::uint32_t kLargestTrain = 65536;
}  // namespace ring

class RingWriter {
 public:
  explicit RingWriter(SharedMemory memory) : memory_(std::move(memory)) {}

  // False: there is no room, or the ring is broken.
  bool write(const TxTrain& train);
  // After a write: whether the reader sleeps and has to be rung for. It is asked once for each sleep.
  bool reader_sleeps();
  bool half_empty();
  bool broken() const { return broken_; }
  // Ends it: nothing was ever taken, and this is what lies in it.
  SharedMemory take_back() { return std::move(memory_); }
  bool untouched() const;

 private:
  void look();

  SharedMemory memory_;
  std::uint64_t written_ = 0;
  std::uint64_t taken_ = 0;  // as it was last looked at
  bool broken_ = false;
};

class RingReader {
 public:
  explicit RingReader(SharedMemory memory) : memory_(std::move(memory)) {}

  bool waiting() const;  // something is there
  // The next train, copied to `into`, which has room for ring::kLargestTrain; its addresses are for the
  // caller to fill in. False: nothing is there.
  bool read(std::uint8_t* into, RxTrain& out);
  void rest();
  void wake();
  void mark();
  bool passed() const { return broken_ || static_cast<std::int64_t>(taken_ - marked_) >= 0; }
  bool broken() const { return broken_; }

 private:
  SharedMemory memory_;
  std::uint64_t taken_ = 0;
  std::uint64_t marked_ = 0;
  bool broken_ = false;
};

}  // namespace weft::live
