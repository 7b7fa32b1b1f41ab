// One direction of a link: the queues of a node, their serialiser, and the wire to the far end. A
// full-duplex link is two Ports.
//
//   send(), enqueue() -> [ queues by class and input ] -> serialiser (rate) -> wire (delay) -> far end
//
// A packet that finds the link free begins at once: one event, its arrival. Only when others wait does the
// end of a serialisation cost an event of its own. (The usual model, htsim's queue and pipe, has three
// events a hop.) Which packet is next is decided when the link is free: the highest class that PFC has not
// paused, in it the queues' own order (queues.h).
//
// A packet is out of the queue when its serialisation begins. PFC frames go ahead of all data, behind the
// packet being serialised. Not moved once built: the timeline holds its address.
//
// With credits a port knows, for each class, how many bytes its far end has room for. It begins a packet only
// when the largest frame would fit; a class without credit is stopped like one that PFC has paused. Credits
// come back over the link's other direction, a few bytes each, when a packet leaves the far end's buffer.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "core/base/prng.h"
#include "core/base/units.h"
#include "sim/fabric/histogram.h"
#include "sim/fabric/queues.h"
#include "sim/fabric/wire.h"

namespace weft::sim {

struct PortConfig {
  Rate rate{};       // zero: no serialisation time
  Duration delay{};  // propagation
  Bytes queue{0};    // bound of send()'s queue; zero: none
  impair::ImpairConfig impair;
  std::uint32_t inputs = 1;  // virtual output queues per class (queues.h)
  NodeId node = kWorldNode;  // whose it is, in time (timeline.h)
  NodeId far = kWorldNode;   // where it leads
};

struct PortCounters {
  std::uint64_t packets = 0;  // whose serialisation began: link-hops
  std::uint64_t bytes = 0;    // in them
  std::uint64_t dropped_full = 0;
  std::uint64_t dropped_control = 0;  // of those, ACKs, NAKs and CNPs
  std::uint64_t marked = 0;           // ECN
  std::uint64_t pauses_sent = 0;      // X-OFF frames
  std::uint64_t longest_queue = 0;    // bytes
};

class alignas(64) Port {
 public:
  static constexpr std::uint32_t kPfcFrameBytes = 64 + 20;
  static constexpr std::uint32_t kCreditFrameBytes = 8;  // as InfiniBand's

  Port(Fabric& fabric, const PortConfig& config, Prng prng);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  template <auto Member, class T>
  void connect(T& node, std::uint32_t number) {
    wire_.connect<Member>(node, number);
  }
  void leads_to_host() { wire_.leads_to_host(); }
  // The link's failure and repair. A port goes on sending: what it sends is lost (wire.h).
  void fail();
  void repair() { wire_.repair(); }
  // Tells the far end at once what a PFC frame would tell it.
  void tell(const Transit& pfc) { wire_.deliver(pfc); }
  // node.Member(transit, ingress) is called whenever a packet leaves the queues.
  template <auto Member, class T>
  void on_departure(T& node) {
    departure_ = {&node, [](void* self, const Transit& t, std::uint16_t ingress) {
                    (static_cast<T*>(self)->*Member)(t, ingress);
                  }};
  }
  // node.Member(now) is called once the link is idle, after each await_idle().
  template <auto Member, class T>
  void on_idle(T& node) {
    idle_ = {&node, [](void* self, Time now) { (static_cast<T*>(self)->*Member)(now); }};
  }

  // A host's packet. When the queue is full it is dropped and counted; returns whether it was taken.
  bool send(PacketRef ref);

  // A packet of this class would begin now.
  bool free_for(std::uint8_t traffic_class) const {
    return free_at_ <= fabric_.timeline.now() && !paused(traffic_class) && !queues_.ready(paused_);
  }
  // Begins to serialise now; free_for() its class.
  void begin(const Transit& t) {
    const Time now = fabric_.timeline.now();
    free_at_ = now + serialisation(t.bytes);
    ++counters_.packets;
    counters_.bytes += t.bytes;
    wire_.carry(t, free_at_);
    if (spends_) [[unlikely]]
      spend(t);
  }
  void enqueue(const Transit& t, std::uint16_t ingress);

  // PFC stops this port, or lets it go on: its far end has no room, or has room again, for a class.
  void pause(std::uint8_t traffic_class, bool on);
  bool paused(std::uint8_t traffic_class) const { return (paused_ >> traffic_class & 1U) != 0; }
  // This port stops its far end's sending port, or lets it go on.
  void send_pfc(std::uint8_t traffic_class, bool on);
  // From now on it may send only as much as its far end has room for: `granted` bytes of each class. Its
  // credits come back over `reverse`. A link that fails has credit without end, until it is granted anew what
  // is not `taken` of the far end's buffer.
  void grant(std::uint64_t granted, std::uint32_t largest_frame, Port& reverse);
  void grant_again(const std::array<std::uint64_t, kClasses>& taken);
  // Gives credit back to the far end's sending port.
  void send_credit(std::uint8_t traffic_class, std::uint32_t bytes);
  bool credited() const { return credits_ != nullptr; }
  std::uint64_t granted() const { return credits_->granted; }
  std::uint64_t credit(std::uint8_t traffic_class) const { return credits_->left[traffic_class]; }
  void count_mark() { ++counters_.marked; }
  // A packet for this link found no room: it is counted, and its place given back.
  void drop(PacketRef ref);

  // Calls the listener when nothing is being serialised and no packet may leave.
  void await_idle() {
    idle_awaited_ = true;
    ask(std::max(free_at_, fabric_.timeline.now()));
  }

  // When the packet being serialised has left; in the past when there is none.
  Time free_at() const { return free_at_; }
  // Bytes waiting, without the packet being serialised.
  Bytes queued() const { return {queues_.bytes()}; }
  Bytes queued(std::uint8_t traffic_class) const { return {queues_.bytes(traffic_class)}; }
  Duration serialisation(std::uint32_t bytes) const {
    return ps_per_byte_ != 0 ? Duration{ps_per_byte_ * bytes} : config_.rate.time_for(Bytes{bytes});
  }
  const PortConfig& config() const { return config_; }
  const PortCounters& counters() const { return counters_; }
  const WireCounters& wire_counters() const { return wire_.counters(); }
  Duration paused_for() const;  // in all, any class
  // Queue lengths as arriving packets found them.
  Histogram found_waiting() const;

 private:
  struct Departure {
    void* node = nullptr;
    void (*left)(void*, const Transit&, std::uint16_t) = nullptr;
  };
  struct Idle {
    void* node = nullptr;
    void (*idle)(void*, Time) = nullptr;
  };

  struct Credits {
    std::uint64_t granted = 0;
    std::uint32_t largest_frame = 0;
    std::array<std::uint64_t, kClasses> left{};
  };
  void spend(const Transit& t);
  void on_credit(const Transit& t);
  void credit_changed(std::uint8_t traffic_class);
  void on_service(Time now);
  void serve(Time now);
  void ask(Time at) {
    if (asked_) return;
    asked_ = true;
    fabric_.timeline.wake(actor_, at);
  }

  // Members stand in the order in which a hop touches them: a packet that finds the link free touches two
  // cache lines.
  Fabric& fabric_;
  Time free_at_{};
  std::int64_t ps_per_byte_ = 0;  // zero when the rate gives no whole number
  std::uint32_t paused_ = 0;      // bit k: class k
  bool asked_ = false;            // on_service is to come
  bool idle_awaited_ = false;
  bool spends_ = false;  // credits count
  ActorId actor_;
  Wire wire_;
  PortCounters counters_;
  Queues queues_;
  Departure departure_;
  Idle idle_;
  Time paused_since_{};
  Duration paused_for_{};
  std::unique_ptr<Histogram> lengths_;  // of queues that were not empty
  std::unique_ptr<Credits> credits_;
  PortConfig config_;
};

}  // namespace weft::sim
