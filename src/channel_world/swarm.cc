#include "channel_world/swarm.h"

#include <algorithm>

#include "channel_world/town.h"
#include "core/base/check.h"

namespace weft::channel_world {
namespace {

constexpr Time kLatest = Time{} + seconds(60);
constexpr std::uint64_t kMostSteps = 400'000;

}  // namespace

Town::Town(std::uint64_t seed, pair::Recorder* recorder)
    : plan_(plan_of(seed)),
      random_(Prng(seed).fork(23)),
      world_(plan_.world, recorder),
      moving_(Prng(seed).fork(29)),
      streams_(plan_.streams, plan_.world.hosts.size(), Prng(seed).fork(31)) {
  for (std::uint32_t h = 0; h < world_.host_count(); ++h) {
    ports_.push_back(std::make_unique<pair::WorldPort>(exchange_, world_, h, random_.next()));
    streams_.address(h, ports_[h]->address());
    people_.push_back(std::make_unique<Person>(*this, *ports_[h], h, random_.next()));
    CHECK(ports_[h]->listen(kService).has_value());
  }
  for (std::uint32_t i = 0; i < plan_.channels; ++i) {
    const auto from = static_cast<std::uint32_t>(random_.below(people_.size()));
    const auto to =
        static_cast<std::uint32_t>((from + 1 + random_.below(people_.size() - 1)) % people_.size());
    people_[from]->ask(ports_[to]->address());
  }
  const auto some_time = [&] {
    return Time{} + microseconds(static_cast<std::int64_t>(random_.between(10, 20'000)));
  };
  for (std::uint32_t i = 0; i < plan_.failures; ++i) failures_.push_back(some_time());
  for (std::uint32_t i = 0; i < plan_.crashes; ++i) crashes_.push_back(some_time());
  const auto another_time = [&] {
    return Time{} + microseconds(static_cast<std::int64_t>(moving_.between(10, 20'000)));
  };
  for (std::uint32_t i = 0; i < plan_.moves; ++i) moves_.push_back(another_time());
  for (std::uint32_t i = 0; i < plan_.cuts; ++i) cuts_.push_back(another_time());
}

Time Town::next_wake() const {
  Time at = kNever;
  if (ended_) return at;
  for (const auto& p : people_) at = std::min(at, p->next_wake());
  for (const Time t : failures_) at = std::min(at, t);
  for (const std::vector<Time>* times : {&crashes_, &moves_, &cuts_})
    for (const Time t : *times) at = std::min(at, t);
  at = std::min(at, streams_.next(world_.now()));
  return at;
}

void Town::act(pair::World& world, Time now) {
  if (ended_) return;
  while (!failures_.empty() && failures_.back() <= now) {
    failures_.pop_back();
    const auto h = static_cast<std::uint32_t>(random_.below(people_.size()));
    const auto open = people_[h]->open_channels();
    if (open.empty()) continue;
    const Qpn q = open[random_.below(open.size())]->qpn;
    if (const auto state = ports_[h]->state(q); state && *state == QpState::kRts) world.force_error(h, q);
  }
  while (!crashes_.empty() && crashes_.back() <= now) {
    crashes_.pop_back();
    people_[random_.below(people_.size())]->crash(now);
    ++crashed_;
  }
  while (!moves_.empty() && moves_.back() <= now) {
    moves_.pop_back();
    people_[moving_.below(people_.size())]->move_one(moving_);
  }
  while (!cuts_.empty() && cuts_.back() <= now) {
    cuts_.pop_back();
    streams_.cut(now);
  }
  streams_.advance(now);
  for (auto& p : people_) p->act(now);
}

bool Town::settled() const {
  return std::all_of(people_.begin(), people_.end(), [](const auto& p) { return p->idle(); }) &&
         failures_.empty() && crashes_.empty();
}

std::string Town::unsettled() const {
  std::string text = std::to_string(failures_.size()) + " failures and " + std::to_string(crashes_.size()) +
                     " crashes to come";
  for (std::uint32_t h = 0; h < people_.size(); ++h) {
    if (!people_[h]->idle()) text += "; host " + std::to_string(h) + " has " + people_[h]->busy_with();
  }
  return text;
}

SeedResult Town::run() {
  std::sort(failures_.rbegin(), failures_.rend());
  for (std::vector<Time>* times : {&crashes_, &moves_, &cuts_}) std::sort(times->rbegin(), times->rend());
  check::Report& report = world_.referee().report();
  std::uint64_t steps = 0;
  act(world_, world_.now());
  while (!settled() && report.clean() && world_.now() < kLatest && ++steps < kMostSteps &&
         world_.step(*this)) {
  }
  SeedResult r;
  if (!settled()) {
    if (report.clean())
      report.add(world_.now(), "progress", "channels are not at their end after %llu steps: %s",
                 static_cast<unsigned long long>(steps), unsettled().c_str());
  } else {
    messages_.finish(world_.now());
    for (std::uint32_t h = 0; h < people_.size(); ++h) {
      Context& c = people_[h]->context();
      const std::uint64_t shared = c.shared_receives().bytes();
      if (c.own_memory().in_use != shared || c.lent_memory().in_use != 0 || c.open_channels() != 0 ||
          c.outstanding() != 0) {
        report.add(
            world_.now(), "given back", "host %u has %llu and %llu bytes, %u channels, %u fragments left", h,
            static_cast<unsigned long long>(c.own_memory().in_use - shared),
            static_cast<unsigned long long>(c.lent_memory().in_use), c.open_channels(), c.outstanding());
      }
      if (c.counts().violations != 0)
        report.add(world_.now(), "honest", "host %u took a peer for hostile", h);
    }
  }
  for (std::uint32_t h = 0; h < people_.size(); ++h) {
    // A shared queue of fewer entries than peers may fill gives the promise up.
    const channel::Config& config = plan_.config;
    const bool promised =
        !config.use_srq || config.srq_size >= config.channels * (config.depth + channel::kControls);
    const auto n = world_.host(h).device.counters().get(Counter::nak_rnr);
    r.not_ready += n;
    if (promised && n != 0)
      report.add(world_.now(), "no RNR", "host %u met %llu receives that were not there", h,
                 static_cast<unsigned long long>(n));
    people_[h]->gather(r);
  }
  ended_ = true;
  for (auto& p : people_) p->leave();
  if (report.clean()) world_.run(*this);
  r.clean = report.clean();
  r.findings = report.text();
  r.messages = messages_.count();
  r.shared = plan_.config.use_srq ? 1 : 0;
  r.packets = world_.packets();
  r.unknown = unknown;
  r.traced = traced;
  r.crashes = crashed_;
  return r;
}

SeedResult run_seed(std::uint64_t seed, pair::Recorder* recorder) { return Town(seed, recorder).run(); }

}  // namespace weft::channel_world
