// The pair world: hosts on a virtual network, in virtual time, under observation. Usually two hosts with
// one connection, hence the name, but any number works. It is the harness of unit tests, exhaustive tests,
// the swarm, fuzzing and `weft pair`.
//
//   Programs                                 posts work, polls completions
//        |                                       every post and completion also goes to the referee
//   Host: Device + memory        <---- network ----   Host …
//        serialiser (rate) -> impairment (loss, delay, …) -> arrival
//
// Time jumps to the earliest wake-up: an arrival, a Device's deadline, a serialiser that falls idle, a
// context fetch that ends, the user. At one instant the order is: arrivals, timers, user, transmitters,
// hosts in turn; so a run is a function of its configuration and nothing else.
//
// The network decides with one Impairment for all links, so that a script counts packets as they are
// emitted, in both directions, retransmissions included: that is what the exhaustive tests enumerate.
// With `serialise` every packet is encoded, has its ICRC computed, and is decoded again on arrival;
// corruption then flips a real bit and the ICRC must notice. Without, a corrupt packet is just lost.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <set>
#include <span>
#include <vector>

#include "check/referee.h"
#include "core/base/prng.h"
#include "core/impair/impair.h"
#include "core/transport/device.h"
#include "core/wire/mad.h"
#include "pair/host.h"
#include "pair/line.h"
#include "pair/recorder.h"

namespace weft::pair {

struct WorldConfig {
  std::uint64_t seed = 1;
  std::vector<DeviceConfig> hosts = std::vector<DeviceConfig>(2);
  impair::ImpairConfig network;
  std::vector<impair::ScriptStep> script;
  Rate rate{};               // of each host's transmitter; 0 unlimited
  Rate drain{};              // how fast a host takes packets in; 0 at once
  Budget budget;             // of one turn
  std::uint32_t batch = 32;  // packets per on_packets, at most
  Duration fetch{};          // how long a NIC model takes between pick and transmit
  bool serialise = false;
  Bytes most_under_way{4U << 20U};  // for the bound of check/progress.h
  LineConfig line;                  // between hosts of even and of odd number, if there is one
};

// How one end of a connection is set up.
struct EndConfig {
  PdId pd{};
  CqId send_cq{};
  CqId recv_cq{};
  SrqId srq = kNoSrq;  // instead of receives of its own
  QpCaps caps;
  bool signal_all = false;
  wire::Mode mode = wire::Mode::kRoce;
  WirePsn psn{};
  std::uint8_t access = kRemoteWrite | kRemoteRead;
  std::uint8_t max_rd_atomic = 4;
  std::uint8_t max_dest_rd_atomic = 4;
  std::uint8_t timeout = 8;
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t min_rnr_timer = 1;
  std::uint8_t controller = 0;  // row of controllers()
  std::uint8_t service_level = 0;
};

class World;

// The programs that run on the hosts.
class Programs {
 public:
  virtual ~Programs() = default;
  virtual Time next_wake() const = 0;            // when act() has something to do by itself
  virtual void act(World& world, Time now) = 0;  // called after every event
  virtual bool waiting() const = 0;              // something it asked for has not happened yet
  virtual void completed(World&, HostId, const Completion&) {}
};

// The longest time-out of irn and srnic, before it doubles, on a queue pair with this verbs time-out.
Duration longest_rto(const DeviceConfig& d, std::uint8_t timeout);

class World {
 public:
  explicit World(const WorldConfig& config, Recorder* recorder = nullptr);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // --- setting up ---
  Host& host(std::uint32_t index) { return *hosts_[index]; }
  std::uint32_t host_count() const { return static_cast<std::uint32_t>(hosts_.size()); }
  struct Connection {
    Qpn a, b;
  };
  // Two queue pairs, connected and ready to send.
  Connection connect(std::uint32_t a, const EndConfig& at_a, std::uint32_t b, const EndConfig& at_b,
                     std::uint32_t mtu);

  // The same for two queue pairs that exist already.
  void join(std::uint32_t a, Qpn qpn_a, const EndConfig& at_a, std::uint32_t b, Qpn qpn_b,
            const EndConfig& at_b, std::uint32_t mtu);

  // --- what users do ---
  // `inline_bytes`: with kSendInline, what the gather list would have held.
  Outcome<void> post_send(std::uint32_t host, Qpn qpn, const SendWr& wr,
                          std::span<const std::uint8_t> inline_bytes = {});
  Outcome<void> post_recv(std::uint32_t host, Qpn qpn, const RecvWr& wr);
  SrqId create_srq(std::uint32_t host, PdId pd, const SrqCaps& caps);
  Outcome<void> post_shared(std::uint32_t host, SrqId srq, const RecvWr& wr);
  void arm_limit(std::uint32_t host, SrqId srq, std::uint32_t limit);
  bool limit_reached(std::uint32_t host, SrqId srq);  // since it was asked last
  // For a program that takes the device's events itself, in order; observers have seen them by then.
  void keep_events(std::uint32_t host) { kept_events_.try_emplace(host); }
  bool next_event(std::uint32_t host, DeviceEvent& out) {
    poll_events(host);
    std::deque<DeviceEvent>& kept = kept_events_.at(host);
    if (kept.empty()) return false;
    out = kept.front();
    kept.pop_front();
    return true;
  }
  std::uint32_t poll(std::uint32_t host, CqId cq, std::span<Completion> out);
  void destroy(std::uint32_t host, Qpn qpn);
  void force_error(std::uint32_t host, Qpn qpn);
  // Into SQD, asking to be told when it is drained; whether that was told; back to RTS.
  bool drain(std::uint32_t host, Qpn qpn);
  bool drained(std::uint32_t host, Qpn qpn);
  void resume(std::uint32_t host, Qpn qpn);
  // A packet that no Device sent: it arrives now, claiming to come from `source`.
  void forge(std::uint32_t to, const wire::Address& source, const wire::Header& h,
             std::vector<std::uint8_t> payload);

  // A management datagram, from one host to the general services of another; the next one that came to a
  // host.
  void say(std::uint32_t from, std::uint32_t to, const wire::Mad& mad);
  bool hear(std::uint32_t host, wire::Mad& mad);

  // --- running ---
  // Runs up to and including the earliest wake-up; false when there is none.
  bool step(Programs& programs);
  // Runs until nothing is awaited and nothing is under way, or until the referee stops it; then the final
  // checks.
  void run(Programs& programs);

  Time now() const { return now_; }
  check::Referee& referee() { return referee_; }
  Recorder* recorder() { return recorder_; }
  std::uint64_t packets() const { return network_.packets(); }
  std::uint64_t corrupt_dropped() const { return corrupt_dropped_; }
  const Line* line() const { return line_.get(); }  // null: there is none
  bool crosses_line(std::uint32_t a, std::uint32_t b) const {
    return line_ != nullptr && Line::site(a) != Line::site(b);
  }
  // The most payload bytes that ever waited to be received at this host.
  Bytes deepest_queue(std::uint32_t host) const { return doors_[host].deepest; }

 private:
  struct Flight {
    Time at;
    std::uint64_t order;
    std::uint32_t to;  // a host, or behind them all a box
    bool forged;
    bool corrupt;
    bool marked = false;   // by the network, for congestion
    bool at_door = false;  // arrived, waits to be received
    wire::Address source;
    wire::Address destination;
    wire::Header header;
    std::vector<std::uint8_t> payload;
    std::vector<std::uint8_t> datagram;  // with `serialise`
  };
  struct Later {
    bool operator()(const std::unique_ptr<Flight>& a, const std::unique_ptr<Flight>& b) const {
      return a->at != b->at ? a->at > b->at : a->order > b->order;
    }
  };
  struct Transmitter {
    impair::RateLimit line;
    Time free_at{};  // the serialiser is busy until then
    Qpn fetching = kNoQpn;
    Time fetched_at = kNever;
  };
  struct Door {  // where packets wait to be received
    impair::RateLimit line;
    Bytes waiting{};
    Bytes deepest{};
  };

  Time next_wake(const Programs& programs) const;
  void act(Programs& programs);
  void arrivals();
  void deliver(std::uint32_t to, std::vector<std::unique_ptr<Flight>>& batch);
  bool sound(Flight& flight);
  void look_for_failures(std::uint32_t host);
  void pump(std::uint32_t from);
  void emit(std::uint32_t from, const wire::Burst& burst);
  void launch(std::uint32_t to, Passage frame, Time depart);
  std::uint32_t host_at(const wire::Address& address) const;
  void poll_events(std::uint32_t host);
  Duration farewell_bound() const;
  void finish();
  bool anybody_failed();

  WorldConfig config_;
  Recorder* recorder_;
  check::Referee referee_;
  impair::Impairment network_;
  std::unique_ptr<Line> line_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::pair<std::uint32_t, Qpn>> ends_;  // every queue pair that was connected
  std::set<std::pair<std::uint32_t, Qpn>> drained_;
  std::set<std::pair<std::uint32_t, SrqId>> limits_reached_;
  std::map<std::uint32_t, std::deque<DeviceEvent>> kept_events_;  // by host
  std::set<std::pair<std::uint32_t, Qpn>> shares_;  // queue pairs that draw from a shared receive queue
  std::vector<Transmitter> transmitters_;
  std::vector<Door> doors_;
  std::vector<std::deque<wire::Mad>> heard_;  // by host
  std::priority_queue<std::unique_ptr<Flight>, std::vector<std::unique_ptr<Flight>>, Later> flights_;
  std::uint64_t order_ = 0;
  std::uint64_t corrupt_dropped_ = 0;
  Time now_{};
};

}  // namespace weft::pair
