// The drawn flows of a scenario, one after the other over all its [[traffic]] tables, and what became of
// them: what the programs on hosts have in common, whatever transport they run on.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <vector>

#include "sim/fabric/network.h"
#include "sim/world/metrics.h"
#include "sim/world/scenario.h"

namespace weft::sim {

class FlowBook {
 public:
  // `rows` of finished flows may be null.
  FlowBook(const Scenario& scenario, const Network& network, std::ostream* rows);
  FlowBook(const FlowBook&) = delete;
  FlowBook& operator=(const FlowBook&) = delete;

  // When the next flow begins; kNever after the last.
  Time due() const;
  // The next flow that begins by `now`; false when there is none. They come in order of time.
  bool take(Time now, Arrival& flow, std::uint32_t& table);
  void finished(const Arrival& flow, std::uint32_t table, bool failed, Time now);
  // With measure.cut_off: a flow that is under way at the end counts with its age.
  void cut_off(Time now);

  // Every flow that counts has ended.
  bool done() const { return measured_ == scenario_.derived.measured_flows; }
  std::uint64_t begun() const { return begun_; }
  std::uint64_t finished() const { return finished_; }
  std::uint64_t expected() const { return expected_; }
  const std::vector<FlowStatistics>& statistics() const { return statistics_; }

 private:
  struct Stream {
    std::unique_ptr<Arrivals> arrivals;
    Arrival next;
    bool more = false;
  };

  FlowDone measured(const Arrival& flow, std::uint32_t table, Time now) const;

  const Scenario& scenario_;
  const Network& network_;
  std::ostream* rows_;
  std::vector<Stream> streams_;
  std::vector<FlowStatistics> statistics_;
  std::uint64_t expected_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t measured_ = 0;  // finished flows that count
  struct Running {
    Arrival flow;
    std::uint32_t table = 0;
  };
  std::map<std::uint64_t, Running> running_;  // by number; only flows that count, only with measure.cut_off
};

}  // namespace weft::sim
