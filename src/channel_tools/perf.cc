#include "channel_tools/perf.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/prng.h"
#include "sim/traffic/variates.h"

namespace weft::tools {
namespace {

constexpr std::size_t kMostWaiting = 1U << 16U;  // of an open loop, before requests are given up
constexpr std::uint64_t kTimeout = 5'000'000;    // us
constexpr std::uint64_t kDrain = 3'000'000'000;  // ns
constexpr std::uint64_t kConnecting = 10'000'000'000;

struct Request {
  std::uint64_t began = 0;  // when it should have left
  std::uint64_t bytes = 0;
  std::uint32_t flow = 0;
};

class Run {
 public:
  Run(const Session& session, const PerfPlan& plan) : session_(session), plan_(plan), random_(plan.seed) {}

  Result<PerfResult> go() {
    const std::uint32_t elephants = plan_.channels * plan_.elephants / 100;
    result_.flows.push_back({elephants != 0 ? "mice" : "all", 0, {}});
    if (elephants != 0) result_.flows.push_back({"elephants", 0, {}});
    for (std::uint32_t i = 0; i < plan_.channels; ++i) {
      weft_channel* c = nullptr;
      if (const int error = weft_connect(session_.get(), plan_.host.c_str(), plan_.service, 0, &c);
          error != 0)
        return fail(plan_.host + ": channel " + std::to_string(i + 1) + " of " +
                    std::to_string(plan_.channels) + ": " + std::strerror(error));
      at_[c] = lines_.size();
      lines_.push_back({c, i < elephants ? 1U : 0U});
    }
    const std::uint64_t give_up = now_ns() + kConnecting;
    while (open_ != lines_.size() && why_.empty() && now_ns() < give_up) wait(10);
    if (!why_.empty()) return fail(plan_.host + ": " + why_);
    if (open_ != lines_.size()) return fail(plan_.host + ": the channels did not open in time");
    const std::uint64_t begin = now_ns();
    counts_from_ = begin + static_cast<std::uint64_t>(plan_.warm_up * 1e9);
    const std::uint64_t end = counts_from_ + static_cast<std::uint64_t>(plan_.seconds * 1e9);
    next_arrival_ = begin;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const bool closed = plan_.rate <= 0 || lines_[i].flow == 1;
      for (std::uint32_t k = 0; closed && k < plan_.outstanding; ++k) again(lines_[i]);
    }
    while (now_ns() < end && why_.empty()) {
      arrivals(now_ns());
      wait(0);
    }
    // The requests of the open loop that began are to end.
    for (const std::uint64_t stop = now_ns() + kDrain; left() != 0 && now_ns() < stop && why_.empty();) {
      arrivals(end);
      wait(0);
    }
    if (!why_.empty()) return fail(plan_.host + ": " + why_);
    result_.seconds = static_cast<double>(now_ns() - counts_from_) / 1e9;
    result_.unfinished = left();
    for (const Line& l : lines_) weft_abort(l.channel);
    return std::move(result_);
  }

 private:
  struct Line {
    weft_channel* channel;
    std::uint32_t flow;
  };

  void wait(int ms) {
    session_.wait(ms, [this](const weft_notice& n) { notice(n); });
  }

  void notice(const weft_notice& n) {
    if (n.message != nullptr) weft_release(session_.get(), n.message);
    const auto it = at_.find(n.channel);
    if (it == at_.end()) return;
    Line& line = lines_[it->second];
    if (n.kind == WEFT_OPENED) ++open_;
    if (n.kind == WEFT_CLOSED) why_ = n.why;
    if (n.kind != WEFT_RESPONSE && n.kind != WEFT_OUTCOME) return;
    const Request r = requests_[n.user];
    free_.push_back(static_cast<std::uint32_t>(n.user));
    if (r.flow == 0) --under_way_;
    const std::uint64_t now = now_ns();
    if (n.kind == WEFT_OUTCOME) ++result_.failed;
    if (n.kind == WEFT_RESPONSE && now >= counts_from_ && r.began >= counts_from_) {
      FlowResult& f = result_.flows[r.flow];
      f.times.record(now - r.began);
      f.bytes += r.bytes;
    }
    if (plan_.rate <= 0 || line.flow == 1) again(line);
  }

  // Of an open loop: requests that wait or have no answer.
  std::uint64_t left() const { return plan_.rate <= 0 ? 0 : waiting_.size() + under_way_; }

  // Requests of an open loop whose time has come, and those that found no room.
  void arrivals(std::uint64_t now) {
    if (plan_.rate <= 0) return;
    for (; next_arrival_ <= now;
         next_arrival_ += std::max<std::uint64_t>(
             1, sim::exponential(random_, static_cast<std::uint64_t>(1e9 / plan_.rate)))) {
      if (waiting_.size() == kMostWaiting) {
        ++result_.overflown;
        continue;
      }
      waiting_.push_back({next_arrival_, size_of(0), 0});
    }
    for (std::size_t tries = 0; !waiting_.empty() && tries < lines_.size();) {
      Line& line = lines_[turn_++ % lines_.size()];
      if (line.flow == 0 && send(line, waiting_.front())) {
        waiting_.pop_front();
        tries = 0;
      } else {
        ++tries;
      }
    }
  }

  std::uint64_t size_of(std::uint32_t flow) {
    return flow == 1 ? plan_.elephant : std::max<std::uint64_t>(1, plan_.sizes.draw(random_));
  }

  void again(Line& line) {
    if (!send(line, {now_ns(), size_of(line.flow), line.flow})) ++result_.failed;
  }

  bool send(const Line& line, const Request& r) {
    weft_message* const m = weft_allocate(session_.get(), static_cast<std::uint32_t>(r.bytes));
    if (m == nullptr) return false;
    std::memset(weft_data(m), 'x', std::min<std::uint64_t>(r.bytes, 64));
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(requests_.size()));
      requests_.push_back({});
    }
    const std::uint32_t slot = free_.back();
    requests_[slot] = r;
    if (weft_call(line.channel, m, slot, kTimeout, nullptr) != 0) {
      weft_release(session_.get(), m);
      return false;
    }
    free_.pop_back();
    if (r.flow == 0) ++under_way_;
    return true;
  }

  const Session& session_;
  const PerfPlan& plan_;
  Prng random_;
  PerfResult result_;
  std::vector<Line> lines_;
  std::map<const weft_channel*, std::size_t> at_;
  std::size_t open_ = 0;
  std::size_t turn_ = 0;
  std::string why_;
  std::uint64_t counts_from_ = 0;
  std::uint64_t next_arrival_ = 0;
  std::uint64_t under_way_ = 0;  // of flow 0
  std::deque<Request> waiting_;
  std::vector<Request> requests_;
  std::vector<std::uint32_t> free_;
};

double us(std::uint64_t ns) { return static_cast<double>(ns) / 1e3; }

}  // namespace

Result<PerfResult> perf(const Session& session, const PerfPlan& plan) { return Run(session, plan).go(); }

std::string text(const PerfResult& r) {
  char line[256];
  std::snprintf(line, sizeof line, "%-10s %10s %11s %9s %9s %9s %9s %9s %9s %9s\n", "flow", "requests",
                "per second", "Gb/s", "least us", "50%", "90%", "99%", "99.9%", "most");
  std::string out = line;
  for (const FlowResult& f : r.flows) {
    const Histogram& h = f.times;
    std::snprintf(
        line, sizeof line, "%-10s %10llu %11.0f %9.3f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f\n", f.name.c_str(),
        static_cast<unsigned long long>(h.count()), static_cast<double>(h.count()) / r.seconds,
        static_cast<double>(f.bytes) * 8 / r.seconds / 1e9, us(h.least()), us(h.percentile(500'000)),
        us(h.percentile(900'000)), us(h.percentile(990'000)), us(h.percentile(999'000)), us(h.most()));
    out += line;
  }
  if (r.failed != 0) out += std::to_string(r.failed) + " requests had no response\n";
  if (r.unfinished != 0)
    out += std::to_string(r.unfinished) +
           " requests were unfinished at the end: their times are missing above\n";
  if (r.overflown != 0)
    out += std::to_string(r.overflown) + " requests never left: the rate is more than there is\n";
  return out;
}

std::string json_text(const PerfPlan& p, const PerfResult& r) {
  using nlohmann::json;
  json all = {{"host", p.host},
              {"channels", p.channels},
              {"outstanding", p.outstanding},
              {"loop", p.rate > 0 ? "open" : "closed"},
              {"rate_per_second", p.rate},
              {"seconds", r.seconds},
              {"failed", r.failed},
              {"overflown", r.overflown},
              {"unfinished", r.unfinished},
              {"flows", json::array()}};
  for (const FlowResult& f : r.flows) {
    const Histogram& h = f.times;
    all["flows"].push_back({{"name", f.name},
                            {"requests", h.count()},
                            {"bytes", f.bytes},
                            {"requests_per_second", static_cast<double>(h.count()) / r.seconds},
                            {"bits_per_second", static_cast<double>(f.bytes) * 8 / r.seconds},
                            {"least_ns", h.least()},
                            {"mean_ns", h.mean()},
                            {"p50_ns", h.percentile(500'000)},
                            {"p90_ns", h.percentile(900'000)},
                            {"p99_ns", h.percentile(990'000)},
                            {"p999_ns", h.percentile(999'000)},
                            {"most_ns", h.most()}});
  }
  return all.dump();
}

}  // namespace weft::tools
