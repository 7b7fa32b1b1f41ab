// What RDMA reaches over a long line, which limit binds, and what helps: the arithmetic behind `weft wan
// plan` (docs/guide/long-distance.md). Pure functions of the question; nothing is simulated.
//
// A queue pair has so many requests posted ahead. A request is done when its acknowledgement is back, so with
// `depth` requests posted and a round trip of T, a queue pair completes at most depth / T requests a second.
// That is the paper's observation (NTT §2.2, §4.1); the depth that fills the line follows from it:
//
//   depth = (round trip + time of one message on the line) / time of one message on the line
//
// The paper's own formula, RTT x line speed / frame size, counts packets, takes no RETH and leaves out the
// message that is being sent; `Plan::paper_depth` has it.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/distance.h"
#include "core/base/result.h"
#include "core/base/units.h"
#include "wan/plan/loss.h"

namespace weft::wan {

inline constexpr std::uint32_t kWqeBytes = 64;            // of a send queue, in ConnectX's format
inline constexpr std::uint32_t kMostUnacked = 1U << 23U;  // packets of a queue pair, of 2^24 numbers

struct Question {
  Distance distance = kilometres(100);
  Duration extra{};  // what endpoints and equipment add to the round trip
  Rate rate = gigabits(100);
  std::uint32_t mtu = 4096;
  std::uint64_t message = 4096;  // bytes
  double loss = 0;               // of each packet on the line
  std::uint32_t queue_pairs = 1;
  std::uint32_t tx_depth = 128;       // requests that the program posts ahead; 128 is perftest's default
  std::uint32_t nic_depth = 16384;    // requests that a queue pair of the NIC holds (NTT §4.2)
  std::uint64_t packet_rate = 0;      // packets a second that NIC and box manage; 0: any number
  Duration local = microseconds(10);  // round trip between an endpoint and its box
  Bytes store{};                      // of each box; 0: as much as it needs
  Parity parity;

  Result<void> validate() const;  // names the options of `weft wan plan`
};

// A way to run the load. Row i of Plan::ways is way i.
enum class Way : std::uint8_t {
  kAtHand,       // the depths at hand, go-back-N end to end
  kDeep,         // the depth that fills the line, as far as the NIC holds it (NTT §4)
  kSelective,    // the same, and selective repair end to end: irn, srnic
  kBoxes,        // the depths at hand, and boxes that acknowledge early and repair selectively (NTT §5)
  kBoxesParity,  // the same, and the boxes send repair packets
};
inline constexpr std::size_t kWays = 5;
const char* way_name(Way w);

// What bounds goodput before losses take their part.
enum class Limit : std::uint8_t { kLine, kTxDepth, kNicDepth, kPacketRate, kNumbers, kStore };
const char* limit_name(Limit l);

struct Reach {
  Way way = Way::kAtHand;
  std::uint64_t depth = 0;  // requests of each queue pair
  Limit limit = Limit::kLine;
  double goodput_bps = 0;          // payload, after losses
  double loss_leaves = 1;          // of the goodput without losses
  std::uint64_t nic_bytes = 0;     // send queues of all queue pairs
  std::uint64_t buffer_bytes = 0;  // payload that programs must leave where it is
  std::uint64_t box_bytes = 0;     // stores of both boxes
};

// One message alone on the line, from the first bit to the last byte in the far endpoint's memory.
struct DeliveryTime {
  double mean_us = 0;
  double p99_us = 0;
};

struct Plan {
  Duration round_trip{};      // of the fibre
  std::uint64_t bdp = 0;      // bytes on their way when the line is full
  std::uint64_t packets = 0;  // of a message
  std::uint64_t line_bytes = 0;
  double best_bps = 0;                 // payload, when the line is full of such messages
  std::uint64_t paper_depth = 0;       // floor(RTT x rate / frame)
  std::uint64_t paper_depth_reth = 0;  // with the RETH of a WRITE Only
  std::uint64_t full_depth = 0;        // of each queue pair, so that nothing but line or packet rate binds
  std::uint64_t depth_at_hand = 0;
  std::vector<Reach> ways;
  // What would fill the line with the depth at hand.
  std::uint64_t queue_pairs = 0;
  std::uint64_t message = 0;  // 0: no message below 2 GiB
  DeliveryTime repeat;        // selective repair
  DeliveryTime parity;
  const Reach& way(Way w) const { return ways[static_cast<std::size_t>(w)]; }
};

Plan plan(const Question& q);

}  // namespace weft::wan
