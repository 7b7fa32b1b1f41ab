#include "channel_tools/prober.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

namespace weft::tools {
std::uint64_t again_after_ns(std::uint32_t refusals) {
  constexpr std::uint32_t kMost = 10;
  constexpr std::uint64_t kStep = 10'000'000;  // 10, 20, … ms: half a second together
  return refusals < kMost ? refusals * kStep : 0;
}

bool was_refused(const weft_notice& n) { return std::strstr(n.why, "refused") != nullptr; }

Prober::Prober(const Session& session, const std::vector<std::string>& hosts, const PingPlan& plan)
    : session_(session), plan_(plan), targets_(hosts.size()) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    targets_[i].host = hosts[i];
    begin(targets_[i]);
  }
}

Prober::~Prober() {
  for (const auto& [channel, t] : by_channel_) weft_close(const_cast<weft_channel*>(channel));
}

void Prober::begin(Target& t) {
  t.cell.state = Cell::State::kSilent;
  t.begin_at = 0;
  if (weft_connect(session_.get(), t.host.c_str(), plan_.service, 0, &t.channel) != 0) {
    t.over = true;
    return;
  }
  by_channel_[t.channel] = &t;
}

bool Prober::notice(const weft_notice& n) {
  const auto it = by_channel_.find(n.channel);
  if (it == by_channel_.end()) return false;
  Target& t = *it->second;
  switch (n.kind) {
    case WEFT_OPENED:
      t.open = true;
      t.cell.state = Cell::State::kReached;
      t.next_at = now_ns();
      break;
    case WEFT_RESPONSE:
      t.times.record(now_ns() - t.asked_at);
      ++t.cell.received;
      t.asking = false;
      t.over = t.cell.sent == plan_.count;
      break;
    case WEFT_OUTCOME:
      t.asking = false;
      t.over = t.cell.sent == plan_.count;
      break;
    case WEFT_CLOSED:
      if (!t.open && was_refused(n)) t.cell.state = Cell::State::kRefused;
      // What was not asked any more counts as lost.
      if (t.open && !t.over) t.cell.sent = plan_.count;
      t.over = true;
      by_channel_.erase(it);
      if (const std::uint64_t pause = again_after_ns(++t.refused);
          t.cell.state == Cell::State::kRefused && !t.open && pause != 0) {
        t.over = false;
        t.begin_at = now_ns() + pause;
      }
      break;
    default:
      break;
  }
  if (n.message != nullptr) weft_release(session_.get(), n.message);
  return true;
}

void Prober::turn() {
  const std::uint64_t now = now_ns();
  for (Target& t : targets_) {
    if (t.begin_at != 0 && t.begin_at <= now) begin(t);
    if (!t.open || t.over || t.asking || t.next_at > now) continue;
    weft_message* const m = session_.message("p");
    if (m == nullptr) return;
    t.asked_at = now_ns();
    if (weft_call(t.channel, m, 0, plan_.timeout_us, nullptr) != 0) {
      weft_release(session_.get(), m);
      continue;
    }
    t.asking = true;
    ++t.cell.sent;
    t.next_at = now + std::uint64_t{plan_.interval_us} * 1000;
  }
}

bool Prober::done() const {
  return std::all_of(targets_.begin(), targets_.end(), [](const Target& t) { return t.over; });
}

std::vector<Cell> Prober::cells() const {
  std::vector<Cell> out;
  for (const Target& t : targets_) {
    Cell c = t.cell;
    c.least_ns = t.times.least();
    c.mean_ns = static_cast<std::uint64_t>(t.times.mean());
    c.p99_ns = t.times.percentile(990'000);
    out.push_back(c);
  }
  return out;
}

// --- words ---

std::string write_job(const PingPlan& p, const std::vector<std::string>& hosts) {
  std::ostringstream out;
  out << "mesh1 " << p.count << ' ' << p.interval_us << ' ' << p.timeout_us << ' ' << p.service;
  for (const std::string& h : hosts) out << ' ' << h;
  return out.str();
}

bool read_job(std::string_view text, PingPlan& p, std::vector<std::string>& hosts) {
  std::istringstream in{std::string(text)};
  std::string word;
  if (!(in >> word) || word != "mesh1") return false;
  if (!(in >> p.count >> p.interval_us >> p.timeout_us >> p.service)) return false;
  while (in >> word) {
    if (word.size() > 15 || hosts.size() == kMostHosts) return false;
    hosts.push_back(word);
  }
  return p.count >= 1 && p.count <= kMostPings && p.interval_us <= 10'000'000 && p.timeout_us >= 1 &&
         p.timeout_us <= 10'000'000;
}

std::string write_result(const std::vector<Cell>& cells) {
  std::ostringstream out;
  for (const Cell& c : cells)
    out << static_cast<int>(c.state) << ' ' << c.sent << ' ' << c.received << ' ' << c.least_ns << ' '
        << c.mean_ns << ' ' << c.p99_ns << '\n';
  return out.str();
}

bool read_result(std::string_view text, std::size_t hosts, std::vector<Cell>& cells) {
  std::istringstream in{std::string(text)};
  for (std::size_t i = 0; i < hosts; ++i) {
    Cell c;
    int state = 0;
    if (!(in >> state >> c.sent >> c.received >> c.least_ns >> c.mean_ns >> c.p99_ns)) return false;
    if (state < static_cast<int>(Cell::State::kReached) || state > static_cast<int>(Cell::State::kRefused) ||
        c.received > c.sent)
      return false;
    c.state = static_cast<Cell::State>(state);
    cells.push_back(c);
  }
  return true;
}

}  // namespace weft::tools
