// How a soft NIC is configured: one table of environment variables, written by `weft run` and read
// by the drop-in library inside the program that it starts. The command line validates with the same
// functions, so a bad value is one sentence at the front door.
//
//   variable         default     meaning
//   WEFT_ADDR        127.0.0.1   address to bind, IPv4 or IPv6; it is also the GID. One of each, with a comma
//                                between, makes two GIDs in that order
//   WEFT_WIRE        auto        auto: shared memory within this host, else udp (live/wires/shm.h); udp alone
//                                where there are two addresses. shm: as auto, but refused with two. udp.
//                                packet or xdp: raw frames of an Ethernet interface (live/wires/packet.h)
//   WEFT_MODE        auto        roce, irn or srnic: the mode of this process's requests; auto: what the
//                                peer speaks, as the connection manager or discovery finds out
//   WEFT_CC          none        congestion control of what this process sends: a row of the table in
//                                core/transport/cc, such as dcqcn
//   WEFT_SCHEDULE    round-robin whose turn it is: round-robin, weighted or priority (by service level)
//   WEFT_LEVEL       sl          what gives a connection's service level: sl, the address vector's own, or
//                                dscp, the upper three bits of its traffic class (0 to 7)
//   WEFT_LOSS        0           probability that a received packet is dropped, such as 1%; all of these but
//                                WEFT_MARK also by direction: in=1%,out=2%
//   WEFT_DUPLICATE   0           ... is delivered twice
//   WEFT_REORDER     0           ... is held back for WEFT_REORDER_BY
//   WEFT_REORDER_BY  100us
//   WEFT_CORRUPT     0           ... has one bit flipped
//   WEFT_MARK        0           ... arrives with a congestion mark (ECN)
//   WEFT_DELAY       0           every received packet waits this long, such as 50us
//   WEFT_JITTER      0           ... and up to this much longer, drawn per packet
//   WEFT_RATE        0           packets leave no faster than this, such as 10Gbps; 0: as they may
//   WEFT_QUEUE       8MiB        bytes that wait before WEFT_RATE; what comes on top is dropped
//   WEFT_SEED        random      seed of the impairments
//   WEFT_STATS       off         on: what happened, in numbers, on standard error when the device closes
//   WEFT_TRACE                   a pcapng file for every packet that leaves or comes in (live/capture)
//   WEFT_TRACE_SNAP  0           bytes of each packet that it keeps; 0: all
//   WEFT_WRITE_ORDER any         strict: received WRITEs reach memory in order, whatever the sender's mode
//   WEFT_SHARDS      1           how many threads carry packets, each for its share of the queue pairs
//                                (docs/ARCHITECTURE.md#shards)
//   WEFT_ICRC        on          on or off; off neither computes nor checks, so both ends must agree
//
// Impairments act on the receiving side unless a direction is named, on single packets, after the kernel's
// segmentation offload has been undone (live/wires/impaired.h says why); on the sending side they and the
// rate are a line that packets leave by (live/wires/line_out.h).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/impair/impair.h"
#include "core/transport/sched/ready_queue.h"
#include "core/wire/header.h"
#include "core/wire/packet.h"
#include "live/wires/addresses.h"
#include "live/wires/line_out.h"
#include "live/wires/open.h"

namespace weft::live {

struct Options {
  Addresses own{wire::Address::v4(127, 0, 0, 1)};
  WireKind wire = WireKind::kAuto;
  std::optional<wire::Mode> mode;  // none: whatever the peer speaks
  std::uint8_t controller = 0;     // row of controllers()
  Schedule schedule = Schedule::kRoundRobin;
  bool level_from_dscp = false;
  impair::ImpairConfig impairments{.reorder_by = microseconds(100)};
  LineConfig line{.impairments = {.reorder_by = microseconds(100)}};  // its seed and ICRC are the two below
  std::uint64_t seed = 0;                                             // of the impairments; 0 draws one
  bool icrc = true;
  bool stats = false;
  std::string trace;  // the file; empty: none
  std::uint32_t trace_snap = 0;
  bool strict_write_order = false;

  std::uint32_t shards = 1;  // at most kMostShards (shared_tables.h)

  // What one option alone does not tell.
  Result<void> validate() const;
  bool operator==(const Options&) const = default;
};

// One row of the table above.
struct Setting {
  const char* variable;
  const char* option;  // of `weft run`, without dashes
  const char* help;
  // `field` is how an error names it: the variable, or the option with its dashes.
  Result<void> (*parse)(const char* field, std::string_view text, Options& options);
};
std::span<const Setting> settings();

// Reads every WEFT_* variable through `get` (getenv's signature).
Result<Options> options_from_environment(char* (*get)(const char* name));

}  // namespace weft::live
