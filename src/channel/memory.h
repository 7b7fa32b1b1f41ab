// The memory cache of a context (X-RDMA §4.5): a few registered regions of one size, cut into blocks of one
// length each. Taking and giving a block are a handful of instructions. A region is registered when a length
// has run out (or ahead of time: reserve), and given back to the device when none of its blocks was in use
// for a while.
//
// Considered instead: a registration for every buffer (LITE's 4 KB regions slow a NIC down from a thousand
// on), and one heap over all regions (blocks of all lengths in one region, which then is rarely empty and
// never shrinks).
//
// A message longer than the longest class has a region of its own. It stays for the next one until it has
// been idle as long as any other.
//
// Where regions come from is memory_mode's to say. A context that runs for months meets an hour in which no
// huge page is left: then a region is made of ordinary ones, and counted (`plain`).
//
// Isolated (X-RDMA §6.3), every block has guard words behind it, and every region a hole on either side,
// where the platform maps pages (Config::pages): who writes beyond a message is told which, who runs out of a
// region ends.
//
// Lengths: blocks for received frames, all alike; and payloads of 256 B, 512 B, ... 512 KB.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "channel/config.h"
#include "channel/message.h"
#include "core/base/units.h"
#include "core/verbs/port.h"

namespace weft::channel {

struct MemoryCounts {
  std::uint64_t registered = 0;  // bytes
  std::uint64_t most = 0;        // that ever were
  std::uint64_t in_use = 0;      // bytes of blocks that somebody has
  std::uint64_t regions = 0;
  std::uint64_t grown = 0;     // regions ever registered
  std::uint64_t shrunk = 0;    // and given back
  std::uint64_t refused = 0;   // nothing was left
  std::uint64_t plain = 0;     // regions ever made of ordinary pages, because there were none as wanted
  std::uint64_t overruns = 0;  // messages behind whose end somebody wrote
};

// Somebody wrote behind the end of a message: found when it is sent or given back.
struct Overrun {
  const void* data = nullptr;
  std::uint32_t length = 0;
  std::uint64_t cookie = 0;
  std::uint64_t at = 0;  // the first byte that is not as it was, counted from `data`
};

class MemoryCache {
 public:
  // `access`: of its regions. `frame`: bytes of a received frame.
  MemoryCache(VerbsPort& port, std::uint8_t access, std::uint32_t frame, const Config& config);
  ~MemoryCache();
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  Message* take(std::uint32_t payload);  // nullptr: there is no memory
  Message* take_frame();                 // a block for a received frame
  void give(Message* message);
  // Registers until `count` more blocks of this payload fit without growing. False: there is no memory.
  bool reserve(std::uint32_t payload, std::uint32_t count);
  bool reserve_frames(std::uint32_t count) { return reserve_class(kFrames, count); }
  // So many more frames may be wanted, and what is not a frame leaves the memory for them.
  void set_aside_frames(std::uint32_t count) { aside_ = count; }
  std::uint64_t frame_block() const { return stride_[kFrames]; }
  bool has_set_aside() const { return counts_.registered + aside_bytes() <= most_.n; }
  void at(Time now) { now_ = now; }  // blocks that are given back are idle from here on
  void rebase(Duration by);          // the clock goes back by so much
  // Gives back what has been idle so long.
  void shrink(Duration idle);

  // With isolation: whether nobody has written behind the end of this message. If somebody has, that is told
  // once.
  bool intact(Message& message) {
    if (guard_ == 0) [[likely]]
      return true;
    return look_at_guard(message);
  }
  // A message that stood for bytes elsewhere is its block's again.
  void restore(Message& message) const;
  const Overrun& last_overrun() const { return last_overrun_; }

  const MemoryCounts& counts() const { return counts_; }

 private:
  static constexpr std::uint32_t kFrames = 0;
  static constexpr std::uint32_t kClasses = 13;    // frames, and 256 << 0 ... 256 << 11
  static constexpr std::uint32_t kOwn = kClasses;  // a region of its own
  static constexpr std::uint16_t kNone = 0xFFFF;

  struct Region {
    PortMemory memory;
    MemoryMode mode = MemoryMode::kPort;  // as it was obtained
    std::uint64_t stride = 0;
    std::uint32_t blocks = 0;
    std::uint32_t fresh = 0;  // blocks from here on were never taken
    std::uint32_t used = 0;
    std::uint8_t length_class = 0;
    bool there = false;
    std::uint16_t before = kNone;  // in the list of its class: regions with a free block
    std::uint16_t after = kNone;
    Message* free = nullptr;
    Time idle_since{};
  };

  static constexpr std::uint32_t kGuard = 64;
  static constexpr std::uint8_t guard_byte(std::uint32_t i) {
    return static_cast<std::uint8_t>(0xA5U ^ i * 7U);
  }

  Outcome<PortMemory> obtain(std::uint64_t bytes, MemoryMode& mode);
  Outcome<void> give_back(const Region& region);
  std::span<std::uint8_t> guard_of(Message& message) const;
  void seal(Message& message) const;
  void guard(Message& message, std::uint32_t payload) const;  // behind so many bytes
  bool look_at_guard(Message& message);
  static std::uint32_t class_of(std::uint32_t payload);
  bool grow(std::uint32_t length_class, std::uint64_t stride, std::uint64_t bytes);
  bool reserve_class(std::uint32_t length_class, std::uint32_t count);
  Message* take_from(std::uint16_t region);
  Message* take_own(std::uint32_t payload);
  std::uint64_t aside_bytes() const;
  void link(std::uint16_t region);
  void unlink(std::uint16_t region);

  VerbsPort& port_;
  std::uint8_t access_;
  Bytes region_;
  Bytes most_;
  std::uint32_t aside_ = 0;  // frames that may be wanted yet
  std::uint32_t guard_ = 0;  // bytes behind every block
  Pages pages_;
  MemoryMode mode_;
  Overrun last_overrun_;
  std::array<std::uint64_t, kClasses> stride_{};
  std::array<std::uint16_t, kClasses + 1> open_;
  std::vector<Region> regions_;
  MemoryCounts counts_;
  Time now_{};
};

}  // namespace weft::channel
