#include "live/wires/shared_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace weft::live {
namespace {

// In lines of their own, for each is written by one side and read by the other.
constexpr std::size_t kWrittenAt = 0;
constexpr std::size_t kTakenAt = 64;
constexpr std::size_t kAsleepAt = 128;
constexpr std::uint64_t kLine = 64;
constexpr std::uint32_t kToTheEnd = UINT32_MAX;  // in place of a length: the rest of the ring is empty

struct Record {
  std::uint32_t bytes = 0;
  std::uint32_t frame_size = 0;
  std::uint8_t tos = 0;
  std::uint8_t ttl = 0;
};
static_assert(sizeof(Record) <= kLine);

template <class T>
std::atomic_ref<T> word(const SharedMemory& memory, std::size_t at) {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(memory.data() + at));
}

std::uint64_t lines_of(std::uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
std::uint64_t space_of(std::uint32_t train) { return lines_of(sizeof(Record) + train); }
std::uint64_t place_of(std::uint64_t count) { return count % ring::kRoom; }

}  // namespace

SharedMemory::SharedMemory(int fd, std::size_t bytes) : bytes_(bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) data_ = static_cast<std::uint8_t*>(at);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

// What was taken is never less than before, nor more than there was.
void RingWriter::look() {
  const std::uint64_t taken = word<std::uint64_t>(memory_, kTakenAt).load(std::memory_order_acquire);
  if (written_ - taken > written_ - taken_) broken_ = true;
  taken_ = taken;
}

bool RingWriter::half_empty() {
  look();
  return !broken_ && written_ - taken_ <= ring::kRoom / 2;
}

bool RingWriter::untouched() const {
  return word<std::uint64_t>(memory_, kTakenAt).load(std::memory_order_relaxed) == 0;
}

bool RingWriter::write(const TxTrain& train) {
  DCHECK(train.bytes.size() <= ring::kLargestTrain);
  const auto bytes = static_cast<std::uint32_t>(train.bytes.size());
  const std::uint64_t space = space_of(bytes);
  const std::uint64_t to_end = ring::kRoom - place_of(written_);
  // A train lies in one piece: one that does not fit before the end begins at the start.
  const std::uint64_t needed = space <= to_end ? space : to_end + space;
  if (written_ - taken_ + needed > ring::kRoom) {
    look();
    if (broken_ || written_ - taken_ + needed > ring::kRoom) return false;
  }
  std::uint8_t* const room = memory_.data() + ring::kHead;
  if (space > to_end) {
    const std::uint32_t skip = kToTheEnd;
    std::memcpy(room + place_of(written_), &skip, sizeof skip);
    written_ += to_end;
  }
  const Record record{bytes, train.frame_size, train.ip.traffic_class, train.ip.hop_limit};
  std::uint8_t* const at = room + place_of(written_);
  std::memcpy(at, &record, sizeof record);
  std::memcpy(at + sizeof record, train.bytes.data(), bytes);
  written_ += space;
  word<std::uint64_t>(memory_, kWrittenAt).store(written_, std::memory_order_release);
  return true;
}

bool RingWriter::reader_sleeps() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto asleep = word<std::uint32_t>(memory_, kAsleepAt);
  return asleep.load(std::memory_order_relaxed) != 0 && asleep.exchange(0) != 0;
}

bool RingReader::waiting() const {
  return !broken_ && word<std::uint64_t>(memory_, kWrittenAt).load(std::memory_order_relaxed) != taken_;
}

bool RingReader::read(std::uint8_t* into, RxTrain& out) {
  if (broken_) return false;
  const std::uint64_t written = word<std::uint64_t>(memory_, kWrittenAt).load(std::memory_order_acquire);
  const std::uint8_t* const room = memory_.data() + ring::kHead;
  for (int skipped = 0; written != taken_; ++skipped) {
    const std::uint64_t there = written - taken_;
    const std::uint64_t to_end = ring::kRoom - place_of(taken_);
    Record record;
    std::memcpy(&record, room + place_of(taken_), sizeof record);
    if (record.bytes == kToTheEnd && skipped == 0 && to_end <= there && there <= ring::kRoom) {
      taken_ += to_end;
      continue;
    }
    const bool sound = there <= ring::kRoom && there % kLine == 0 && record.bytes != 0 &&
                       record.bytes <= ring::kLargestTrain && record.frame_size != 0 &&
                       record.frame_size <= record.bytes && space_of(record.bytes) <= std::min(there, to_end);
    if (!sound) {
      broken_ = true;
      return false;
    }
    std::memcpy(into, room + place_of(taken_) + sizeof record, record.bytes);
    taken_ += space_of(record.bytes);
    word<std::uint64_t>(memory_, kTakenAt).store(taken_, std::memory_order_release);
    out = {};
    out.data = into;
    out.bytes = record.bytes;
    out.frame_size = record.frame_size;
    out.tos = record.tos;
    out.ttl = record.ttl;
    return true;
  }
  return false;
}

// A count that makes no sense is found out by read().
void RingReader::mark() {
  marked_ = word<std::uint64_t>(memory_, kWrittenAt).load(std::memory_order_relaxed);
  if (marked_ - taken_ > ring::kRoom) marked_ = taken_;
}

void RingReader::rest() {
  word<std::uint32_t>(memory_, kAsleepAt).store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void RingReader::wake() { word<std::uint32_t>(memory_, kAsleepAt).store(0, std::memory_order_relaxed); }

}  // namespace weft::live
