// The program that runs on simulated hosts: each flow's queue pairs keep `depth` messages outstanding until
// `count` are done. Receivers of SENDs post their receives again as they complete.
//
// Its memory is one region per host, made up unless the scenario asks for real bytes. Each queue pair has a
// stretch of it at both ends, with room for every message that can be under way, so that no two of them
// overlap.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "check/referee.h"
#include "sim/nic/nic.h"
#include "sim/world/scenario.h"
#include "sim/world/settler.h"

namespace weft::sim {

// The result of a flow.
struct FlowResult {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failed = 0;  // completions with an error
  WcStatus first_failure = WcStatus::kSuccess;
  Time first_post = kNever;
  Time last_completion{};
  Time half_at{};  // when half of the messages were done
  std::uint64_t half_bytes = 0;
  std::vector<Duration> latencies;  // of each message, in order of completion
  // From a post to the completion of its receive, of messages behind which nothing else was posted meanwhile:
  // half of what a ping-pong takes.
  std::vector<Duration> one_way;
  // Of the messages that each queue pair carried in a second of its own time: their sum, and that of squares.
  double rate_sum = 0;
  double rate_squares = 0;
  std::uint64_t rates = 0;
  // Jain's index: 1 if all queue pairs are as fast as one another, 1/n if one has everything.
  double fairness() const {
    return rate_squares == 0 ? 1 : rate_sum * rate_sum / (rate_squares * static_cast<double>(rates));
  }

  Duration elapsed() const { return messages == 0 ? Duration{} : last_completion - first_post; }
  // Bits per second of payload from the first post to the last completion.
  double goodput_bps() const {
    const Duration t = elapsed();
    return t.ps == 0 ? 0.0 : static_cast<double>(bytes) * 8e12 / static_cast<double>(t.ps);
  }
  // The same of the second half of the messages, when whatever has to be learnt has been.
  double late_goodput_bps() const {
    const Duration t = last_completion - half_at;
    return t.ps == 0 ? 0.0 : static_cast<double>(bytes - half_bytes) * 8e12 / static_cast<double>(t.ps);
  }
};

// What all flows did while all of them were at work: from when a fifth of all messages was done until the
// first flow was.
struct Together {
  std::uint64_t messages = 0;
  Duration elapsed{};
  double per_second() const {
    return elapsed.ps == 0 ? 0 : static_cast<double>(messages) * 1e12 / static_cast<double>(elapsed.ps);
  }
};

class Workload {
 public:
  // `referee` may be null.
  Workload(const Scenario& scenario, std::vector<std::unique_ptr<Nic>>& nics, Timeline& timeline,
           Exchange& exchange, check::Referee* referee, Settler& settler);
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  void poll(HostId host, Time now);  // its NIC made progress
  void settle();                     // all hosts have come equally far
  bool done() const { return unfinished_ == 0; }
  const std::vector<FlowResult>& results() const { return results_; }
  Together together() const { return together_; }

 private:
  struct Sender {
    std::uint32_t flow = 0;
    std::uint32_t host = 0;
    Qpn qpn{};
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    bool failed = false;
    std::vector<Time> posted_at;  // ring of `depth`
    Key remote{};
    std::uint64_t here = 0;  // its stretch at either end
    std::uint64_t there = 0;
  };
  struct Receiver {
    std::uint32_t flow = 0;
    Qpn qpn{};
    std::uint64_t posted = 0;
    std::uint64_t here = 0;
    std::uint32_t from = 0;  // its sender
    std::uint32_t sender = 0;
    std::uint64_t completed = 0;
  };
  // Of a flow whose queue pairs take turns.
  struct Round {
    std::vector<std::uint32_t> senders;
    std::size_t next = 0;
    std::uint64_t under_way = 0;
  };
  struct Host {
    CqId cq{};
    PortMemory memory;
    std::uint64_t taken = 0;  // bytes of it given to queue pairs
    std::vector<Sender> senders;
    std::vector<Receiver> receivers;
    std::vector<std::uint32_t> sender_of;    // by queue pair index
    std::vector<std::uint32_t> receiver_of;  // likewise
  };

  void open_host(std::uint32_t index);
  void open_flow(std::uint32_t flow);
  void connect(const FlowSpec& f, std::uint32_t flow);
  // All that may be posted now.
  void post(Sender& s, Time now);
  void post_round(std::uint32_t flow, Time now);
  void post_batch(Sender& s, Time now);
  std::uint64_t next_batch(const Sender& s) const;
  void succeeded(Sender& s, Time now);
  void post_receive(std::uint32_t host, Receiver& r, Time now);
  void completed(std::uint32_t host, const Completion& c, Time now);
  void on_start(Time now);
  std::uint32_t index_of(std::uint32_t host, Qpn qpn) const;

  const Scenario& scenario_;
  std::vector<std::unique_ptr<Nic>>& nics_;
  Timeline& timeline_;
  Exchange& exchange_;
  check::Referee* referee_;
  Settler& settler_;
  std::array<Completion, 16> got_;  // scratch of poll()
  ActorId start_actor_;
  std::vector<Host> hosts_;
  std::vector<FlowResult> results_;
  std::vector<Round> rounds_;           // of every flow
  std::uint64_t wanted_ = 0;            // messages of all flows
  std::uint64_t done_ = 0;              // and how many of them are done
  std::vector<std::uint64_t> done_of_;  // likewise, of every flow
  struct Done {
    Time at;
    std::uint32_t flow = 0;
  };
  std::vector<Done> recent_;  // messages of this window, which settle() counts
  Time together_from_ = kNever;
  Together together_;
  std::vector<bool> started_;
  void finished_one() {
    if (--unfinished_ == 0) settler_.ended();
  }
  std::uint64_t unfinished_ = 0;  // senders
};

}  // namespace weft::sim
