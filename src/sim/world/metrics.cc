#include "sim/world/metrics.h"

#include <algorithm>
#include <cmath>
#include <ostream>

namespace weft::sim {
namespace {

template <class T>
T at_quantile(const std::vector<T>& sorted, std::size_t parts, std::size_t of) {
  return sorted.empty() ? T{} : sorted[(sorted.size() - 1) * parts / of];
}

double us(std::int64_t ps) { return static_cast<double>(ps) / 1e6; }

template <class T>
double mean(const std::vector<T>& all) {
  __extension__ using Wide = __int128;
  Wide sum = 0;
  for (const T v : all) sum += v;
  return all.empty() ? 0
                     : static_cast<double>(static_cast<std::int64_t>(sum / static_cast<Wide>(all.size())));
}

// Of picoseconds, in microseconds; what took no time counts as one picosecond.
double geometric_mean_us(const std::vector<std::int64_t>& all) {
  double sum = 0;
  for (const std::int64_t v : all) sum += std::log(us(std::max<std::int64_t>(v, 1)));
  return all.empty() ? 0 : std::exp(sum / static_cast<double>(all.size()));
}

// "12.345678" microseconds, exact.
void write_us(std::ostream& out, std::int64_t ps) {
  const std::string rest = std::to_string(ps % 1'000'000 + 1'000'000);
  out << ps / 1'000'000 << '.' << rest.substr(1);
}

const char* verb_word(WrOpcode op) {
  return op == WrOpcode::kRead ? "read" : op == WrOpcode::kSend ? "send" : "write";
}

std::uint64_t milli(Duration took, Duration ideal) {
  return took.ps <= 0 || ideal.ps <= 0
             ? 0
             : static_cast<std::uint64_t>(took.ps / std::max<std::int64_t>(ideal.ps / 1000, 1));
}
std::uint64_t slowdown_milli(const FlowDone& f) { return milli(f.took, f.ideal); }

}  // namespace

void FlowStatistics::add(const FlowDone& f, std::uint32_t mtu) {
  if (f.failed) {
    ++failed_;
    return;
  }
  took_ps_.push_back(f.took.ps);
  if (f.flow.bytes <= mtu) small_ps_.push_back(f.took.ps);
  slowdown_milli_.push_back(
      static_cast<std::uint32_t>(std::min<std::uint64_t>(slowdown_milli(f), UINT32_MAX)));
  slowdown_data_milli_ += milli(f.took - f.ideal_other_way, f.ideal - f.ideal_other_way);
  if (f.cut_off) {
    ++cut_off_;
    return;
  }
  bytes_ += f.flow.bytes;
  if (group_ends_ps_.size() <= f.flow.group) {
    group_ends_ps_.resize(f.flow.group + 1U, 0);
    group_starts_ps_.resize(f.flow.group + 1U, INT64_MAX);
  }
  group_ends_ps_[f.flow.group] = std::max(group_ends_ps_[f.flow.group], (f.flow.at + f.took).ps);
  group_starts_ps_[f.flow.group] = std::min(group_starts_ps_[f.flow.group], f.flow.at.ps);
}

FlowStatistics::Summary FlowStatistics::summary() const {
  Summary s;
  s.flows = took_ps_.size();
  s.cut_off = cut_off_;
  s.failed = failed_;
  s.bytes = bytes_;
  std::vector<std::int64_t> took = took_ps_;
  std::vector<std::int64_t> small = small_ps_;
  std::vector<std::uint32_t> slow = slowdown_milli_;
  std::sort(took.begin(), took.end());
  std::sort(small.begin(), small.end());
  std::sort(slow.begin(), slow.end());
  s.fct_mean_us = mean(took) / 1e6;
  s.fct_geometric_mean_us = geometric_mean_us(took);
  s.fct_p50_us = us(at_quantile(took, 50, 100));
  s.fct_p99_us = us(at_quantile(took, 99, 100));
  s.fct_max_us = us(at_quantile(took, 1, 1));
  s.slowdown_mean = mean(slow) / 1e3;
  s.slowdown_p99 = static_cast<double>(at_quantile(slow, 99, 100)) / 1e3;
  if (s.flows != 0) {
    s.slowdown_data_mean = static_cast<double>(slowdown_data_milli_) / 1e3 / static_cast<double>(s.flows);
  }
  s.small = small.size();
  for (std::uint32_t q = 900; q < 990 && !small.empty(); q += 10)
    s.small_tail.push_back({q, us(at_quantile(small, q, 1000))});
  for (std::uint32_t q = 990; q < 1000 && !small.empty(); ++q)
    s.small_tail.push_back({q, us(at_quantile(small, q, 1000))});
  s.small_p99_us = us(at_quantile(small, 99, 100));
  s.small_p999_us = us(at_quantile(small, 999, 1000));
  std::vector<std::int64_t> requests;
  std::int64_t begin = INT64_MAX;
  std::int64_t end = 0;
  for (std::size_t g = 0; g < group_ends_ps_.size(); ++g) {
    if (group_ends_ps_[g] == 0) continue;
    requests.push_back(group_ends_ps_[g] - group_starts_ps_[g]);
    begin = std::min(begin, group_starts_ps_[g]);
    end = std::max(end, group_ends_ps_[g]);
  }
  s.request_mean_us = mean(requests) / 1e6;
  if (end > begin) s.goodput_gbps = static_cast<double>(bytes_) * 8e3 / static_cast<double>(end - begin);
  return s;
}

record::Record to_record(const FlowStatistics::Summary& s) {
  record::Record r;
  r.set("flows", s.flows).set("failed", s.failed).set("cut_off", s.cut_off).set("bytes", s.bytes);
  r.set("fct_us_mean", s.fct_mean_us).set("fct_us_p50", s.fct_p50_us).set("fct_us_p99", s.fct_p99_us);
  r.set("fct_us_max", s.fct_max_us).set("fct_us_geometric_mean", s.fct_geometric_mean_us);
  r.set("slowdown_mean", s.slowdown_mean).set("slowdown_p99", s.slowdown_p99);
  r.set("slowdown_data_mean", s.slowdown_data_mean);
  r.set("single_packet_flows", s.small);
  for (const FlowStatistics::TailPoint& p : s.small_tail) {
    record::Record one;
    one.set("quantile", static_cast<double>(p.per_mille) / 1000).set("fct_us", p.us);
    r.append("single_packet_tail", std::move(one));
  }
  r.set("single_packet_fct_us_p99", s.small_p99_us).set("single_packet_fct_us_p999", s.small_p999_us);
  r.set("request_us_mean", s.request_mean_us).set("goodput_gbps", s.goodput_gbps);
  return r;
}

void write_flow_header(std::ostream& out) {
  out << "traffic,group,from,to,verb,bytes,start_us,fct_us,ideal_us,slowdown,goodput_gbps,failed\n";
}

void write_flow(std::ostream& out, const FlowDone& f) {
  const Arrival& a = f.flow;
  out << f.table << ',' << a.group << ',' << a.from << ',' << a.to << ',' << verb_word(a.op) << ',' << a.bytes
      << ',';
  write_us(out, a.at.ps);
  out << ',';
  write_us(out, f.took.ps);
  out << ',';
  write_us(out, f.ideal.ps);
  const std::uint64_t slow = slowdown_milli(f);
  out << ',' << slow / 1000 << '.' << std::to_string(slow % 1000 + 1000).substr(1);
  // Gb/s with three digits: bits per nanosecond.
  __extension__ using Wide = unsigned __int128;
  const auto mbps = static_cast<std::uint64_t>(
      f.took.ps <= 0 ? 0 : Wide{a.bytes} * 8'000'000U / static_cast<std::uint64_t>(f.took.ps));
  out << ',' << mbps / 1000 << '.' << std::to_string(mbps % 1000 + 1000).substr(1) << ','
      << (f.failed ? 1 : 0) << '\n';
}

}  // namespace weft::sim
