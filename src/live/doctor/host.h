// What a soft NIC would find on this host: as facts, so that judging them (diagnosis.h) needs no host.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/wire/packet.h"
#include "live/wires/open.h"

namespace weft::live {

struct Host {
  std::string wire_refused;  // why the wire does not open; empty: it does
  // With the wire open:
  bool loopback = false;
  std::string interface;             // its name; empty: the kernel tells none
  std::uint32_t mtu = 0;             // of the interface
  std::uint32_t ip_header = 20;      // the larger one of its packets
  std::uint64_t receive_buffer = 0;  // granted
  bool trains = false;               // the kernel cuts what is sent as one piece
  // Of the interface; absent: it does not tell.
  std::optional<bool> cuts_late;  // tx-udp-segmentation: trains stay whole as far as the device
  // Of the process:
  std::uint32_t processors = 1;           // that it may use
  std::optional<double> processor_quota;  // processors' worth of time, where a control group bounds it
  std::uint64_t descriptors = 0;          // it may have open
  std::string clock_source;               // empty: the kernel tells none
  bool shared_memory = false;             // /dev/shm takes files
};

// Opens the wire and closes it again; nothing is sent to others.
Host examine(WireKind wire, const Addresses& own);

}  // namespace weft::live
