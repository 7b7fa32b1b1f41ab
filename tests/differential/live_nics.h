// The whole soft NIC in virtual time: Nics (live/engine) with their Contexts and Connections, on the wire of
// virtual_wire.h, with a clock that the world sets and without background threads. The world moves their
// shards instead, as a background thread would; programs act on threads of their own, one at a time, so that
// a call that waits (Nic::ask) can wait.
//
// Their services are configured by the Nic's options. So they are made first, and the simulated world takes
// over what they were configured to.
#pragma once
#include <memory>

#include "tests/differential/party.h"

namespace weft::differential {

class LiveNics {
 public:
  // The plan's devices, networks and kinds count; its services become those of the Nics.
  explicit LiveNics(CallsPlan& plan);
  ~LiveNics();
  LiveNics(const LiveNics&) = delete;
  LiveNics& operator=(const LiveNics&) = delete;

  bool run(Party& party, const Sabotage& sabotage = {});  // as run_live()

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace weft::differential
