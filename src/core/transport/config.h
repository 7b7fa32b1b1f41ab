// Everything that can be set about a Device, with its default and where that comes from.
#pragma once
#include <array>
#include <cstdint>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/transport/sched/ready_queue.h"
#include "core/wire/packet.h"

namespace weft {

struct LossScheme;

// How long irn's and srnic's retransmission timers run before they double.
enum class Rto : std::uint8_t {
  kStatic,   // rto_low or rto_high (IRN §3.1)
  kFloored,  // the same, but no less than what was measured; rto_initial before that (live)
  kDynamic,  // what was measured, as TCP does: rto_high before that, and never below rto_low (IRN §4.3)
};

struct DeviceConfig {
  // --- size: bounds of every table, fixed at creation ---
  std::uint32_t max_qp = 1024;
  std::uint32_t max_cq = 1024;
  std::uint32_t max_mr = 4096;
  std::uint32_t max_pd = 256;
  std::uint32_t max_srq = 256;
  std::uint32_t max_path = 1024;
  std::uint32_t max_ah = 1024;
  std::uint32_t max_ring = 16384;  // work requests per queue, entries per CQ ring are separate
  std::uint32_t max_cqe = 1U << 20U;
  std::uint32_t control_ring = 4096;  // ACKs and NAKs waiting to leave; a full ring drops the newest, counted

  // --- identity ---
  wire::Address address;          // our own: the destination that a datagram's receiver reads in its GRH
  std::uint32_t port_mtu = 4096;  // largest datagram (UD has no path MTU of its own)
  std::uint32_t qpn_base = 0;     // top bits of every queue pair number (the live world's process slot)
  std::uint32_t qpn_bits = 16;    // low bits that index the queue pair table
  std::uint64_t seed = 1;         // queue pair numbers and key tags are drawn from it

  // --- loss recovery ---
  std::uint32_t loss_blocks = 64;        // shared bitmap blocks; zero means go-back-N behaviour, counted
  std::uint32_t window_packets = 512;    // bits of one block, and the largest BDP cap; power of two
  std::uint32_t bdp_cap = 110;           // packets in flight per half-connection in irn; IRN §4.1
  Duration rto_low = microseconds(100);  // IRN §4.1
  bool rto_backs_off = true;  // each doubles the next, until something is acknowledged; IRN's do not
  Duration rto_high = microseconds(320);  // IRN §4.1; kForever, and rto_low too: no time-outs
  std::uint32_t rto_low_packets = 3;      // N of IRN §3.1
  Rto rto = Rto::kStatic;
  Duration rto_floor{};  // smallest time-out of the other two
  // kFloored: until a round trip was timed. Such a time-out resends the oldest packet and presumes nothing.
  Duration rto_initial = milliseconds(10);
  std::uint32_t nack_threshold = 1;  // NACKs without progress before recovery begins (IRN §7)
  // Bytes of WRITEs reach memory in order in every mode: for programs that watch the last byte (IRN §5.3.4).
  bool strict_write_order = false;
  const LossScheme* recovery =
      nullptr;                    // what its mode recovers losses with; nullptr: every mode its own scheme
  std::uint32_t roce_window = 0;  // packets in flight in roce; 0 is the standard: unbounded
  Duration roce_timeout{};  // roce: this long instead of the verbs code, whose steps are powers of two; 0:
                            // the code
  // roce: after so much silence at least (and a round trip with its variation) the oldest packet goes out
  // once more, to ask for an ACK; each time doubles the next. It costs no retry. 0: only the verbs time-out.
  Duration tail_probe{};
  // Retries are counted to 255 instead of retry_count: for studies of networks whose losses verbs would give
  // up on.
  bool never_give_up = false;
  std::uint32_t read_chunk = 0;  // roce: largest READ request on the wire in bytes, 0 is whole messages

  // --- acknowledgement ---
  bool ack_coalesce = false;    // in-order packets of one batch share an ACK
  std::uint32_t ack_every = 1;  // roce: AckReq on every n-th packet of a long message, and on its last

  // --- congestion control and scheduling ---
  std::uint8_t controller = 0;     // row of controllers() for queue pairs that name none
  Rate line_rate = gigabits(100);  // of the port: where controllers start, and what they never exceed
  Duration pacing_quantum{};  // how much a paced queue pair sends at once, as time at its rate; 0: one packet
  Schedule schedule = Schedule::kRoundRobin;  // which queue pair's turn it is
  // Weight of each service level under Schedule::kWeighted: turns in a row, at least 1.
  std::array<std::uint8_t, kServiceLevels> level_weights = {1, 2,  3,  4,  5,  6,  7,  8,
                                                            9, 10, 11, 12, 13, 14, 15, 16};
  bool send_cnp = true;  // answer congestion marks with CNPs (the notification point of DCQCN)

  // --- sending ---
  std::uint32_t burst_requests = 0;   // per turn, begun or resumed: SRNIC's n, which is 8 there; 0 unbounded
  std::uint32_t burst_packets = 64;   // per turn; also the size of the scratch burst
  std::uint32_t burst_bytes = 65000;  // payload and headers of one burst: what one GSO send can carry
  Bytes path_overhead{0};  // charged per packet beside its payload: what a receiver's buffer spends on it
  Bytes path_credit{0};    // bytes in flight per path until the peer advertises; 0 is unbounded
  Duration presumed_flight = microseconds(100);  // UC, UD: how long a packet counts towards that

  Result<void> validate() const;
};

}  // namespace weft
