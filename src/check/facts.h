// The vocabulary in which a world tells the observers what it set up. Hosts are numbered by the
// world; a queue pair is known by its host and its number.
#pragma once
#include <compare>
#include <cstdint>

#include "core/base/ids.h"
#include "core/base/seq.h"
#include "core/base/units.h"
#include "core/verbs/types.h"
#include "core/wire/header.h"

namespace weft::check {

using HostId = Id<struct HostTag, std::uint32_t>;

struct End {
  HostId host;
  Qpn qpn;
  constexpr auto operator<=>(const End&) const = default;
};

// One end of a connection, as its user configured it.
struct QpFacts {
  End self;
  End peer;
  PdId pd{};
  SrqId srq = kNoSrq;                   // where its receives come from
  wire::Mode mode = wire::Mode::kRoce;  // of the requests this end sends, and of their answers
  std::uint32_t mtu = 1024;
  WirePsn sq_psn{};
  std::uint8_t access = 0;
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t timeout = 14;
  Duration roce_timeout{};  // roce: instead of the code; zero: the code
  bool signal_all = false;
  Duration peer_rnr_delay{};  // how long an RNR NAK of the peer makes it wait

  // What the wire observer may hold this end to; zero switches a check off.
  std::uint32_t bdp_cap = 0;      // irn: packets in flight per direction
  std::uint32_t roce_window = 0;  // roce: packets in flight
  Duration selective_rto{};       // irn: nothing is resent without a NAK before this much silence
  Duration probe{};               // roce: the oldest packet alone may be sent again after this much silence
  bool rto_backs_off = true;      // each time-out without an answer doubles the next
  bool remembers_sacks = false;   // its bitmap pool is never empty, so it never sends again what was SACKed
  // irn: READs this end keeps as a responder. A request that needs the place of an older one tells it that
  // all responses of the older one arrived, even if the READ ACK was lost.
  std::uint32_t reads_kept = 0;
  bool ack_coalesce = false;
  bool path_bounded = false;  // either end caps what it has in flight to the other, all queue pairs together
  Duration cnp_interval = microseconds(50);  // as notification point
  Duration slowest_turn{};  // a controller's lowest rate lets it send after this long at the latest
  // As responder of a selective mode: how long unacknowledged READ responses may delay a refusal of a later
  // request.
  Duration answers_kept{};
  Duration credit_hold{};      // how long path credit may be lost on a peer that is gone
  bool network_loses = false;  // RETRY_EXC may happen without a bug
  bool may_starve =
      false;           // likewise: at either end higher service levels have all turns while they have work
  bool early = false;  // a pair of boxes may acknowledge WRITEs and SENDs before they are placed
};

// docs/protocol/reliable.md#time-outs-and-retries: the verbs time-out; zero means never.
constexpr Duration verbs_timeout(std::uint8_t code) {
  return code == 0 ? kForever : nanoseconds(4096LL << code);
}
constexpr Duration verbs_timeout(const QpFacts& f) {
  return f.mode == wire::Mode::kRoce && f.roce_timeout.ps != 0 ? f.roce_timeout : verbs_timeout(f.timeout);
}

// docs/protocol/constants.md#receiver-not-ready-delays: the delay behind an RNR timer code.
constexpr Duration rnr_delay(std::uint8_t code) {
  constexpr std::int64_t kTensOfMicroseconds[32] = {
      65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
      256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return microseconds(10) * kTensOfMicroseconds[code & 31U];
}

// A responder repeats unacknowledged responses four times, waiting twice as long each time, and falls
// silent after one more (docs/protocol/irn.md#silence-of-the-responder): 1 + 2 + 4 + 8 + 16 time-outs.
constexpr Duration answers_kept(Duration rto_high) { return rto_high * 31; }

// Time-outs that are measured: as long as a verbs time-out, or what the slowest answers took with their
// variation.
constexpr Duration longest_measured_rto(Duration verbs_timeout) { return verbs_timeout * 20; }

// Payload bytes going to user memory, before they are written: core/transport's Placement in the
// observers' own words.
struct Placed {
  HostId host;
  Qpn qpn;  // local queue pair
  RegionId region;
  std::uint64_t offset = 0;
  std::uint32_t payload_offset = 0;
  std::uint32_t length = 0;
};

// An atomic about to be executed: core/transport's AtomicRequest, and what it finds.
struct Executed {
  HostId host;
  Qpn qpn;  // local queue pair
  RegionId region;
  std::uint64_t offset = 0;
  bool compare_swap = false;
  std::uint64_t compare = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t old_value = 0;
};

}  // namespace weft::check
