// [[messages]] over verbs: what a program does that sends over plain queue pairs. It knows when the transport
// has delivered a message, and nothing of the far program, whose receives may run out: the transport then
// answers receiver-not-ready, and the sender waits and sends again. X-RDMA's Figure 9 compares with this.
//
// A receiver has `channels.depth` receives posted and posts one again when its program has done with the
// message, `hold` later. A sender has `under_way` messages posted.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sim/nic/nic.h"
#include "sim/world/message_result.h"
#include "sim/world/scenario.h"
#include "sim/world/settler.h"

namespace weft::sim {

class PlainRun {
 public:
  PlainRun(const Scenario& scenario, std::vector<std::unique_ptr<Nic>>& nics, Fabric& fabric,
           Exchange& exchange, Settler& settler);
  PlainRun(const PlainRun&) = delete;
  PlainRun& operator=(const PlainRun&) = delete;

  void poll(HostId host, Time now);
  bool done() const { return unfinished_ == 0; }
  std::uint64_t messages_done() const;
  std::uint64_t messages_asked() const { return asked_; }
  const std::vector<MessageResult>& results() const { return results_; }

 private:
  struct Pair {
    std::uint32_t table = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    Qpn qpn[2]{};
    std::uint32_t posted = 0;
    std::uint32_t ended = 0;
    bool failed = false;
    std::deque<Time> posted_at;  // of messages that the far program has not got
  };
  struct Host {
    Host(PlainRun& r, Fabric& fabric, std::uint32_t i)
        : run(r), index(i), actor(fabric.timeline.add<&Host::on_wake>(*this, fabric.node_of(HostId{i}))) {}
    void on_wake(Time now) { run.act(*this, now); }
    PlainRun& run;
    std::uint32_t index;
    ActorId actor;
    CqId cq{};
    PortMemory memory;
    std::deque<std::pair<Time, std::uint32_t>> held;  // receives to be posted again
    Time busy_until{};
    std::vector<std::uint32_t> starting;
  };
  const MessageSpec& spec(const Pair& p) const { return scenario_.messages[p.table]; }
  void act(Host& h, Time now);
  void post(Pair& p, std::uint32_t index, Time now);
  void post_receive(std::uint32_t pair);
  void completed(Host& h, const Completion& c, Time now);

  const Scenario& scenario_;
  std::vector<std::unique_ptr<Nic>>& nics_;
  Timeline& timeline_;
  Settler& settler_;
  std::vector<Pair> pairs_;
  std::deque<Host> hosts_;
  std::vector<Host*> host_of_;
  std::vector<MessageResult> results_;
  std::uint64_t asked_ = 0;
  std::uint64_t unfinished_ = 0;
};

}  // namespace weft::sim
