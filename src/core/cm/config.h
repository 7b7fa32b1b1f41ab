// Everything that can be set about the connection manager, with its default and where that comes from.
//
// Time-outs are the codes that travel in the messages: 4.096 us x 2^code. Linux rounds them to powers of two
// of a millisecond; here they are exact. The defaults are RDMA-CM's, made for wide areas: a lost REQ costs
// six seconds. A program that knows its network sets smaller ones.
#pragma once
#include <cstdint>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/wire/mad.h"

namespace weft::cm {

struct CmConfig {
  std::uint32_t max_connections = 4096;  // of any state, time wait included
  std::uint32_t max_listeners = 1024;
  std::uint8_t slot = 0;      // top byte of communication and transaction ids (the live world's process slot)
  std::uint64_t seed = 1;     // ids and starting PSNs are drawn from it
  std::uint64_t ca_guid = 0;  // of this node

  std::uint8_t packet_life = 18;       // one way, 1.07 s; connection-manager.md#time-outs-of-the-manager
  std::uint8_t ack_delay = 15;         // of a peer's NIC
  std::uint8_t response_timeout = 20;  // how long an answer may take, 4.3 s
  std::uint8_t service_timeout = 24;   // promised by an MRA: 69 s
  std::uint8_t max_retries = 15;

  // Until then a request for what nobody serves is dropped instead of refused: a program that has just begun
  // may be about to listen, and the peer asks again.
  Time refuse_from{};
  // The same for this long after a listener closes: its program may be about to listen anew.
  Duration reopening{};

  // The RNR delay of a connection's receiver, code 12 (0.64 ms), where the peer asks for ever; where it
  // counts, RDMA-CM's own, 0 (655 ms), so that a count lasts as long as with hardware.
  std::uint8_t patient_rnr_timer = 0;

  // Bits of wire::mode_bit. Connections use what both sides speak; without roce among ours, `preferred` is
  // used even towards a peer that negotiates nothing.
  std::uint16_t modes = wire::kAllModes;
  wire::Mode preferred = wire::Mode::kIrn;
  wire::EceOptions options;  // irn and srnic in it are ignored: `modes` says

  Result<void> validate() const;
};

constexpr Duration timeout_of(unsigned code) { return nanoseconds(4096) * (std::int64_t{1} << (code & 31U)); }

}  // namespace weft::cm
