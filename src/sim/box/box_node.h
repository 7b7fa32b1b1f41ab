// A box of wan/logic in a simulated link (docs/ARCHITECTURE.md, "A pair of boxes"): packets of the fabric
// become frames, and what the box says becomes packets.
//
//   site -> [ waiting ] -> on_frame \       / poll(line) -> line port
//                                    } Box {
//   line -> [ waiting ] -> on_frame /       \ poll(site) -> site port
//
// A frame takes `frame_time` of its side's core, and its bytes at `rate`; both zero cost nothing. What finds
// `waiting` full is dropped. The box is asked for a frame when its port is free, so a line is filled at
// exactly its own rate. PFC stops a port of the box; the box itself never stops anybody.
//
// A frame's body is its packet in the fabric's pool: what the box keeps lies there, and what it repeats is a
// copy. A corrupt packet goes no further, because the box would vouch for it.
//
// Parity is coded over what a packet is here (block_of), header, ends and sizes and the payload where a run
// carries it, with the code that a live box has. On the links a parity frame takes the bytes that it would
// have for the frames that it covers.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "sim/fabric/network.h"
#include "sim/nic/endpoint.h"
#include "wan/code/group.h"
#include "wan/logic/box.h"

namespace weft::sim {

struct BoxCost {
  Duration frame_time{};
  Rate rate{};
  std::uint32_t waiting = 4096;  // frames of a side
};

struct BoxNodeCounters {
  std::uint64_t made = 0;   // packets that are on their way because of the box: its own, and repeated ones
  std::uint64_t ended = 0;  // packets that ended in it: taken, swallowed, or without room in its logic
  std::uint64_t corrupt_dropped = 0;
  std::uint64_t overflow_dropped = 0;  // found no place to wait
};

class BoxNode {
 public:
  BoxNode(Fabric& fabric, Network& network, std::uint32_t index, const wan::BoxConfig& config,
          const BoxCost& cost, const PacketMarking& marking);
  BoxNode(const BoxNode&) = delete;
  BoxNode& operator=(const BoxNode&) = delete;

  void arrive(const Transit& t, std::uint32_t side);

  const wan::Box& box() const { return box_; }
  const BoxNodeCounters& counters() const { return counters_; }

 private:
  struct Waiting {
    std::deque<PacketRef> frames;
    Time free_at{};  // its core
    bool asked = false;
  };
  void take(PacketRef ref, std::uint32_t side);
  void begin(std::uint32_t side);
  void on_taken(Time now);
  void on_deadline(Time now);
  void on_port(Time now);
  void pump();
  void send(std::uint32_t side, const wan::Out& out);
  PacketRef copy(PacketRef from);
  PacketRef make(const wan::Out& out);
  void restore(Time now);
  std::uint32_t block_of(const Packet& p);
  void put(Time now, std::span<const std::uint8_t> block, const Packet& parity);

  Fabric& fabric_;
  wan::Box box_;
  BoxCost cost_;
  PacketMarking marking_;
  Port* ports_[2];
  ActorId taken_actor_;
  ActorId deadline_actor_;
  Time deadline_asked_ = kNever;
  Waiting waiting_[2];
  // Acknowledgements that the box makes take the way of those that it swallows: by their two ends.
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> flow_of_;
  BoxNodeCounters counters_;
  // Of parity; empty without it.
  std::unique_ptr<wan::Encoder> encoder_;
  std::unique_ptr<wan::Decoder> decoder_;
  std::vector<std::uint8_t> block_;
};

}  // namespace weft::sim
