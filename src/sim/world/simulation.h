// One run of a scenario: hosts with their NICs around a network, and the programs on them, in virtual time.
//
// A run is a function of its scenario: the same seed gives the same record, byte for byte, on any machine.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/byte_stream.h"
#include "check/referee.h"
#include "record/record.h"
#include "sim/box/box_node.h"
#include "sim/fabric/network.h"
#include "sim/nic/detailed_nic.h"
#include "sim/nic/ideal_nic.h"
#include "sim/world/channel_run.h"
#include "sim/world/context_watch.h"
#include "sim/world/failures.h"
#include "sim/world/plain_run.h"
#include "sim/world/scenario.h"
#include "sim/world/settler.h"
#include "sim/world/tcp_run.h"
#include "sim/world/traffic_run.h"
#include "sim/world/workload.h"
#include "trace/pcapng.h"

namespace weft::sim {

struct Totals {  // over all hosts and links
  std::uint64_t events = 0;
  Counters transport;  // of all Devices
  std::uint64_t packets_sent = 0;
  std::uint64_t data = 0;  // of packets_sent, those that carry data or ask for it
  std::uint64_t retransmitted = 0;
  std::uint64_t after_timeout = 0;   // of those, in a recovery that a time-out began
  std::uint64_t received_twice = 0;  // data that its receiver had already: resent for nothing
  std::uint64_t control = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t recoveries = 0;
  std::uint64_t lost = 0;
  std::uint64_t queue_drops = 0;
  std::uint64_t data_drops = 0;  // of those, data
  std::uint64_t no_route = 0;
  std::uint64_t failed_links = 0;   // packets lost on them
  std::uint64_t nic_overflows = 0;  // packets that found a NIC's receive buffer full
  std::uint64_t corrupted = 0;
  std::uint64_t longest_queue = 0;
  std::uint64_t link_hops = 0;  // packets that crossed a link
  std::uint64_t pauses = 0;     // X-OFF frames
  std::uint64_t marked = 0;     // ECN
  Duration paused{};            // over all ports
  Duration credit_wait{};       // likewise, where there are credits
};

class Simulation final : public NicObserver, public Settler {
 public:
  // `trace` may be null; every packet is written to it as it is sent.
  // `flows` may be null; finished flows of [[traffic]] are written to it, a row each, as they finish.
  explicit Simulation(const Scenario& scenario, trace::PcapngWriter* trace = nullptr,
                      std::ostream* flows = nullptr);
  ~Simulation() override;

  // Runs at most `events` of them; false when the run is over.
  bool run(std::uint64_t events);

  bool complete() const {  // every flow and every message has come to its end, or failed
    return workload_->done() && book_->done() && (channels_ == nullptr || channels_->done()) &&
           (plain_ == nullptr || plain_->done());
  }
  Time now() const { return fabric_.timeline.now(); }
  std::uint64_t messages_done() const;
  std::uint64_t messages_asked() const;
  const std::vector<FlowResult>& results() const { return workload_->results(); }
  Together together() const { return workload_->together(); }
  const std::vector<DetailedNic*>& detailed() const { return detailed_; }
  const std::vector<FlowStatistics>& traffic() const { return book_->statistics(); }
  // Of table `i` of [[messages]].
  const MessageResult& messages(std::size_t i) const {
    return scenario_.messages[i].plain ? plain_->results()[i] : channels_->results()[i];
  }
  const ChannelRun* channels() const { return channels_.get(); }
  const check::Report* findings() const;  // null without `check`
  Totals totals() const;
  // Totals between `from` and `until` of [measure], when the network neither fills up nor runs empty. It
  // holds counters only, no maxima.
  Totals measured() const;
  record::Record to_record() const;
  // A row for each port: what it carried, dropped, marked, how long it was stopped, how long its queue was.
  void write_ports(std::ostream& out) const;
  // Packets that nobody released: zero at the end of a run that was not cut off.
  std::size_t packets_in_use() const { return fabric_.packets.in_use(); }
  const Network& network() const { return *network_; }
  const Scenario& scenario() const { return scenario_; }
  const std::vector<std::unique_ptr<BoxNode>>& boxes() const { return boxes_; }
  Nic& nic(std::uint32_t host) { return *nics_[host]; }  // not with TCP

 private:
  record::Record nic_record(std::size_t host) const;
  record::Record channel_record() const;
  void sent(HostId from, HostId to, const wire::TxPacket& p, Time now) override;
  void arrived(HostId at, const wire::RxPacket& p, Time now) override;
  void placed(HostId at, const Placement& p, const wire::Header& h, std::span<const std::uint8_t> bytes,
              Time now) override;
  void executed(HostId at, const AtomicRequest& a, std::uint64_t old_value, Time now) override;
  void progressed(HostId host, Time now) override;
  void told(HostId host, Time now) override;
  record::Record box_record(std::size_t index) const;
  void add_nic(std::uint32_t host, const PacketMarking& marking);
  void run_watched(Time end, std::uint64_t events);
  void finish();
  void audit_now(bool at_rest);
  void on_measure(Time now);
  void ended() override;
  void on_settle(Time now);

  Scenario scenario_;
  trace::PcapngWriter* trace_;
  std::unique_ptr<check::Referee> referee_;
  std::unique_ptr<check::ByteStreams> streams_;  // with TCP; reports to the referee's report
  Fabric fabric_;
  std::unique_ptr<Network> network_;
  Exchange exchange_;
  std::vector<std::unique_ptr<Nic>> nics_;  // none with TCP
  std::vector<std::unique_ptr<BoxNode>> boxes_;
  std::vector<DetailedNic*> detailed_;                  // of them, those with an inside
  std::vector<std::unique_ptr<ContextWatch>> watches_;  // of their contexts, in a run that is checked
  std::unique_ptr<Failures> failures_;
  std::unique_ptr<FlowBook> book_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<TrafficRun> traffic_;   // either this
  std::unique_ptr<TcpRun> tcp_;           // or that
  std::unique_ptr<ChannelRun> channels_;  // of [[messages]], over channels
  std::unique_ptr<PlainRun> plain_;       // and over verbs
  ActorId measure_actor_;
  ActorId settle_actor_;
  bool settles_ = false;  // at the end of this window
  std::optional<Totals> at_from_;
  std::optional<Totals> at_until_;
  bool over_ = false;
};

}  // namespace weft::sim
