// A long line between two sites of a pair world, with a box at each end (wan/logic). Hosts of even number
// stand at site 0, the others at site 1; what goes from one site to the other passes both boxes.
//
//   host --- site's network ---> box 0 ---- line ----> box 1 --- site's network ---> host
//
// The boxes are under nobody's observation: observers stand at the hosts, and may notice them only by
// completions that come before the far placement.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/impair/impair.h"
#include "wan/code/group.h"
#include "wan/logic/box.h"

namespace weft::pair {

struct LineConfig {
  bool there = false;
  impair::ImpairConfig network;  // of the line
  Rate rate{};                   // 0: unlimited
  wan::BoxConfig boxes[2];
  // Failures: a box is switched off and on again with nothing in it.
  Time restart_at[2] = {kNever, kNever};  // each of them
  Time cut_at = kNever;                   // the line loses everything from here
  Duration cut_for{};
};

// A frame as it travels through the world.
struct Passage {
  wire::Header header;
  wire::Address source;
  wire::Address destination;
  std::vector<std::uint8_t> payload;
  std::uint8_t tos = 0;
};

class Line {
 public:
  Line(const LineConfig& config, std::uint64_t seed);

  static std::uint32_t site(std::uint32_t host) { return host & 1U; }
  const wan::Box& box(std::uint32_t which) const { return *boxes_[which]; }

  // A frame has come to box `which`, from its site.
  void arrive(Time now, std::uint32_t which, Passage frame);
  // Everything that is due; frames that leave by a box's site side are handed to `deliver`.
  void run(Time now, const std::function<void(std::uint32_t which, Passage)>& deliver);
  Time next_wake(Time now) const;
  // Nothing is kept and nothing is owned any more.
  bool idle() const;
  std::uint64_t bodies() const { return bodies_in_use_; }

 private:
  struct Flight {
    Time at;
    std::uint64_t order;
    std::uint32_t to;
    Passage frame;
  };
  void feed(Time now, std::uint32_t which, wan::Side from, Passage frame);
  void drain_bodies(std::uint32_t which);
  Passage passage(std::uint32_t which, const wan::Out& out);
  std::uint32_t store(std::uint32_t which, Passage frame);
  void restore(Time now, std::uint32_t which);
  void restart(Time now, std::uint32_t which);

  LineConfig config_;
  std::unique_ptr<wan::Box> boxes_[2];
  impair::Impairment network_;
  impair::RateLimit rate_[2];
  Time free_at_[2] = {};
  std::vector<Flight> flights_;  // a heap, the earliest first
  std::vector<Passage> bodies_[2];
  std::vector<std::uint8_t> block_;  // of the frame that is being coded
  wan::Encoder encoders_[2];
  wan::Decoder decoder_;
  std::vector<std::uint32_t> free_bodies_[2];
  std::uint64_t bodies_in_use_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace weft::pair
