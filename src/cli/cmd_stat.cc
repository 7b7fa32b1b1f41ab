// weft stat: what the channels and soft NICs of this host's processes are doing, after `ss`. It reads the
// pages that they keep in shared memory (page/page.h), so a process that hangs or is stopped is shown, too:
// as it was when it polled last, and since when that is.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/stopwatch.h"
#include "monitor/state.h"
#include "page/reader.h"

namespace weft::cli {
namespace {

using page::Found;
using page::ReadPage;
using page::ReadTable;

constexpr std::uint64_t kSilent = 1'000'000'000;  // ns without a poll: worth a word

struct Wanted {
  bool as_json = false;
  bool pretty = false;
  bool processes = false;
  bool summary = false;
  bool info = false;
  bool memory = false;
  bool bare = false;  // no headings
  bool slow = false;
  bool channels = false;
  bool qps = false;
  bool cqs = false;
  bool regions = false;
  std::uint64_t pid = 0;
  double every = 0;
  std::uint64_t times = 0;
};

// A row by the names of its columns.
class Row {
 public:
  Row(const ReadTable& table, const std::vector<std::uint64_t>& cells) : table_(table), cells_(cells) {}
  std::uint64_t number(std::string_view name) const {
    const int i = table_.column(name);
    return i < 0 ? 0 : cells_[static_cast<std::size_t>(i)];
  }
  std::string text(std::string_view name) const {
    const int i = table_.column(name);
    if (i < 0) return "-";
    return text_of(table_, cells_, static_cast<std::size_t>(i));
  }

 private:
  const ReadTable& table_;
  const std::vector<std::uint64_t>& cells_;
};

template <class See>
void each_row(const ReadPage& p, std::string_view table, See see) {
  const ReadTable* const t = p.table(table);
  if (t == nullptr) return;
  for (const auto& cells : t->rows) see(Row(*t, cells));
}

double silent_s(const ReadPage& p, std::uint64_t now) {
  return p.updated == 0 || now < p.updated ? 0.0 : static_cast<double>(now - p.updated) / 1e9;
}

// --- text ---

std::string users(const ReadPage& p) {
  return "users:((\"" + p.command + "\",pid=" + std::to_string(p.pid) + "))";
}
// The last column, where it is wanted.
std::string process_of(const ReadPage& p, const Wanted& w) {
  std::string text;
  if (w.processes) text.append(" ").append(users(p));
  return text;
}

void say_summary(const ReadPage& p, std::uint64_t now) {
  const double silent = silent_s(p, now);
  const std::string who = p.command + "[" + std::to_string(p.pid) + "]";
  const bool of_channels = p.kind == "channels";
  const ReadTable* const own = p.table(of_channels ? "context" : "nic");
  if (own == nullptr || own->rows.empty()) {  // it has only begun, or was stopped while it wrote them
    const std::string what = of_channels ? "its channels show" : "NIC " + p.title + " shows";
    std::printf("%s: %s no numbers just now%s\n", who.c_str(), what.c_str(),
                p.state == 'T' ? "; stopped" : "");
    return;
  }
  if (of_channels) {
    each_row(p, "context", [&](const Row& r) {
      std::printf("%s: channels %s of %s, fetches %s, violations %s, late polls %s, slow %s\n", who.c_str(),
                  r.text("channels").c_str(), r.text("of").c_str(), r.text("fetches").c_str(),
                  r.text("violations").c_str(), r.text("late_polls").c_str(), r.text("slow_lines").c_str());
    });
  } else {
    each_row(p, "nic", [&](const Row& r) {
      std::printf(
          "%s: NIC %s, queue pairs %s, regions %s (%s bytes), packets sent %s (again %s), received %s, "
          "time-outs %llu%s\n",
          who.c_str(), p.title.c_str(), r.text("qps").c_str(), r.text("regions").c_str(),
          r.text("region_bytes").c_str(), r.text("tx_packets").c_str(), r.text("tx_retransmitted").c_str(),
          r.text("rx_packets").c_str(),
          static_cast<unsigned long long>(r.number("timeout_low") + r.number("timeout_high")),
          p.state == 'T' ? "; stopped" : "");
    });
  }
  if (of_channels && silent * 1e9 > static_cast<double>(kSilent))
    std::printf("%s: it has not polled for %.1f s%s\n", who.c_str(), silent,
                p.state == 'T'   ? ": it is stopped"
                : p.state == 'R' ? ": it runs, and does something else"
                                 : "");
}

void say_memory(const ReadPage& p) {
  each_row(p, "context", [&](const Row& r) {
    std::printf(
        "%s[%llu]: memory to send %s of %s bytes in use, to receive %s of %s; queue pairs kept %s, made %s, "
        "reused %s\n",
        p.command.c_str(), static_cast<unsigned long long>(p.pid), r.text("send_memory_used").c_str(),
        r.text("send_memory").c_str(), r.text("recv_memory_used").c_str(), r.text("recv_memory").c_str(),
        r.text("qps_kept").c_str(), r.text("qps_made").c_str(), r.text("qps_reused").c_str());
  });
}

void say_channels(const Found& found, const Wanted& w) {
  bool headed = w.bare;
  for (const ReadPage& p : found.pages) {
    each_row(p, "channel", [&](const Row& r) {
      if (!headed)
        std::printf("%-8s %-4s %9s %6s %6s %6s %-21s %10s %10s %10s%s\n", "State", "Over", "In-Flight",
                    "Queued", "Held", "Calls", "Peer:Service", "Sent", "Received", "RTT us",
                    w.processes ? " Process" : "");
      headed = true;
      std::printf("%-8s %-4s %9s %6s %6s %6s %-21s %10s %10s %10s%s\n", r.text("state").c_str(),
                  r.text("carrier").c_str(), (r.text("in_flight") + "/" + r.text("depth")).c_str(),
                  r.text("queued").c_str(), r.text("held").c_str(), r.text("calls").c_str(),
                  (r.text("peer") + ":" + r.text("service")).c_str(), r.text("sent").c_str(),
                  r.text("received").c_str(), r.number("rtt_count") != 0 ? r.text("rtt").c_str() : "-",
                  process_of(p, w).c_str());
      if (!w.info) return;
      std::printf(
          "\t qpn:%s bytes_sent:%s bytes_received:%s fetching:%s waited:%s reconnects:%s moves:%s acks:%s "
          "nops:%s "
          "probes:%s",
          r.text("qpn").c_str(), r.text("sent_bytes").c_str(), r.text("received_bytes").c_str(),
          r.text("fetching").c_str(), r.text("waited").c_str(), r.text("reconnects").c_str(),
          r.text("moves").c_str(), r.text("acks").c_str(), r.text("nops").c_str(), r.text("probes").c_str());
      if (r.number("rtt_count") != 0)
        std::printf(" rtt:%s/%s/%s", r.text("rtt").c_str(), r.text("rtt_least").c_str(),
                    r.text("rtt_last").c_str());
      if (r.number("way_count") != 0)
        std::printf(" network:%s/%s/%s", r.text("way").c_str(), r.text("way_last").c_str(),
                    r.text("way_longest").c_str());
      std::printf("\n");
    });
  }
}

void say_qps(const Found& found, const Wanted& w) {
  bool headed = w.bare;
  for (const ReadPage& p : found.pages) {
    each_row(p, "qp", [&](const Row& r) {
      if (!headed)
        std::printf("%-5s %-5s %-8s %-6s %-15s %-15s %-8s %9s%s\n", "Type", "State", "lqpn", "Mode", "Local",
                    "Peer", "rqpn", "In-Flight", w.processes ? " Process" : "");
      headed = true;
      std::printf("%-5s %-5s %-8s %-6s %-15s %-15s %-8s %9s%s\n", r.text("type").c_str(),
                  r.text("state").c_str(), r.text("qpn").c_str(), r.text("mode").c_str(), p.title.c_str(),
                  r.text("peer").c_str(), r.text("rqpn").c_str(), r.text("path_in_flight").c_str(),
                  process_of(p, w).c_str());
      if (w.info)
        std::printf("\t mtu:%s sq-psn:%s rq-psn:%s\n", r.text("mtu").c_str(), r.text("sq_psn").c_str(),
                    r.text("rq_psn").c_str());
    });
  }
}

void say_cqs(const Found& found, const Wanted& w) {
  bool headed = w.bare;
  for (const ReadPage& p : found.pages) {
    each_row(p, "cq", [&](const Row& r) {
      if (!headed)
        std::printf("%-8s %8s %-6s %-7s %-15s%s\n", "cqn", "cqe", "Events", "Overran", "Local",
                    w.processes ? " Process" : "");
      headed = true;
      std::printf("%-8s %8s %-6s %-7s %-15s%s\n", r.text("cqn").c_str(), r.text("cqe").c_str(),
                  r.number("events") != 0 ? "yes" : "no", r.number("overran") != 0 ? "yes" : "no",
                  p.title.c_str(), process_of(p, w).c_str());
    });
  }
}

void say_regions(const Found& found, const Wanted& w) {
  bool headed = w.bare;
  for (const ReadPage& p : found.pages) {
    each_row(p, "mr", [&](const Row& r) {
      if (!headed)
        std::printf("%-8s %12s %-6s %-15s%s\n", "mrn", "mrlen", "Access", "Local",
                    w.processes ? " Process" : "");
      headed = true;
      std::printf("%-8s %12s %-6s %-15s%s\n", r.text("mrn").c_str(), r.text("mrlen").c_str(),
                  r.text("access").c_str(), p.title.c_str(), process_of(p, w).c_str());
    });
  }
}

void say_slow(const Found& found, std::uint64_t now) {
  for (const ReadPage& p : found.pages) {
    each_row(p, "slow", [&](const Row& r) {
      const std::uint64_t at = r.number("at");
      std::printf("%s[%llu]: %.1f s ago %s took %s us", p.command.c_str(),
                  static_cast<unsigned long long>(p.pid),
                  now > at ? static_cast<double>(now - at) / 1e9 : 0.0, r.text("place").c_str(),
                  r.text("took").c_str());
      if (r.number("peer") != 0) std::printf(", %s:%s", r.text("peer").c_str(), r.text("service").c_str());
      if (r.number("trace") != 0 && r.text("place") == "request")
        std::printf(", queue %s, network %s, peer %s", r.text("queued").c_str(), r.text("network").c_str(),
                    r.text("there").c_str());
      if (r.number("omitted") != 0)
        std::printf("; %s more, the longest %s us", r.text("omitted").c_str(), r.text("longest").c_str());
      std::printf("\n");
    });
  }
}

void say(const Found& found, const Wanted& w, std::uint64_t now) {
  if (w.as_json) {
    std::cout << monitor::state_json(found, now, w.pretty || w.processes) << "\n";
    return;
  }
  if (found.pages.empty() && !w.bare)
    std::printf(w.pid != 0 ? "that process shows no channels and no soft NIC\n"
                           : "no process of this host has channels or a soft NIC\n");
  if (!w.bare) {
    for (const ReadPage& p : found.pages) say_summary(p, now);
  }
  if (w.memory) {
    for (const ReadPage& p : found.pages) say_memory(p);
  }
  const bool usual = !w.channels && !w.qps && !w.cqs && !w.regions && !w.summary && !w.slow;
  if (usual || w.channels) say_channels(found, w);
  if (usual || w.qps) say_qps(found, w);
  if (w.cqs) say_cqs(found, w);
  if (w.regions) say_regions(found, w);
  if (w.slow) say_slow(found, now);
  if (found.forbidden != 0 && !w.bare)
    std::printf("%u pages are not shown: other users', or too many for one look\n", found.forbidden);
}

}  // namespace

void add_stat(CLI::App& app, int&) {
  CLI::App* stat =
      app.add_subcommand("stat", "Show channels, queue pairs and soft NICs of this host's processes");
  auto w = std::make_shared<Wanted>();
  CLI::Option* const as_json = stat->add_flag("-j,--json", w->as_json, "one JSON object, of everything");
  stat->add_flag("--pretty", w->pretty, "with -j: indented")->needs(as_json);
  stat->add_flag("-p,--processes", w->processes,
                 "name the process of each line; with -j: indented, as the rdma tool has it");
  stat->add_flag("-i,--info", w->info, "more about each channel and queue pair");
  stat->add_flag("-m,--memory", w->memory, "memory caches and caches of queue pairs");
  stat->add_flag("-s,--summary", w->summary, "one line for each process")->excludes(as_json);
  stat->add_flag("-H,--no-header", w->bare, "lists without headings and summaries");
  stat->add_flag("-c,--channels", w->channels, "channels only")->excludes(as_json);
  stat->add_flag("-q,--qps", w->qps, "queue pairs only")->excludes(as_json);
  stat->add_flag("--cqs", w->cqs, "completion queues only")->excludes(as_json);
  stat->add_flag("-r,--regions", w->regions, "registered memory only: who may read and write it")
      ->excludes(as_json);
  stat->add_flag("--slow", w->slow, "what took too long (slow_threshold, polling_warn_cycle)")
      ->excludes(as_json);
  stat->add_option("--pid", w->pid, "of this process only")->type_name("PID");
  CLI::Option* const watch = stat->add_option("-w,--watch", w->every, "again every so many seconds")
                                 ->type_name("SECONDS")
                                 ->check(CLI::Range(0.05, 86400.0));
  stat->add_option("-n,--count", w->times, "with -w: so often, then end; 0: until interrupted")
      ->needs(watch)
      ->type_name("TIMES");
  stat->footer(
      "State, in flight of the window, waiting to be sent, received and not released, requests without an "
      "answer.\n"
      "Access: l the NIC may write, w peers may, r peers may read, a use atomics; b windows may be bound.\n"
      "A process shows itself unless its environment says WEFT_STAT=0; other users' are root's to see.\n\n"
      "Examples:\n"
      "  weft stat -p\n"
      "  weft stat -j --pid 4711\n"
      "  weft stat -r -p\n"
      "  weft stat -c -w 1");
  stat->callback([w] {
    for (std::uint64_t i = 0;; ++i) {
      Found found = page::read_pages();
      if (w->pid != 0) std::erase_if(found.pages, [&](const ReadPage& p) { return p.pid != w->pid; });
      say(found, *w, steady_ns());
      std::cout.flush();  // its buffer remembers why it could not
      if (w->every == 0 || i + 1 == w->times || std::ferror(stdout) != 0) return;
      if (!w->as_json) std::printf("\n");
      sleep_seconds(w->every);
    }
  });
}

}  // namespace weft::cli
