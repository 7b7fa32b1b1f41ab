// What became of flows: each as a row of a file, as they complete, and all together as means and percentiles.
//
// A flow's completion time runs from posting its message to its completion at the host that posted it. Its
// slowdown is that time divided by the time of the same flow alone in the network (ideal.h). Papers that
// call a flow complete when its receiver has it leave out the ACK's or the READ request's own way: for them
// there is a second slowdown, with that way's ideal time taken off both.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "record/record.h"
#include "sim/traffic/pattern.h"

namespace weft::sim {

struct FlowDone {
  Arrival flow;
  std::uint32_t table = 0;  // which [[traffic]]
  Duration took{};
  Duration ideal{};
  Duration ideal_other_way{};  // the part of `ideal` that the ACK or the READ request takes
  bool failed = false;
  bool cut_off = false;  // still under way: `took` is its age
};

// The flows of one [[traffic]] table, summed up.
class FlowStatistics {
 public:
  void add(const FlowDone& f, std::uint32_t mtu);
  std::uint64_t done() const { return took_ps_.size() - cut_off_; }
  std::uint64_t failed() const { return failed_; }
  std::uint64_t cut_off() const { return cut_off_; }

  struct TailPoint {
    std::uint32_t per_mille = 0;
    double us = 0;
  };
  struct Summary {
    std::uint64_t flows = 0;    // that count
    std::uint64_t cut_off = 0;  // of these
    std::uint64_t failed = 0;
    std::uint64_t bytes = 0;
    double fct_mean_us = 0;
    // e to the mean of the logarithms. The quotient of two runs with the same flows is the geometric mean of
    // how each flow compares: a few long flows do not outweigh thousands of short ones.
    double fct_geometric_mean_us = 0;
    double fct_p50_us = 0;
    double fct_p99_us = 0;
    double fct_max_us = 0;
    double slowdown_mean = 0;
    double slowdown_p99 = 0;
    double slowdown_data_mean = 0;  // without the ACK's or the READ request's way
    double small_p99_us = 0;        // of flows that fit one packet
    double small_p999_us = 0;
    std::uint64_t small = 0;
    std::vector<TailPoint> small_tail;  // IRN Figure 8
    double request_mean_us = 0;         // of groups of flows: from the first post to the last completion
    double goodput_gbps = 0;            // of all bytes, from the first post to the last completion
  };
  Summary summary() const;

 private:
  std::vector<std::int64_t> took_ps_;
  std::vector<std::int64_t> small_ps_;
  std::vector<std::uint32_t> slowdown_milli_;
  std::uint64_t slowdown_data_milli_ = 0;      // sum
  std::vector<std::int64_t> group_ends_ps_;    // by group: last completion
  std::vector<std::int64_t> group_starts_ps_;  // first post
  std::uint64_t bytes_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t cut_off_ = 0;
};

record::Record to_record(const FlowStatistics::Summary& s);

void write_flow_header(std::ostream& out);
void write_flow(std::ostream& out, const FlowDone& f);

}  // namespace weft::sim
