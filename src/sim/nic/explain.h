// A design on paper: what one message costs every part, without simulating anything. Two answers follow. The
// latency of an idle NIC is the sum of its stages (detailed_nic_test.cc holds the simulation to it), and the
// message rate is bounded by the stage that is busy longest with one message; that one binds.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/verbs/types.h"
#include "sim/nic/design.h"

namespace weft::sim {

struct MessageLoad {
  WrOpcode op = WrOpcode::kSend;  // SEND, WRITE or READ
  std::uint32_t bytes = 64;
  std::uint32_t mtu = 1024;
  Rate link = gigabits(100);
  std::uint32_t queue_pairs = 1;
  std::uint32_t batch = 1;   // requests of one doorbell
  std::uint32_t depth = 16;  // requests outstanding on a queue pair
  double miss = 0;           // of contexts, the part that is not on the chip, once a message and side
  double untranslated = 0;   // reads of the table of translations, of a message and side
};

struct StageBound {
  std::string name;
  Duration latency{};  // of one message in an idle NIC; zero where it overlaps with another
  Duration busy{};     // how long it is occupied with one message; zero: no bound
  std::string text;    // why
  double per_second() const { return busy.ps == 0 ? 0 : 1e12 / static_cast<double>(busy.ps); }
};

struct Explanation {
  std::vector<StageBound> sender;
  std::vector<StageBound> receiver;
  std::vector<StageBound> link;
  // From post to the receiver's completion (of a READ, to the requester's) through two NICs and a link of no
  // length.
  Duration latency{};
  // To the requester's completion: the same up to the receiver's context, then the way of the ACK.
  Duration completion{};
  const StageBound* binding = nullptr;  // of the three lists
};

Explanation explain(const Design& design, const MessageLoad& load);

// What NICs add to the round trip of a full packet and its ACK, as the transport sees it.
Duration round_trip_of(const Design& design, std::uint32_t mtu, bool misses);

// How long the NIC may be busy with so many bytes in small messages, at the worst: for bounds after which
// waiting means that nothing goes on.
Duration slowest_in_nic(const Design& design, std::uint64_t bytes, std::uint32_t mtu);

}  // namespace weft::sim
