// A scenario: what is simulated, as people write it (TOML) and as the simulator needs it.
//
//   seed = 1              # of losses and random numbers
//   hosts = 2
//   limit = "10s"         # of virtual time; the run ends earlier when every flow is done
//   check = true          # independent observers watch every packet and completion
//   bytes = true          # packets carry real bytes, and the observers compare them
//
//   [measure]             # results are of flows that begin in here; the run ends with the last of them
//   from = "30ms"         # 0: from the beginning
//   until = "80ms"        # 0: to the end of all flows
//   cut_off = "10ms"      # so long after `until` flows under way count with their age: a lower bound
//   [topology]
//   kind = "single"       # or dumbbell, fat-tree, srnic, file: `weft sim --list`
//   k = 6                 # fat-tree: ports of a switch, or let `hosts` decide
//   core_rate = "400Gbps" # links between switches, where they differ
//   file = "net.txt"
//   routing = "ecmp"      # or spray, fixed
//   [network]             # links
//   rate = "100Gbps"      # 0: no serialisation time
//   delay = "1us"         # propagation, per link
//   loss = "1%"           # of the packets on their way into a host, so once per way; also
//                         # duplicate, corrupt, mark (for congestion), reorder, reorder_by, jitter
//   data_class = 0        # traffic classes, the higher goes first; PFC stops one class
//   control_class = 0     # of ACKs, NAKs, CNPs
//   reconverge = "100us"  # from a link's failure or repair to routes that know of it
//   [switch]
//   kind = "output-queued"  # or input-queued
//   buffer = "0"          # of each port (input-queued) or of the switch; 0: none, or what PFC needs;
//                         # "auto": 2 x BDP for each port
//   queue = "0"           # bound of each output's queue; 0: none
//   alpha = "1"           # output-queued: dynamic threshold
//   pfc = false           # xoff, xon: fixed limits instead of computed ones
//   credits = false       # instead: senders know how much room there is
//   ecn = "none"          # or step (ecn_low), red (ecn_low, ecn_high, ecn_probability)
//   [transport]
//   mode = "irn"          # or "roce", "srnic"; "tcp" is iWARP's, for [[traffic]] that writes or sends
//   controller = "dcqcn"  # congestion control: a row of the table in core/transport/cc; "none"
//   mtu = 4096            # … bdp_cap, rto_low, rto_high, rto_low_packets, rto, roce_window, loss_blocks,
//                         # timeout (verbs code), roce_timeout, timeouts, retry_count, give_up, rnr_retry,
//                         # rto_backoff, tail_probe; left out, bdp_cap, rto_low, rto_high and timeout are
//                         computed
//   [nic]
//   design = "ideal"      # costs nothing; or a built-in design, or a file beside this one:
//   docs/guide/nic-models.md set = "pcie.rate=64Gbps, scheduler.wqes=4"  # changes of the design
//   retransmit_delay = "0us"  # from finding a packet lost to having it fetched for sending again (IRN §6.3)
//   extra_header = 0      # bytes that each data packet carries beyond its mode's
//   ack_bytes = 0         # what an ACK, NAK or CNP occupies a link for; 0: what its headers do
//   [tcp]
//   flavour = "sack"      # or newreno, reno
//   initial_window = 10   # segments; a segment's data is as large as transport.mtu
//   rto_min = "0"         # 0: as rto_high; rto_initial: 0 computes
//                         # … rto_max, duplicate_acks, delayed_ack, receive_window
//   [[flow]]              # one table each
//   from = 0
//   to = 1
//   op = "write"          # write, write_imm, send, send_imm, read, compare_swap, fetch_add
//   size = "64KiB"        # of one message
//   count = 1000          # messages per queue pair
//   depth = 16            # of them outstanding
//   qps = 1
//   start = "0us"
//   [[traffic]]           # drawn flows, one message each on a queue pair of its own; one table each
//   pattern = "poisson"   # or incast, permutation, all-to-all, trace; [[flow]] and [[traffic]] may meet
//   sizes = "web-search"  # a distribution of `weft sim --list`, a file like those, or one size
//   verb = "write"        # send, read, mixed
//   load = "70%"          # … flows, duration, start; fan_in, connections, target, total, requests,
//                         # every; trace
//   [channels]            # contexts of the middleware, and
//   [[messages]]          # what their programs send over channels: sim/world/channel_spec.h
//   [[line]]              # a link that is long, or bad; one table each
//   link = "edge0-edge1"
//   distance = "1000km"   # 5 us each; and rate, loss, duplicate, corrupt, reorder, reorder_by, jitter
//   [[accelerator]]       # a pair of boxes that acknowledge early (docs/guide/long-distance.md)
//   link = "edge0-edge1"  # at its two ends; or in two links, each with the node of its site first:
//                         # near = "host0-edge0", far = "host1-edge1"
//   acknowledge = "early" # or far; none: no boxes
//   store = "256MB"       # of each box, … frames, frame_time, rate, quiet, give_up;
//   parity = "16+2"       # for sixteen data frames on the line two of parity; 0: none
//   [[failure]]           # one table each
//   link = "edge0-agg1"   # or links = 2: so many between switches, drawn from the seed
//   at = "1ms"
//   repair = "3ms"        # left out: never
//
// Everything but the flows has the defaults of the structs below. Unknown names and values outside their
// range are refused with one sentence; nothing is guessed.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/distance.h"
#include "core/base/result.h"
#include "core/base/units.h"
#include "core/impair/impair.h"
#include "core/transport/config.h"
#include "core/verbs/types.h"
#include "record/record.h"
#include "sim/fabric/network.h"
#include "sim/nic/design.h"
#include "sim/tcp/config.h"
#include "sim/traffic/pattern.h"
#include "sim/world/channel_spec.h"
#include "wan/logic/config.h"

namespace weft::sim {

struct NetworkSpec {
  SwitchConfig switches;
  bool buffer_auto = false;  // twice what the longest way holds, for each port (IRN §4.1)
  Routing routing = Routing::kEcmp;
  std::uint8_t data_class = 0;
  std::uint8_t control_class = 0;
  Duration reconverge = microseconds(100);
  impair::ImpairConfig impair{.reorder_by = microseconds(10)};
};

struct FailureSpec {
  std::string link;         // "edge0-agg1", or
  std::uint32_t links = 0;  // so many between switches, drawn from the seed
  Duration at{};
  Duration repair{};  // 0: never
};

struct LineSpec {
  std::string link;
  std::optional<Distance> distance;  // none: as long as the other links
  Rate rate{};                       // 0: as it is
  impair::ImpairConfig impair{.reorder_by = microseconds(10)};
};

struct AcceleratorSpec {
  std::string link;  // either this,
  std::string near;  // or these two
  std::string far;
  enum class Acknowledge : std::uint8_t { kEarly, kFar, kNone };
  Acknowledge acknowledge = Acknowledge::kEarly;
  Bytes store{256'000'000};
  std::uint32_t frames =
      0;  // in the store; 0: computed, as many of full size as the store holds, and twice the line
  Duration frame_time{};  // that a frame takes of one core; 0: none
  Rate rate{};            // at which a box moves bytes; 0: any
  Duration quiet = milliseconds(1);
  Duration give_up = seconds(30);
  std::string parity = "0";     // "16+2": two parity frames for sixteen of data
  bool repair_answers = false;  // of READs and atomics, on the line
};

struct TransportSpec {
  bool tcp = false;  // instead of core's transport
  wire::Mode mode = wire::Mode::kRoce;
  static constexpr std::uint8_t kComputed = 255;
  const LossScheme* recovery = nullptr;  // of this mode; nullptr: its own
  std::uint32_t nack_threshold = 1;      // IRN §7
  std::uint8_t controller = 0;           // row of controllers()
  std::uint32_t mtu = 1024;
  std::uint32_t bdp_cap = 0;  // 0: what the longest way holds
  std::uint32_t roce_window = 0;
  Duration rto_low{};   // 0: IRN's 100 us, and where that is less than a round trip, two of them
  Duration rto_high{};  // 0: base round trip and the fullest switch
  std::uint32_t rto_low_packets = 3;
  Rto rto = Rto::kStatic;
  std::uint32_t loss_blocks = 64;
  std::uint8_t timeout = kComputed;  // 8, which is 1 ms, or the first that is longer than two round trips
  Duration roce_timeout{};           // 0: as the code says
  Duration tail_probe{};             // roce: DeviceConfig's; none in the papers' networks
  bool timeouts = true;              // false: nothing is resent for mere silence
  std::uint8_t retry_count = 7;
  bool rto_backoff = true;  // irn, srnic: each time-out doubles the next
  bool give_up = true;      // after so many; false: after 255
  std::uint8_t rnr_retry = 7;
};

struct NicSpec {
  std::string design = "ideal";    // a built-in one, or a file
  std::string changes;             // of it: "scheduler.wqes=4, pcie.rate=64Gbps"
  std::string text;                // its TOML
  std::optional<Design> detailed;  // what these say; none: ideal
  Duration retransmit_delay{};
  std::uint32_t extra_header = 0;
  std::uint32_t ack_bytes = 0;
};

struct FlowSpec {
  std::uint32_t from = 0;
  std::uint32_t to = 1;
  WrOpcode op = WrOpcode::kWrite;
  Bytes size{65536};
  std::uint64_t count = 100;
  std::uint32_t depth = 16;
  std::uint32_t qps = 1;
  // A queue pair posts so many messages at once, with one doorbell and one completion, as soon as all of them
  // fit into `depth`.
  std::uint32_t batch = 1;
  bool rotate = false;  // `depth` counts for the whole flow, and its queue pairs take turns
  Duration start{};
  // Boxes complete messages before they are there; observers then want a place for each (resolve).
  bool place_for_each = false;

  // Each queue pair has a stretch of memory at both ends, with a slot for every message that may be under
  // way. A receiver has 2 x depth receives posted; twice as many slots keep a new one clear of a message
  // whose ACK is still on its way.
  std::uint64_t slots() const { return std::max(std::uint64_t{depth} * 4U, place_for_each ? count : 0); }
  // Where messages go in their turn.
  std::uint64_t places() const { return place_for_each ? slots() : depth; }
  std::uint64_t stretch() const { return slots() * size.n; }
};

// Drawn flows that begin within [from, until) count; the others are there to keep the network busy.
struct MeasureSpec {
  Duration from{};
  Duration until{};    // 0: no end
  Duration cut_off{};  // 0: none
  Time end(Duration limit) const {
    return Time{} + (cut_off.ps == 0 ? limit : std::min(limit, until + cut_off));
  }
  bool all() const { return from.ps == 0 && until.ps == 0; }
  bool counts(Time begin) const {
    return begin >= Time{} + from && (until.ps == 0 || begin < Time{} + until);
  }
};

struct LinkChange {
  Time at{};
  std::size_t link = 0;
  bool up = false;
};

// What follows from the rest (resolve).
struct Derived {
  Reach reach;
  Duration base_rtt{};              // a full packet and its ACK along the longest way, nobody else about
  std::uint64_t traffic_flows = 0;  // of all [[traffic]]
  std::uint64_t measured_flows = 0;
  std::vector<std::uint32_t> flows_of_host;  // those that begin or end there
  std::vector<std::uint64_t> bytes_of_host;  // and what they move
  std::vector<LinkChange> link_changes;      // in order of time
  std::vector<std::uint32_t>
      channels_of_host;                      // those that end there; queue pairs of [[messages]] over verbs
  std::vector<std::uint32_t> plain_of_host;  // apart
  std::vector<wan::BoxConfig> boxes;         // one for each box of the graph
  std::vector<std::size_t> accelerator_of;   // likewise: its table
};

// More than this is refused.
struct ScenarioLimits {
  std::uint32_t hosts = 65535;
  std::uint32_t switches = 65534;
  std::uint64_t flows = 100'000'000;  // of all [[traffic]]
};

struct Scenario {
  std::uint64_t seed = 1;
  Duration limit = seconds(10);
  bool check = false;
  bool bytes = false;
  MeasureSpec measure;
  TopologySpec topology;
  NetworkSpec network;
  TransportSpec transport;
  NicSpec nic;
  tcp::Config tcp{.rto_min = {}, .rto_initial = {}};
  std::vector<FlowSpec> flows;
  std::vector<TrafficSpec> traffic;
  ChannelsSpec channels;
  std::vector<MessageSpec> messages;
  std::vector<LineSpec> lines;
  std::vector<AcceleratorSpec> accelerators;
  std::vector<FailureSpec> failures;

  Topology graph;
  Derived derived;
};

// Builds the graph, computes what was left open (bdp_cap, rto_high, buffers that PFC needs), and refuses
// contradictions. parse_scenario() ends with it; code that builds a Scenario by hand must call it.
Result<void> resolve(Scenario& scenario, const ScenarioLimits& limits = {});

// `text` is the file's content, `name` its path: what errors call it, and where other files are looked for.
// `changes` are "network.loss=1%", applied on top; "flow.size=1MiB" changes every flow.
Result<Scenario> parse_scenario(const std::string& text, const std::string& name,
                                std::span<const std::string> changes, const ScenarioLimits& limits = {});

// Of the host's flows, traffic not counted.
std::uint64_t queue_pairs_of(const Scenario& scenario, std::uint32_t host);

// The network as the pattern of traffic table `index` needs to know it.
TrafficGround ground_of(const Scenario& scenario, std::size_t index);

// A setting that takes one of several words, for `weft sim --list`.
struct Choice {
  struct Word {
    const char* name;
    const char* text;
  };
  const char* setting;
  std::vector<Word> words;
};
std::vector<Choice> choices();

// Everything that was decided, defaults included.
record::Record to_record(const Scenario& scenario);
const char* op_name(WrOpcode op);
const char* message_pattern_name(MessagePattern pattern);

}  // namespace weft::sim
