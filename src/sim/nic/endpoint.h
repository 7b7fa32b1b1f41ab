// What every NIC model is built around: a core Device, the link it sends on, and the two conversions
// between them. Bursts become packets of the fabric, packets of the fabric go into the Device; bytes are
// counted, not moved. When to do which is the model's business (ideal_nic.h, and the delaying model of
// delayed_nic_test.cc).
//
// Atomics need a word of memory to work on even where bytes are only counted: each target word is kept,
// and is zero at first.
#pragma once
#include <cstdint>
#include <map>
#include <utility>

#include "core/transport/device.h"
#include "sim/fabric/frame.h"
#include "sim/fabric/port.h"
#include "sim/nic/host_address.h"
#include "sim/nic/observer.h"

namespace weft::sim {

struct EndpointCounters {
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_received = 0;
  std::uint64_t corrupt_dropped = 0;
  std::uint64_t bytes_placed = 0;
};

class Endpoint {
 public:
  Endpoint(Fabric& fabric, HostId host, const DeviceConfig& config, Port& egress, Framing framing,
           NicObserver* observer)
      : device(config),
        fabric_(fabric),
        host_(host),
        egress_(egress),
        framing_(framing),
        observer_(observer) {}

  // Sends every packet of a burst of this Device.
  void emit(const wire::Burst& burst);
  // Gives a packet that arrived to the Device, and the packet's place back to the fabric.
  void deliver(PacketRef ref);
  void progressed() {
    if (observer_ != nullptr) observer_->progressed(host_, fabric_.timeline.now());
  }

  HostId host() const { return host_; }
  Time now() const { return fabric_.timeline.now(); }
  Time line_free_at() const { return egress_.free_at(); }
  bool paced() const { return egress_.config().rate.bps != 0; }
  Fabric& fabric() { return fabric_; }
  const EndpointCounters& counters() const { return counters_; }

  Device device;

 private:
  struct Counter;  // the Sink

  Fabric& fabric_;
  HostId host_;
  Port& egress_;
  Framing framing_;
  NicObserver* observer_;
  EndpointCounters counters_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> words_;  // (region, offset)
};

}  // namespace weft::sim
