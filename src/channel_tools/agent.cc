#include "channel_tools/agent.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <string_view>

#include "channel_tools/prober.h"

namespace weft::tools {
namespace {

constexpr std::size_t kMostJobs = 4;  // at a time; a fifth asker is told to come again
constexpr std::uint32_t kBusy = 1;
constexpr std::uint32_t kNonsense = 2;

struct Job {
  weft_message* request;
  std::unique_ptr<Prober> prober;
};

std::string_view text_of(weft_message* m) { return {static_cast<const char*>(weft_data(m)), weft_length(m)}; }

class Agent {
 public:
  Agent(const Session& session, const AgentPlan& plan) : session_(session), plan_(plan) {}
  ~Agent() {
    for (Job& j : jobs_) weft_release(session_.get(), j.request);
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  void notice(const weft_notice& n) {
    for (Job& j : jobs_) {
      if (j.prober->notice(n)) return;
    }
    if (n.kind == WEFT_ASKED) {
      char peer[32] = {};
      (void)weft_peer(n.channel, peer, sizeof peer);
      const bool denied = std::find(plan_.deny.begin(), plan_.deny.end(), peer) != plan_.deny.end();
      denied ? weft_refuse(n.channel) : weft_accept(n.channel, 0);
    }
    // A job of a channel that ended is for nobody.
    if (n.kind == WEFT_CLOSED) {
      for (auto it = jobs_.begin(); it != jobs_.end();) {
        if (channel_of(*it) != n.channel) {
          ++it;
          continue;
        }
        weft_release(session_.get(), it->request);
        channels_.erase(it->request);
        it = jobs_.erase(it);
      }
    }
    if (n.kind == WEFT_REQUEST) return request(n);
    if (n.message != nullptr) weft_release(session_.get(), n.message);
  }

  void turn() {
    for (auto it = jobs_.begin(); it != jobs_.end();) {
      it->prober->turn();
      if (!it->prober->done()) {
        ++it;
        continue;
      }
      weft_message* const said = session_.message(write_result(it->prober->cells()));
      if (said == nullptr || weft_answer(it->request, said, 0, 0) != 0) {
        if (said != nullptr) weft_release(session_.get(), said);
      }
      weft_release(session_.get(), it->request);
      channels_.erase(it->request);
      it = jobs_.erase(it);
    }
  }
  bool busy() const { return !jobs_.empty(); }

 private:
  weft_channel* channel_of(const Job& j) const {
    const auto it = channels_.find(j.request);
    return it == channels_.end() ? nullptr : it->second;
  }
  void request(const weft_notice& n) {
    const std::string_view said = text_of(n.message);
    if (!said.starts_with("mesh1 ")) {
      (void)weft_answer(n.message, nullptr, 0, 0);
      return weft_release(session_.get(), n.message);
    }
    PingPlan plan;
    std::vector<std::string> hosts;
    const bool sound = read_job(said, plan, hosts);
    if (!sound || jobs_.size() == kMostJobs) {
      (void)weft_answer(n.message, nullptr, sound ? kBusy : kNonsense, 0);
      return weft_release(session_.get(), n.message);
    }
    channels_[n.message] = n.channel;
    jobs_.push_back({n.message, std::make_unique<Prober>(session_, hosts, plan)});
  }

  const Session& session_;
  const AgentPlan& plan_;
  std::list<Job> jobs_;
  std::map<const weft_message*, weft_channel*> channels_;
};

}  // namespace

Result<void> serve(const Session& session, const AgentPlan& plan) {
  if (const int error = weft_listen(session.get(), plan.service); error != 0)
    return fail("cannot listen on service " + std::to_string(plan.service) + ": " + std::strerror(error));
  std::printf("serving on %u\n", unsigned{plan.service});
  std::fflush(stdout);
  Agent agent(session, plan);
  const std::uint64_t end =
      plan.seconds <= 0 ? UINT64_MAX : now_ns() + static_cast<std::uint64_t>(plan.seconds * 1e9);
  while (now_ns() < end) {
    agent.turn();
    session.wait(agent.busy() ? 1 : 100, [&](const weft_notice& n) { agent.notice(n); });
  }
  return {};
}

}  // namespace weft::tools
