// What a bad network does to a packet: drop, duplicate, delay, reorder, corrupt, mark. This folder decides.
// The code that moves packets (the simulator's links, the live wires, the pair harness) carries it out:
//
//   const Fate v = impairment.decide();
//   for each of v.copies:  deliver after v.delay (first) or v.duplicate_delay (second)
//   if v.corrupt:          flip one bit of the first copy, number v.corrupt_draw % (8 * bytes);
//                          a world without bytes treats it as a packet whose ICRC fails
//
// Two sources of decisions, which may be combined: probabilities (ImpairConfig), drawn from a
// generator that the caller passes in, and a script ("drop packet 3, swap 5 with the next"), which
// the exhaustive tests enumerate. Packets count from 0 in the order of decide(). Where both say something,
// the script counts.
//
// Each effect draws its numbers only when its probability is not zero, so a clean link costs one
// branch per packet. Losses are independent of each other. Bursts of losses come from full queues, and
// sim/fabric models queues.
//
// Reordering is a packet that is held back by `reorder_by` while its successors pass; jitter adds a
// uniform extra delay to every packet and so reorders by itself.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/prng.h"
#include "core/base/result.h"
#include "core/base/units.h"

namespace weft::impair {

inline constexpr std::uint32_t kMillion = 1'000'000;

// Probabilities in millionths, each at most kMillion.
struct ImpairConfig {
  std::uint32_t loss = 0;
  std::uint32_t duplicate = 0;
  std::uint32_t reorder = 0;  // this packet is held back by `reorder_by`
  std::uint32_t corrupt = 0;  // one bit of this packet flips
  std::uint32_t mark = 0;     // the packet arrives with a congestion mark (ECN CE)
  Duration delay{};           // every packet
  Duration jitter{};          // every packet, uniform in [0, jitter]
  Duration reorder_by{};      // must not be zero when `reorder` is not

  Result<void> validate() const;
  bool clean() const {
    return loss == 0 && duplicate == 0 && reorder == 0 && corrupt == 0 && mark == 0 && jitter.ps == 0;
  }
  bool operator==(const ImpairConfig&) const = default;
};

struct Fate {
  std::uint8_t copies = 1;  // 0 dropped, 1, 2 duplicated
  bool corrupt = false;
  bool mark = false;
  std::uint32_t corrupt_draw = 0;  // which bit, modulo the size
  Duration delay{};                // of the first copy, ImpairConfig::delay included
  Duration duplicate_delay{};      // of the second
  bool operator==(const Fate&) const = default;
};

enum class Action : std::uint8_t {
  kDrop,
  kDuplicate,  // the second copy `by` later
  kDelay,      // hold back by `by`
  kCorrupt,
};

struct ScriptStep {
  std::uint64_t packet = 0;  // counted from 0
  Action action = Action::kDrop;
  Duration by{};
};

class Impairment {
 public:
  Impairment() : Impairment(ImpairConfig{}, Prng(0)) {}
  // `config` is valid. Steps are in ascending order of packet; several may name the same one.
  Impairment(const ImpairConfig& config, Prng prng, std::vector<ScriptStep> script = {});

  Fate decide() {
    if (clean_ && next_step_ == script_.size()) {
      ++packet_;
      Fate v;
      v.delay = v.duplicate_delay = config_.delay;
      return v;
    }
    return decide_slowly();
  }

  std::uint64_t packets() const { return packet_; }  // decided so far
  const ImpairConfig& config() const { return config_; }

 private:
  Fate decide_slowly();

  ImpairConfig config_;
  Prng prng_;
  std::vector<ScriptStep> script_;
  std::size_t next_step_ = 0;
  std::uint64_t packet_ = 0;
  bool clean_;
};

// A link's serialiser: packets leave one after the other at a rate, behind a queue of bounded delay.
// Rate zero is unlimited.
class RateLimit {
 public:
  RateLimit() = default;
  RateLimit(Rate rate, Duration longest_queue) : rate_(rate), longest_queue_(longest_queue) {}

  // When a packet that comes now has left, or kNever if the queue is full (the caller drops it).
  Time depart(Time now, Bytes size) {
    if (rate_.bps == 0) return now;
    const Time start = free_at_ > now ? free_at_ : now;
    if (start - now > longest_queue_) return kNever;
    free_at_ = start.after(rate_.time_for(size));
    return free_at_;
  }

 private:
  Rate rate_{};
  Duration longest_queue_ = kForever;
  Time free_at_{};
};

}  // namespace weft::impair
