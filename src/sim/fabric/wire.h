// The propagation part of a link: what was serialised comes out at the far end `delay` later, in order. One
// event per packet, and only the packet that arrives next has one pending.
//
// Impairments (core/impair) act at the far end: a lost packet took its time on the link. PFC frames pass
// them unharmed. Not moved once built: the timeline holds its address.
//
// A wire that has failed loses what is on it and all that is sent into it until it is repaired, PFC frames
// and credits included; a packet whose serialisation began before the repair is lost with them.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/prng.h"
#include "core/impair/impair.h"
#include "sim/fabric/fabric.h"

namespace weft::sim {

struct WireCounters {
  std::uint64_t dropped_loss = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t delayed = 0;  // by reordering or jitter
  std::uint64_t corrupted = 0;
  std::uint64_t dropped_failed = 0;  // on a wire that had failed
};

class Wire {
 public:
  // `far` is the node where it ends.
  Wire(Fabric& fabric, Duration delay, const impair::ImpairConfig& impair, Prng prng,
       NodeId far = kWorldNode);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire();

  // Packets arrive by node.Member(transit, number).
  template <auto Member, class T>
  void connect(T& node, std::uint32_t number) {
    far_ = {&node,
            [](void* self, const Transit& t, std::uint32_t n) { (static_cast<T*>(self)->*Member)(t, n); },
            number};
  }

  // Credits that arrive are for the port that sends the other way: node.Member(transit).
  template <auto Member, class T>
  void on_credit(T& port) {
    credit_ = {&port, [](void* self, const Transit& t) { (static_cast<T*>(self)->*Member)(t); }};
    special_ = true;
  }

  // `departs`, the end of its serialisation, is not before that of the packet before.
  void carry(const Transit& t, Time departs) {
    if (tail_ - head_ > mask_) [[unlikely]]
      grow();
    const Time at = departs + delay_;
    ring_[tail_++ & mask_] = {at.ps, t};
    if (tail_ - head_ == 1) fabric_.timeline.wake_for_arrival(actor_, at);
  }
  // The far end reads the Packet and not only the Transit, so the wire prefetches it.
  void leads_to_host() { last_hop_ = true; }
  void fail();
  void repair();
  // Arrives at the far end now and overtakes everything on the wire.
  void deliver(const Transit& t) { far_.arrive(far_.node, t, far_.number); }
  Duration delay() const { return delay_; }
  const WireCounters& counters() const { return counters_; }

 private:
  struct Entry {
    std::int64_t at_ps = 0;
    Transit transit;
  };
  struct FarEnd {
    void* node = nullptr;
    void (*arrive)(void*, const Transit&, std::uint32_t) = nullptr;
    std::uint32_t number = 0;
  };
  struct Creditor {
    void* port = nullptr;
    void (*credit)(void*, const Transit&) = nullptr;
  };
  bool plain() const { return detour_ == nullptr && credit_.port == nullptr; }
  struct Detour;  // packets that an impairment holds back

  void on_arrival(Time now);
  bool lost_to_failure(const Transit& t, std::uint32_t index);
  void special_arrival(const Transit& t, std::uint32_t index, Time now);
  void impaired_arrival(const Transit& t, Time now);
  void grow();

  Fabric& fabric_;
  ActorId actor_;
  std::uint32_t head_ = 0;  // free-running indices of the ring
  std::uint32_t tail_ = 0;
  std::uint32_t mask_ = 0;
  bool last_hop_ = false;
  bool special_ = false;  // not every arrival is a plain one: impairments, credits, failure
  bool failed_ = false;
  bool losing_ = false;           // failed, or entries from then are still on the way:
  std::uint32_t lost_until_ = 0;  // those before this index, once repaired
  Duration delay_;
  std::unique_ptr<Entry[]> ring_;
  std::unique_ptr<Detour> detour_;  // null on a link without impairments
  FarEnd far_;
  Creditor credit_;
  WireCounters counters_;
};

}  // namespace weft::sim
