// What every NIC model is built around: a core Device, the link it sends on, and the two conversions
// between them. Bursts become packets of the fabric, packets of the fabric go into the Device; bytes are
// counted, and moved only in runs that verify them (host_memory.h). When to do which is the model's business
// (ideal_nic.h, and the delaying model of delayed_nic_test.cc).
//
// Atomics need a word of memory to work on even where bytes are only counted: each target word is kept,
// and is zero at first.
#pragma once
#include <cstdint>
#include <map>
#include <utility>

#include "core/transport/device.h"
#include "core/wire/mad.h"
#include "sim/fabric/frame.h"
#include "sim/fabric/port.h"
#include "sim/nic/host_address.h"
#include "sim/nic/host_memory.h"
#include "sim/nic/observer.h"

namespace weft::sim {

class Services;

struct EndpointCounters {
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_received = 0;
  std::uint64_t corrupt_dropped = 0;
  std::uint64_t overflow_dropped = 0;  // a model's receive buffer was full
  std::uint64_t bytes_placed = 0;
};

// How packets look to the network.
struct PacketMarking {
  Framing framing = Framing::kWire;
  std::uint8_t data_class = 0;
  std::uint8_t control_class = 0;  // of ACKs, NAKs and CNPs
  std::uint32_t extra_header = 0;  // bytes that each packet with payload carries beyond its mode's (IRN §6.3)
  std::uint32_t ack_bytes = 0;     // what an ACK, NAK or CNP occupies a link for; 0: what its headers do
  bool count_reads = false;        // what a READ brings is counted, and not moved
  // A framing alone is a marking with everything else as it is here.
  PacketMarking(Framing f = Framing::kWire) : framing(f) {}
};

class Endpoint {
 public:
  Endpoint(Fabric& fabric, HostId host, const DeviceConfig& config, Port& egress, PacketMarking marking,
           NicObserver* observer)
      : device(config),
        fabric_(fabric),
        host_(host),
        egress_(egress),
        marking_(marking),
        observer_(observer) {}

  // Sends every packet of a burst of this Device.
  void emit(const wire::Burst& burst);
  // The same in two steps, for a model in which a packet takes a while from the Device to the link: one
  // packet of a burst as a packet of the fabric, and its departure.
  PacketRef make(const wire::Burst& burst, const wire::TxPacket& packet);
  void launch(PacketRef ref) { egress_.send(ref); }
  // A packet that arrived finds no room in the NIC.
  void refuse(const Transit& t) {
    ++counters_.overflow_dropped;
    fabric_.release(t.packet);
  }
  // From here on messages to queue pair 1 are theirs (services.h).
  void serve(Services* services) { services_ = services; }
  // A message to queue pair 1 goes to the host's services and never to the Device. A host without services
  // ends it, such as one between boxes of which none stood on its way. True: it was one.
  bool ends_service(const Transit& t);
  // Gives a packet that arrived to the Device, and the packet's place back to the fabric.
  void deliver(const Transit& t);
  void progressed() {
    if (observer_ != nullptr) observer_->progressed(host_, fabric_.timeline.now());
  }

  void said(HostId to, const wire::Header& header, const wire::Mad& mad) {
    ++counters_.packets_sent;
    if (observer_ != nullptr) observer_->said(host_, to, header, mad, now());
  }

  void told() {
    if (observer_ != nullptr) observer_->told(host_, fabric_.timeline.now());
  }

  HostId host() const { return host_; }
  const PacketMarking& marking() const { return marking_; }
  Time now() const { return fabric_.timeline.now(); }
  Port& egress() { return egress_; }
  // Data may begin: the link is free, and neither PFC nor credits stop it.
  bool line_free() const { return egress_.free_for(marking_.data_class); }
  bool stopped() const { return egress_.paused(marking_.data_class); }
  Fabric& fabric() { return fabric_; }
  const EndpointCounters& counters() const { return counters_; }
  const Placement& last_placement() const { return last_placement_; }

  Device device;
  HostMemory memory;  // not empty: packets carry its bytes

 private:
  struct Counter;  // the Sink
  bool held(const wire::Burst& burst, const wire::TxPacket& packet) const;
  PayloadRef gather(const wire::Burst& burst, const wire::TxPacket& packet);

  Fabric& fabric_;
  HostId host_;
  Port& egress_;
  PacketMarking marking_;
  NicObserver* observer_;
  Services* services_ = nullptr;
  EndpointCounters counters_;
  Placement last_placement_{};
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> words_;  // (region, offset)
};

}  // namespace weft::sim
