// One direction of a link: the egress queue of a node, its serialiser, and the wire to the far end. A
// full-duplex link is two Ports.
//
//   send() -> [ FIFO, bounded in bytes ] -> serialiser (rate) -> wire (delay) -> far end
//
// One event per packet. A FIFO's future is known when a packet enters it: it leaves when everything
// before it has, so its time of departure is computed on arrival, and only the packet that reaches the
// far end next has an event pending. Queue and wire are one ring of 16-byte entries; the occupancy that
// the bound needs is found by walking `retired_` past the entries that have left by now.
//
//   ring:   head_ ............ retired_ ............ tail_
//           on the wire        in the queue, or being serialised
//
// The usual model (htsim's queue and pipe) costs an event at the end of each serialisation as well.
// Disciplines whose order is not known on arrival (several priorities, input queues) need that event and
// will be another class; a pause only has to recompute the times of entries not yet begun.
//
// Impairments (core/impair) act at the far end of the wire: a lost packet took its time on the link.
// The bound counts the packet being serialised. Not moved once built: the timeline holds its address.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/prng.h"
#include "core/base/units.h"
#include "core/impair/impair.h"
#include "sim/engine/timeline.h"
#include "sim/fabric/packet.h"
#include "sim/fabric/payload.h"

namespace weft::sim {

// What every part of one fabric shares.
struct Fabric {
  Timeline timeline;
  PacketPool packets;
  PayloadStore payloads;
  void release(PacketRef ref) {
    Packet& p = packets.at(ref);
    if (p.payload != kNoPayload) payloads.release(p.payload);
    packets.release(ref);
  }
};

struct PortConfig {
  Rate rate{};       // zero: no serialisation time
  Duration delay{};  // propagation
  Bytes queue{0};    // bound of the FIFO; zero: none
  impair::ImpairConfig impair;
};

struct PortCounters {
  std::uint64_t packets = 0;  // that reached the far end of the wire, lost ones included: link-hops
  std::uint64_t bytes = 0;    // in them
  std::uint64_t dropped_full = 0;
  std::uint64_t dropped_loss = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t delayed = 0;  // by reordering or jitter
  std::uint64_t corrupted = 0;
  std::uint64_t longest_queue = 0;  // bytes
};

class Port {
 public:
  Port(Fabric& fabric, const PortConfig& config, Prng prng);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port();

  // Packets arrive by node.Member(packet, number): port.connect<&Switch::arrive>(the_switch, 3).
  template <auto Member, class T>
  void connect(T& node, std::uint32_t number) {
    far_ = {&node,
            [](void* self, PacketRef ref, std::uint32_t n) { (static_cast<T*>(self)->*Member)(ref, n); },
            number};
  }

  // Takes the packet. When the queue is full it is dropped and counted; returns whether it was queued.
  bool send(PacketRef ref);

  // When everything queued so far has been serialised; in the past when idle.
  Time free_at() const { return free_at_; }
  // Bytes queued or being serialised now.
  Bytes queued() const;
  const PortConfig& config() const { return config_; }
  const PortCounters& counters() const { return counters_; }

 private:
  struct Entry {
    std::int64_t departs_ps = 0;  // end of its serialisation
    PacketRef packet{};
    std::uint32_t bytes = 0;
  };
  struct FarEnd {
    void* node = nullptr;
    void (*arrive)(void*, PacketRef, std::uint32_t) = nullptr;
    std::uint32_t number = 0;
  };
  struct Detour;  // packets that an impairment holds back

  Entry& entry(std::uint32_t i) { return ring_[i & mask_]; }
  Duration serialisation(std::uint32_t bytes) const {
    return ps_per_byte_ != 0 ? Duration{ps_per_byte_ * bytes} : config_.rate.time_for(Bytes{bytes});
  }
  void on_arrival(Time now);
  void impaired_arrival(PacketRef ref, Time now);
  void retire(Time now);
  void grow();

  Fabric& fabric_;
  ActorId actor_;
  std::uint32_t head_ = 0;     // free-running indices of the ring
  std::uint32_t retired_ = 0;  // first entry not known to have left the queue
  std::uint32_t tail_ = 0;
  std::uint32_t mask_ = 0;
  std::vector<Entry> ring_;
  Time free_at_{};
  std::int64_t ps_per_byte_ = 0;  // zero when the rate gives no whole number
  std::uint64_t queued_ = 0;      // bytes of entries from retired_ on
  FarEnd far_;
  PortConfig config_;
  PortCounters counters_;
  std::unique_ptr<Detour> detour_;  // null on a clean link
};

}  // namespace weft::sim
