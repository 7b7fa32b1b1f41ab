// What every part of one simulated network shares: virtual time, the packets, and the places where they
// wait.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/fabric/packet.h"
#include "sim/fabric/payload.h"

namespace weft::sim {

// Places in queues, as nodes of linked lists in one pool: a queue that holds nothing costs eight bytes, and a
// switch with virtual output queues has a thousand of them. Last released, first reused.
class WaitingRoom {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Place {
    Transit transit;
    std::uint32_t next = kNone;
    std::uint16_t ingress = 0;  // port of the switch that it came in by
  };
  std::uint32_t take(const Transit& t, std::uint16_t ingress) {
    std::uint32_t p = free_;
    if (p != kNone) {
      free_ = places_[p].next;
    } else {
      p = static_cast<std::uint32_t>(places_.size());
      places_.emplace_back();
    }
    // Member by member: a whole Place would be put together elsewhere and read back before its parts are
    // stored.
    Place& place = places_[p];
    place.transit = t;
    place.next = kNone;
    place.ingress = ingress;
    return p;
  }
  void give_back(std::uint32_t p) {
    places_[p].next = free_;
    free_ = p;
  }
  Place& at(std::uint32_t p) { return places_[p]; }
  void prefetch(std::uint32_t p) const { __builtin_prefetch(&places_[p], 1); }

 private:
  std::vector<Place> places_;
  std::uint32_t free_ = kNone;
};

struct Fabric {
  Timeline timeline;
  bool apart = false;  // hosts and switches are nodes of their own in time; otherwise all are one
  PacketPool packets;
  PayloadStore payloads;
  WaitingRoom waiting;

  NodeId node_of(HostId host) const { return apart ? NodeId{2U + host.v} : kTogether; }
  static constexpr NodeId kTogether{1};

  void release(PacketRef ref) {
    Packet& p = packets.at(ref);
    if (p.payload != kNoPayload) payloads.release(p.payload);
    packets.release(ref);
  }
};

}  // namespace weft::sim
