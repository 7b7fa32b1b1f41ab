#include "channel_tools/ping.h"

#include <arpa/inet.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace weft::tools {
namespace {

// A row's agent, as the coordinator sees it.
struct Row {
  std::size_t from = 0;
  std::vector<std::string> others;
  std::vector<Cell> cells;
  std::uint32_t refused = 0;
  std::uint64_t begin_at = 0;
  bool open = false;
  bool over = false;
};

// The longest that a row can take: connecting, and every ping late.
std::uint64_t longest_us(const PingPlan& p) {
  return 6'000'000 + std::uint64_t{p.count} * (std::uint64_t{p.interval_us} + p.timeout_us);
}

}  // namespace

Matrix ping_row(const Session& session, const std::vector<std::string>& hosts, const PingPlan& plan) {
  std::vector<std::string> names{"here"};
  names.insert(names.end(), hosts.begin(), hosts.end());
  Matrix m(std::move(names));
  Prober prober(session, hosts, plan);
  while (!prober.done()) {
    prober.turn();
    session.wait(1, [&](const weft_notice& n) { (void)prober.notice(n); });
  }
  const std::vector<Cell> cells = prober.cells();
  for (std::size_t i = 0; i < cells.size(); ++i) m.at(0, i + 1) = cells[i];
  return m;
}

Matrix ping_mesh(const Session& session, const std::vector<std::string>& hosts, const PingPlan& plan) {
  Matrix m(hosts);
  std::map<const weft_channel*, Row> rows;
  std::vector<Row> waiting;  // to be asked
  std::size_t open = hosts.size();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    Row r;
    r.from = i;
    for (std::size_t k = 0; k < hosts.size(); ++k) {
      if (k != i) r.others.push_back(hosts[k]);
    }
    waiting.push_back(std::move(r));
  }
  const auto begin_what_is_due = [&] {
    const std::uint64_t now = now_ns();
    for (auto it = waiting.begin(); it != waiting.end();) {
      if (it->begin_at > now) {
        ++it;
        continue;
      }
      weft_channel* channel = nullptr;
      if (weft_connect(session.get(), hosts[it->from].c_str(), plan.service, 0, &channel) == 0)
        rows.emplace(channel, std::move(*it));
      else
        --open;
      it = waiting.erase(it);
    }
  };
  const auto end = [&](Row& r) {
    open -= r.over ? 0U : 1U;
    r.over = true;
  };
  const auto see = [&](const weft_notice& n) {
    const auto it = rows.find(n.channel);
    if (it != rows.end()) {
      Row& r = it->second;
      if (n.kind == WEFT_OPENED) {
        r.open = true;
        weft_message* const job = session.message(write_job(plan, r.others));
        if (job == nullptr || weft_call(n.channel, job, 0, longest_us(plan), nullptr) != 0) {
          if (job != nullptr) weft_release(session.get(), job);
          end(r);
        }
      }
      if (n.kind == WEFT_RESPONSE) {
        const std::string_view said{static_cast<const char*>(weft_data(n.message)), weft_length(n.message)};
        if (n.status != 0 || !read_result(said, r.others.size(), r.cells)) r.cells.clear();
        end(r);
      }
      const std::uint64_t pause =
          n.kind == WEFT_CLOSED && !r.open && was_refused(n) ? again_after_ns(++r.refused) : 0;
      if (pause != 0) {
        r.begin_at = now_ns() + pause;
        waiting.push_back(std::move(r));
        rows.erase(it);
      } else if (n.kind == WEFT_OUTCOME || n.kind == WEFT_CLOSED) {
        end(r);
      }
    }
    if (n.message != nullptr) weft_release(session.get(), n.message);
  };
  while (open != 0) {
    begin_what_is_due();
    session.wait(waiting.empty() ? 100 : 5, see);
  }
  for (const auto& [channel, r] : rows) {
    for (std::size_t i = 0; i < r.cells.size(); ++i) m.at(r.from, i < r.from ? i : i + 1) = r.cells[i];
  }
  return m;
}

Result<void> check_hosts(const std::vector<std::string>& hosts) {
  if (hosts.empty()) return fail("name a host");
  if (hosts.size() > kMostHosts)
    return fail(std::to_string(hosts.size()) + " hosts: there may be " + std::to_string(kMostHosts) +
                " at most");
  std::set<std::string> seen;
  for (const std::string& h : hosts) {
    in_addr in{};
    if (inet_pton(AF_INET, h.c_str(), &in) != 1) return fail("host '" + h + "': it must be an IPv4 address");
    if (!seen.insert(h).second) return fail("host '" + h + "' is named twice");
  }
  return {};
}

Result<std::vector<std::string>> read_hosts(const std::string& name, const std::string& text) {
  std::vector<std::string> hosts;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    for (std::string h; words >> h;) hosts.push_back(h);
  }
  if (const auto sound = check_hosts(hosts); !sound) return fail("'" + name + "': " + sound.error().message);
  if (hosts.size() < 2) return fail("'" + name + "': a mesh has two hosts at least");
  return hosts;
}

}  // namespace weft::tools
