// What watches a simulated NIC: the world (to let its workload go on), checkers, traces, the differential
// test. All calls come at the virtual time they describe; none may call back into the NIC except
// `progressed`, which comes last and is where a workload polls completions and posts.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/units.h"
#include "core/transport/sink.h"
#include "core/wire/packet.h"
#include "sim/fabric/packet.h"

namespace weft::sim {

class NicObserver {
 public:
  virtual ~NicObserver() = default;
  virtual void sent(HostId /*from*/, HostId /*to*/, const wire::TxPacket&, Time) {}
  // A message of the host's own services (services.h).
  virtual void said(HostId /*from*/, HostId /*to*/, const wire::Header&,
                    std::span<const std::uint8_t> /*mad*/, Time) {}
  virtual void arrived(HostId /*at*/, const wire::RxPacket&, Time) {}
  // `bytes` before they are written; empty where they are only counted.
  virtual void placed(HostId /*at*/, const Placement&, const wire::Header&,
                      std::span<const std::uint8_t> /*bytes*/, Time) {}
  virtual void executed(HostId /*at*/, const AtomicRequest&, std::uint64_t /*old_value*/, Time) {}
  virtual void progressed(HostId, Time) {}
  // Something has happened to a connection that the program on this host waits for. It comes out of another
  // host's call, so nothing may be done at once.
  virtual void told(HostId, Time) {}
};

}  // namespace weft::sim
