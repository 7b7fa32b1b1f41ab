// The programs that drawn traffic runs on simulated hosts. Each flow is one message on a queue pair of its
// own: one that an earlier flow of the same two hosts has finished with, or a new one. Flows begin when their
// pattern says so, whatever became of earlier ones.
//
// Two hosts are connected in the window before the flow begins, and their queue pairs given back in the
// window after it has ended: what concerns both is done between windows (settler.h).
//
// Memory is as in workload.h; every flow has a stretch of it that no other flow ever has.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "check/referee.h"
#include "sim/nic/nic.h"
#include "sim/world/flow_book.h"
#include "sim/world/scenario.h"
#include "sim/world/settler.h"

namespace weft::sim {

class TrafficRun {
 public:
  // `referee` may be null.
  TrafficRun(const Scenario& scenario, FlowBook& book, std::vector<std::unique_ptr<Nic>>& nics,
             Fabric& fabric, Exchange& exchange, check::Referee* referee, Settler& settler);
  TrafficRun(const TrafficRun&) = delete;
  TrafficRun& operator=(const TrafficRun&) = delete;

  void poll(HostId host, Time now);  // its NIC made progress
  void settle(Time now);             // all hosts have come to `now`

 private:
  struct Connection {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    Qpn qpn[2]{};
    Arrival flow;
    std::uint32_t table = 0;
    std::uint64_t serial = 0;
    std::uint64_t here = 0;      // its stretch of memory at the end that posts
    std::uint64_t there = 0;     // and at the other
    Time ended{};                // valid once not busy
    bool receive_waits = false;  // a SEND's receive has not completed yet
    bool busy = false;
    bool failed = false;
    bool counted = false;  // in the book
    std::uint32_t poster() const { return flow.op == WrOpcode::kRead ? to : from; }
    std::uint32_t other() const { return flow.op == WrOpcode::kRead ? from : to; }
  };
  struct Host {
    Host(TrafficRun& r, Fabric& fabric, HostId id)
        : run(r), start_actor(fabric.timeline.add<&Host::on_start>(*this, fabric.node_of(id))) {}
    void on_start(Time now);
    TrafficRun& run;
    ActorId start_actor;
    std::deque<std::uint32_t> starts;  // connections whose flow begins in this window, by time
    CqId cq{};
    PortMemory memory;
    std::uint64_t taken = 0;
    std::vector<std::uint32_t> connection_of;  // by queue pair index
  };
  void open_host(std::uint32_t index);
  void on_arrival(Time now);
  void prepare(const Arrival& flow, std::uint32_t table, Time now);
  std::uint32_t connection_for(const Arrival& flow);
  void post(Connection& c, Time now);
  void completed(std::uint32_t host, const Completion& c, Time now);
  void await_next();
  void give_back(Connection& c, Time now);

  const Scenario& scenario_;
  FlowBook& book_;
  std::vector<std::unique_ptr<Nic>>& nics_;
  Timeline& timeline_;
  Exchange& exchange_;
  check::Referee* referee_;
  Settler& settler_;
  std::array<Completion, 16> got_;  // scratch of poll()
  ActorId arrival_actor_;
  std::deque<Host> hosts_;
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> free_;     // places in it
  std::vector<std::uint32_t> changed_;  // connections with completions in this window
  std::uint64_t serial_ = 0;            // of the next flow
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>
      idle_;  // by (from, to); looked up, never walked
};

}  // namespace weft::sim
