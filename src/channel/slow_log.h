// What took too long, written down (X-RDMA §6.1, III): a ring of entries that a program reads line by line.
// It adapts itself, so that a place which is always slow does not drown the others:
//
//   - A place (below) writes at once when it was quiet. While it goes on being slow it writes after 0.1 s,
//   0.2 s,
//     0.4 s ... 51.2 s; what it left out in between, and the longest of that, stand in its next entry.
//   - What took twice as long as the place's last entry is written at once.
//
// So a place writes a handful of lines a minute, whatever happens, and an outlier is never left out. Nothing
// is allocated; what nobody reads is overwritten, oldest first, and counted.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/units.h"
#include "core/verbs/port.h"

namespace weft::channel {

enum class Place : std::uint8_t {
  kPolls,        // the program was elsewhere between two polls
  kCompletions,  // of the turn: what the device completed
  kEvents,       // connections: over libibverbs this asks the kernel
  kTimers,
  kFetch,   // READs of large messages, and memory for them
  kMemory,  // allocate(): mostly a block, now and then a region is registered
  kWay,     // a traced message was on the network
  kRequest  // from call() to the response
};
inline constexpr std::size_t kPlaces = 8;
const char* name_of(Place place);
const char* word_of(Place place);  // the same, in eight letters at most

struct SlowEntry {
  Place place = Place::kPolls;
  std::uint64_t at_ns = 0;  // of the context's clock
  std::uint64_t took_ns = 0;
  std::uint64_t omitted = 0;     // that this place left out before this one
  std::uint64_t longest_ns = 0;  // of these
  // --- of kWay and kRequest ---
  wire::Address peer;
  std::uint16_t service = 0;
  std::uint64_t trace = 0;  // 0: it was not traced, and the parts are not known
  // Of a request: in the queue, on both ways together, in the other program's hands. The rest is this end's.
  std::uint64_t queued_ns = 0;
  std::uint64_t ways_ns = 0;
  std::uint64_t there_ns = 0;
};

// "request to 10.0.0.2:7 took 5120.3 us: queue 0.2, network 5101.0, peer 12.0; 41 more left out, the longest
// ..."
std::string sentence(const SlowEntry& entry);

class SlowLog {
 public:
  static constexpr std::uint32_t kEntries = 64;

  // The entry to fill in, with `place`, `at_ns`, `took_ns`, `omitted` and `longest_ns` in it. nullptr: it is
  // counted only.
  SlowEntry* add(Place place, std::uint64_t at_ns, std::uint64_t took_ns);
  bool next(SlowEntry& out);
  std::uint64_t lost() const { return lost_; }        // overwritten before they were read
  std::uint64_t written() const { return written_; }  // ever
  // Entry `number` of those ever written, if it is still there.
  const SlowEntry* at(std::uint64_t number) const {
    return number < written_ && written_ - number <= kEntries ? &ring_[number % kEntries] : nullptr;
  }

 private:
  struct OfPlace {
    std::uint64_t last_at = 0;
    std::uint64_t last_took = 0;
    std::uint64_t pause = 0;  // 0: it has never written
    std::uint64_t omitted = 0;
    std::uint64_t longest = 0;
  };
  std::array<SlowEntry, kEntries> ring_{};
  std::array<OfPlace, kPlaces> places_{};
  std::uint64_t written_ = 0;
  std::uint64_t read_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace weft::channel
