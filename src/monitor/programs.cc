#include "monitor/programs.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/transport/counters.h"

namespace weft::monitor {
namespace {

using page::ReadPage;
using page::ReadTable;

constexpr const char* kOther = "other";

// A column that only grows, and what the monitor calls it.
struct Counted {
  const char* table;
  const char* column;
  const char* name;
  const char* help;
};
constexpr Counted kCounted[] = {
    {"channel", "sent", "weft_messages_sent_total", "messages sent over channels"},
    {"channel", "sent_bytes", "weft_messages_sent_bytes_total", "their bytes"},
    {"channel", "received", "weft_messages_received_total", "messages received over channels"},
    {"channel", "received_bytes", "weft_messages_received_bytes_total", "their bytes"},
    {"channel", "waited", "weft_messages_waited_total", "messages that waited for the window"},
    {"channel", "reconnects", "weft_reconnects_total", "times that a session got another connection"},
    {"context", "violations", "weft_violations_total", "channels ended because the peer broke the protocol"},
    {"context", "late_responses", "weft_late_responses_total",
     "responses that came after their request's end"},
    {"context", "starved_fetches", "weft_starved_fetches_total", "fetches that waited for memory"},
    {"context", "late_polls", "weft_late_polls_total", "times between polls beyond polling_warn_cycle"},
    {"context", "slow_lines", "weft_slow_total", "lines written of what took longer than slow_threshold"},
    {"context", "dropped", "weft_filter_dropped_total", "messages dropped on purpose"},
    {"context", "failed", "weft_filter_failed_total", "connections that failed on purpose"},
    {"context", "qps_made", "weft_queue_pairs_made_total", "queue pairs made for channels"},
    {"nic", "wire_full", "weft_nic_wire_full_total", "times that the network had no room for a train"},
    {"nic", "send_failed", "weft_nic_send_failed_total", "trains that the network refused"},
    {"nic", "rx_icrc", "weft_nic_rx_icrc_total", "frames with a wrong ICRC"},
};

// How the rows of a page become one number of the program.
enum class Join : std::uint8_t { kSum, kMost };
struct Gauge {
  const char* table;
  const char* column;
  const char* name;
  const char* help;
  Join join = Join::kSum;
  double unit = 1;
};
constexpr Gauge kGauges[] = {
    {"context", "channels", "weft_channels", "channels that are open"},
    {"context", "of", "weft_channels_limit", "channels that may be open"},
    {"context", "send_memory", "weft_send_memory_bytes", "memory registered to send from"},
    {"context", "send_memory_used", "weft_send_memory_used_bytes", "of it, in use"},
    {"context", "recv_memory", "weft_receive_memory_bytes", "memory registered to receive into"},
    {"context", "recv_memory_used", "weft_receive_memory_used_bytes", "of it, in use"},
    {"context", "fetches", "weft_fetches", "fragments of large messages in flight"},
    {"context", "adm_refused", "weft_parameters_refused", "lines of weft adm that the program cannot take"},
    {"channel", "in_flight", "weft_messages_in_flight", "messages sent that no peer has released"},
    {"channel", "queued", "weft_messages_queued", "messages that wait to be sent"},
    {"channel", "held", "weft_messages_held", "messages received that the program has not released"},
    {"channel", "calls", "weft_calls", "requests without an answer"},
    {"channel", "rtt", "weft_round_trip_most_seconds", "the longest smoothed round trip of a channel",
     Join::kMost, 1e-9},
    {"nic", "qps", "weft_queue_pairs", "queue pairs of soft NICs"},
    {"nic", "region_bytes", "weft_nic_region_bytes", "memory registered with soft NICs"},
};

std::uint64_t cell(const ReadTable& t, const std::vector<std::uint64_t>& row, std::string_view column) {
  const int i = t.column(column);
  return i < 0 ? 0 : row[static_cast<std::size_t>(i)];
}

std::string command_of(const ReadPage& p) { return p.command.empty() ? "?" : p.command; }

// What tells a row of a table from its other rows, for as long as it is the same thing; nothing: nobody
// knows. A channel's queue pair is no name of it: another connection has another one, and over TCP there is
// none.
std::optional<std::uint64_t> name_in(const ReadTable& t, const std::vector<std::uint64_t>& row) {
  if (t.name != "channel") return 0;
  if (t.column("opening") < 0) return std::nullopt;
  return cell(t, row, "opening");
}

}  // namespace

// When there is no room, the name that has been gone longest goes.
std::string Programs::name_of(const ReadPage& p, const std::set<std::string>& here) {
  const std::string name = command_of(p);
  if (programs_.contains(name)) return name;
  if (programs_.size() - programs_.count(kOther) < kMostPrograms) return name;
  auto oldest = programs_.end();
  for (auto at = programs_.begin(); at != programs_.end(); ++at) {
    if (at->first == kOther || here.contains(at->first) || at->second.seen + kLooksWithout > looks_) continue;
    if (oldest == programs_.end() || at->second.seen < oldest->second.seen) oldest = at;
  }
  if (oldest == programs_.end()) return kOther;
  programs_.erase(oldest);
  return name;
}

void Programs::count(Seen& seen, Program& program, const ReadTable& table) {
  if (table.name != "channel" && table.name != "context" && table.name != "nic") return;
  for (const auto& row : table.rows) {
    const auto name = name_in(table, row);
    if (!name) continue;
    Row& before = seen.rows[{table.name, *name}];
    before.seen = looks_;
    before.cells.resize(row.size());
    const auto gain = [&](const char* column, const std::string& counter) {
      const int i = table.column(column);
      if (i < 0) return;
      const auto k = static_cast<std::size_t>(i);
      // Less than before: it is another one, which began anew.
      program.counters[counter] += row[k] >= before.cells[k] ? row[k] - before.cells[k] : row[k];
    };
    for (const Counted& c : kCounted) {
      if (table.name == c.table) gain(c.column, c.name);
    }
    if (table.name == "nic") {
      for (const CounterInfo& c : kCounterInfo) gain(c.name, "weft_nic_" + std::string(c.name) + "_total");
    }
    before.cells = row;
  }
  std::erase_if(seen.rows, [&](const auto& r) {
    return r.first.first == table.name && r.second.seen + kLooksWithout <= looks_;
  });
}

void Programs::look(const page::Found& found, std::uint64_t now) {
  ++looks_;
  std::set<std::string> here;
  for (const ReadPage& p : found.pages) here.insert(command_of(p));
  for (auto& [name, program] : programs_) program.gauges.clear();
  unreadable_ = found.forbidden;
  for (const ReadPage& p : found.pages) {
    Program& program = programs_[name_of(p, here)];
    program.seen = looks_;
    Seen& seen = pages_[p.path + " " + std::to_string(p.pid) + " " + std::to_string(p.file)];
    seen.seen = looks_;
    for (const ReadTable& t : p.tables) {
      count(seen, program, t);
      for (const Gauge& g : kGauges) {
        if (t.name != g.table || t.column(g.column) < 0) continue;
        double& value = program.gauges[g.name];
        for (const auto& row : t.rows) {
          const double one = static_cast<double>(cell(t, row, g.column)) * g.unit;
          value = g.join == Join::kSum ? value + one : std::max(value, one);
        }
      }
      if (t.name != "channel") continue;
      double& full = program.gauges["weft_channels_full"];
      double& stuck = program.gauges["weft_channels_held_full"];
      for (const auto& row : t.rows) {
        const std::uint64_t depth = cell(t, row, "depth");
        full += depth != 0 && cell(t, row, "in_flight") >= depth ? 1 : 0;
        stuck += depth != 0 && cell(t, row, "held") >= depth ? 1 : 0;
      }
    }
    if (p.kind != "channels") continue;
    program.gauges["weft_contexts"] += 1;
    double& silent = program.gauges["weft_silent_seconds"];
    if (p.updated != 0 && now > p.updated)
      silent = std::max(silent, static_cast<double>(now - p.updated) / 1e9);
  }
  std::erase_if(pages_, [this](const auto& p) { return p.second.seen + kLooksWithout <= looks_; });
}

void Programs::tell(Metrics& metrics) const {
  const auto gauge = [&](const char* name, const char* help) {
    for (const auto& [program, p] : programs_) {
      if (const auto at = p.gauges.find(name); at != p.gauges.end())
        metrics.add(name, help, Kind::kGauge, {{"program", program}}, at->second);
    }
  };
  const auto counter = [&](const std::string& name, const char* help) {
    for (const auto& [program, p] : programs_) {
      if (const auto at = p.counters.find(name); at != p.counters.end())
        metrics.add(name, help, Kind::kCounter, {{"program", program}}, static_cast<double>(at->second));
    }
  };
  gauge("weft_contexts", "contexts of running processes");
  gauge("weft_silent_seconds", "since the context that has been silent longest last polled");
  gauge("weft_channels_full", "channels whose window is full: their peers do not keep up");
  gauge("weft_channels_held_full", "channels whose whole window the program itself holds");
  for (const Gauge& g : kGauges) gauge(g.name, g.help);
  for (const Counted& c : kCounted) counter(c.name, c.help);
  for (const CounterInfo& c : kCounterInfo) counter("weft_nic_" + std::string(c.name) + "_total", c.text);
  metrics.add("weft_pages_unreadable",
              "statistics pages that are not in the figures: other users', or beyond a bound", Kind::kGauge,
              {}, unreadable_);
}

}  // namespace weft::monitor
