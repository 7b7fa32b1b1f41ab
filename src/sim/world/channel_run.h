// The programs of [[messages]] on simulated hosts: each host that takes part has one context of the
// middleware above its NIC, so what is simulated is the code that programs link. Events run in order of time,
// over all hosts: connections are made by an Exchange, which reaches both ends at once.
//
//   a pair     one connection of a table: the host that asks, the host that is asked, and the messages
//   between a host     its context, what its program holds, and what it has still to do at some time
//
// Bytes of frames travel, because heads and announcements are in them; what a READ brings is counted only.
// When every pair has had its messages, channels are closed, so that the run comes to its end.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "channel/context.h"
#include "core/base/prng.h"
#include "sim/nic/nic.h"
#include "sim/world/message_result.h"
#include "sim/world/scenario.h"
#include "sim/world/settler.h"

namespace weft::sim {

// Over all contexts.
struct ChannelTotals {
  std::uint64_t contexts = 0;
  std::uint64_t channels = 0;  // the most of one context at a time
  channel::ChannelCounts counts;
  std::uint64_t waited = 0;  // messages that found the window full
  std::uint64_t violations = 0;
  std::uint64_t starved = 0;
  std::uint64_t fresh_qps = 0;
  std::uint64_t reused_qps = 0;
  std::uint64_t most_own = 0;    // bytes registered for what is received, of the context that had most
  std::uint64_t most_lent = 0;   // for what is sent
  std::uint64_t all_memory = 0;  // both, the most of each context, over all contexts
};

class ChannelRun {
 public:
  ChannelRun(const Scenario& scenario, std::vector<std::unique_ptr<Nic>>& nics, Fabric& fabric,
             Settler& settler);
  ~ChannelRun();
  ChannelRun(const ChannelRun&) = delete;
  ChannelRun& operator=(const ChannelRun&) = delete;

  void poll(HostId host, Time now);  // its NIC made progress
  void told(HostId host, Time now);  // one of its connections did
  bool done() const { return unfinished_ == 0; }
  bool closed() const;  // no channel is left
  std::uint64_t messages_done() const;
  std::uint64_t messages_asked() const { return asked_; }
  const std::vector<MessageResult>& results() const { return results_; }
  ChannelTotals totals() const;

 private:
  struct Pair {
    std::uint32_t table = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    channel::Channel* channel = nullptr;  // of the end that asks
    bool open = false;
    bool finished = false;
    bool upgrades = false;
    bool leaving = false;  // for its upgrade, once nothing is under way
    bool hungry = false;   // stands in its host's line of those that were refused
    std::uint32_t begun = 0;
    std::uint32_t ended = 0;
    Time asked_at{};
    Time closed_at = kNever;
    std::deque<Time> begun_at;  // of messages under way
    Time next{};                // with `every`: when the next message is due
    Time next_wake = kNever;    // and for when that was put down
  };
  struct Held {
    channel::Message* message;
    std::uint32_t pair;
  };
  enum class Act : std::uint8_t { kBegin, kSend, kUpgrade };
  struct Host {
    Host(ChannelRun& r, Fabric& fabric, std::uint32_t i);
    void on_wake(Time now);
    ChannelRun& run;
    std::uint32_t index;
    ActorId actor;
    std::unique_ptr<channel::Context> context;
    Time asked = kNever;  // the earliest pending wake-up
    std::multimap<Time, std::pair<Act, std::uint32_t>> to_do;
    std::multimap<Time, Held> held;  // by when they are given back
    Time busy_until{};
    std::deque<std::uint32_t> hungry;
    std::uint32_t most_channels = 0;
    bool closed = false;
    channel::ChannelCounts past;  // of channels that are gone
  };
  const MessageSpec& spec(const Pair& p) const { return scenario_.messages[p.table]; }
  void act(Host& h, Time now);
  void notice(Host& h, const channel::Notice& n, Time now);
  void dial(Host& h, std::uint32_t pair, Time now);
  void send(Host& h, std::uint32_t pair, Time now);
  bool send_one(Host& h, std::uint32_t pair, Time now);
  void arrived(std::uint32_t pair, std::uint64_t bytes, Time now);
  void ended(Host& h, std::uint32_t pair, bool well, Time now);
  void leave(Host& h, Pair& p);
  void closed(Host& h, const channel::Notice& n, Time now);
  void finish(Pair& p, Time now);
  void let_go(Host& h, Time now);
  bool answer(Host& h, const Held& held);
  void hold(Host& h, std::uint32_t pair, channel::Message* message, Time now);
  void do_now(Host& h, Time now);
  void arm(Host& h, Time now);
  void wake(Host& h, Time at);
  void all_done(Time now);

  const Scenario& scenario_;
  std::vector<std::unique_ptr<Nic>>& nics_;
  Timeline& timeline_;
  Settler& settler_;
  std::vector<Pair> pairs_;
  std::deque<Host> hosts_;
  std::vector<Host*> host_of_;                                 // by host; nullptr: it takes no part
  std::unordered_map<std::uint64_t, std::uint32_t> sessions_;  // looked up, never walked
  std::vector<MessageResult> results_;
  std::vector<std::uint32_t> to_upgrade_;  // of each table, channels that are not back yet
  std::uint64_t asked_ = 0;
  std::uint64_t unfinished_ = 0;  // pairs
  bool closing_ = false;
};

}  // namespace weft::sim
