// A whole random world, written down before it runs: hosts, network, connections, every message, and
// what goes wrong on purpose. A plan is a pure function of its seed, so a seed replays a world.
//
// Values that have caused bugs are drawn more often than others: sizes near multiples of the MTU, sequence
// numbers near their wrap, queues of depth one, empty pools.
#pragma once
#include <cstdint>
#include <vector>

#include "pair/world.h"

namespace weft::pair {

// What is wrong with a request, if anything.
enum class Fault : std::uint8_t {
  kNone,
  kWrongKey,     // an rkey of nothing
  kOutOfBounds,  // the last byte lies outside the region
  kNoRight,      // a region that does not grant the operation
  kWrongLocalKey,
  kTooLong,     // SEND: longer than the receive it meets
  kMemoryGone,  // the target's memory faults
};

inline constexpr std::uint32_t kMostSourceOffset = 1000;  // of a message in its source region

// What is wrong with one of the binds of an end, if anything. A wrong bind fails and ends its connection.
enum class BindFault : std::uint8_t {
  kNone,
  kBeyond,         // a byte more than the region has
  kEmpty,          // no byte at all
  kNoBindRight,    // of a region that is not for windows
  kNoLocalWrite,   // asks for remote writing of a region without local write
  kBindRight,      // asks for a right that windows do not give
  kWrongKey,       // of no region
  kForeignRegion,  // of a region in another protection domain
  kForeignWindow,  // a window of another protection domain
  kInUse,          // of a window that is open
  kCount
};

struct MessagePlan {
  WrOpcode opcode = WrOpcode::kWrite;
  std::uint8_t flags = 0;
  std::uint8_t sges = 1;
  Fault fault = Fault::kNone;
  std::uint32_t length = 0;
  std::uint32_t source_offset = 0;  // where in the source region it begins
  bool reversed = false;            // its scatter list names the pieces of a sink from last to first
};

// One direction of a connection: what one end sends, and how the other end receives.
struct FlowPlan {
  std::vector<MessagePlan> messages;
  std::uint32_t slots = 8;  // sinks of each kind; one is used again when its message is done
  std::uint32_t slot_bytes = 0;
  Duration think{};          // between posts
  Duration receive_delay{};  // between receives: longer than the messages take means RNR
  std::uint32_t spare_receives = 0;
};

enum class Disruption : std::uint8_t { kNone, kDestroy, kForceError };

// The end leaves the working state for a while: what has begun is finished, then nothing new begins.
struct DrainPlan {
  Time at = kNever;
  Duration pause{};
};

// Receives that several ends of a host draw from.
struct SharedPlan {
  std::uint32_t slots = 0;  // as many are posted at most; 0: there is no such queue
  std::uint32_t slot_bytes = 0;
  std::uint32_t max_sge = 1;
  std::uint32_t limit = 0;   // an event is asked for when fewer are left
  Duration receive_delay{};  // between posts
};

struct ConnectionPlan {
  std::uint32_t host[2] = {0, 1};
  bool atomics = false;             // some of its requests
  bool fences = false;              // many of its requests
  bool windows = false;             // some WRITEs go through memory windows that open and shut
  bool shared[2] = {false, false};  // its receives are its host's shared ones
  BindFault bad_bind[2] = {BindFault::kNone, BindFault::kNone};
  std::uint32_t good_binds[2] = {0, 0};  // before the bad one
  DrainPlan drain[2];
  std::uint32_t mtu = 1024;
  EndConfig end[2];
  FlowPlan flow[2];  // flow[i]: sent by end i
  Disruption disruption = Disruption::kNone;
  std::uint8_t disrupted_end = 0;
  Time disrupted_at{};
};

struct Plan {
  WorldConfig world;
  std::vector<ConnectionPlan> connections;
  std::vector<SharedPlan> shared;  // by host
  Duration poll_every{};           // users look at their completion queues this often; 0: at every event
  std::uint32_t forgeries = 0;     // forged packets
  Duration forge_every = microseconds(7);
  // At most this many payload bytes wait to be received at host 0 at any time; 0: no bound is checked.
  Bytes door_bound{};
};

Plan plan_world(std::uint64_t seed);

}  // namespace weft::pair
