// The line that a process sends on: a rate, a queue before it, and impairments of what leaves. It stands
// between the NIC and another wire.
//
//   NIC ---> queue, at most `queue` bytes ---> rate ---> loss, duplication, corruption ---> delay ---> other
//   wire
//
// It breaks trains apart, which costs copies and the sending side's offload: what is only received worse is
// cheaper to impair (impaired.h). What is due together leaves together: frames that may share a train do
// (pack.h has the rule), and their ICRCs are computed anew where their place in the train has changed,
// because the place is the IPv4 identification.
//
// The rate counts what a frame takes of an Ethernet, with headers, preamble and gap. A frame leaves late if
// nobody looks, and the next one is due as if it had been on time: so the rate is kept over time, and
// exceeded in bursts of what was late. What waits when the device closes, or
// the process ends by exit(), leaves at once.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/units.h"
#include "core/impair/impair.h"
#include "live/wires/frame_log.h"
#include "live/wires/held_frames.h"
#include "live/wires/icrc_seeds.h"
#include "live/wires/wire.h"

namespace weft::live {

struct LineConfig {
  impair::ImpairConfig impairments{};  // `mark` is the receiver's alone: a kernel tells it of no other
  Rate rate{};                         // 0: unlimited
  Bytes queue{8U << 20U};              // that wait for the rate: two windows of the largest packets
  std::uint64_t seed = 0;
  bool icrc = true;  // frames carry one

  bool operator==(const LineConfig&) const = default;
  bool clean() const { return impairments.clean() && impairments.delay.ps == 0 && rate.bps == 0; }
};

#define WEFT_LINE_COUNTERS(X)                         \
  X(frames, "packets that were to leave by the line") \
  X(overflow, "lost in the queue before --rate")      \
  X(dropped, "lost by --loss out")                    \
  X(duplicated, "sent twice by --duplicate out")      \
  X(corrupted, "with a bit flipped by --corrupt out") \
  X(refused, "lost because the network refused them, or too many waited already")

struct LineCounters {
#define WEFT_X(name, text) std::uint64_t name = 0;
  WEFT_LINE_COUNTERS(WEFT_X)
#undef WEFT_X
};

class LineOut {
 public:
  // What a frame takes on an Ethernet beside its own bytes: Ethernet, IP and UDP headers, checksum, preamble
  // and gap.
  static constexpr std::uint64_t around(const wire::Address& destination) {
    return 14 + (wire::is_v4_mapped(destination) ? wire::kIpv4Bytes : wire::kIpv6Bytes) + 8 + 4 + 8 + 12;
  }

  LineOut(const LineConfig& config, Wire& to, FrameLog* log);

  void take(const TxTrain& train);
  void release(Time now);
  void release_all();
  void forget_all();  // in a forked child
  Time next_due() const { return frames_ != 0 ? Time{} : held_.next_due(); }
  void visit_counters(const Wire::SeeCounter& see) const;
  const LineCounters& counters() const { return counters_; }

 private:
  struct Leaving {
    wire::Address destination;
    IpChoice ip;
    std::uint16_t sealed = 0;  // the identification under its ICRC
    bool corrupt = false;
    bool again = false;  // a second copy
    std::uint32_t draw = 0;
  };
  using Held = HeldFrames<Leaving>::Held;

  void hold(Time due, std::span<const std::uint8_t> frame, const Leaving& what, Time now);
  void tell(std::span<const std::uint8_t> frame, const Leaving& what, Time now, std::string_view fate);
  bool fits(const Held& next) const;
  void leave(Time until, Time now);
  void append();
  bool send(Time now);
  void seal(std::uint32_t index, std::uint16_t identification);
  std::span<std::uint8_t> frame(std::uint32_t index);

  const LineConfig config_;
  Wire& to_;
  FrameLog* const log_;
  impair::Impairment impairment_;
  impair::RateLimit limit_;
  HeldFrames<Leaving> held_;
  IcrcSeeds seeds_;
  LineCounters counters_;
  Time now_{};  // the latest that was heard of
  // The train under construction, or the one that the wire did not take.
  std::unique_ptr<std::uint8_t[]> buffer_;
  std::vector<Leaving> in_train_;
  std::uint32_t frames_ = 0;
  std::uint32_t bytes_ = 0;
  std::uint32_t frame_size_ = 0;
  std::uint32_t last_size_ = 0;
};

}  // namespace weft::live
