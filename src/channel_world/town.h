// A town of programs above channels: the world, what every host's program does in it (person.cc), and what is
// judged of them all (swarm.cc).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "channel/context.h"
#include "channel_world/plan.h"
#include "channel_world/streams.h"
#include "channel_world/swarm.h"
#include "check/messages.h"
#include "pair/world_port.h"

namespace weft::channel_world {

using channel::Channel;
using channel::Context;
using channel::Message;
using channel::Notice;
using check::Messages;

inline constexpr std::uint16_t kService = 7;

class Town;

// One host's program. It lives as often as it is begun.
class Person {
 public:
  Person(Town& town, pair::WorldPort& port, std::uint32_t host, std::uint64_t seed);
  void begin();
  void crash(Time now);
  void act(Time now);
  Time next_wake() const;
  void ask(const wire::Address& to);
  bool idle() const { return talks_.empty() && held_.empty() && context_->buried(); }
  std::string busy_with() const;
  Context& context() { return *context_; }
  std::vector<Channel*> open_channels();
  void move_one(Prng& random);  // a channel, to the other carrier
  void leave();                 // everything has ended
  void gather(SeedResult& out) const;

 private:
  struct Talk {  // one end of a channel
    std::uint32_t number = 0;
    std::uint8_t side = 0;
    bool open = false;
    bool closing = false;
    std::uint32_t to_send = 0;
    std::uint32_t refused = 0;  // in a row
    Time next{};
  };
  struct Held {
    Message* message;
    Messages::Flow flow;
    std::uint32_t number;
    Time until;
    bool to_answer;
  };

  void notice(const Notice& n, Time now);
  void received(const Notice& n, Time now);
  void judge_trace(const Notice& n, Time now);
  void send(Channel& c, Talk& t, Time now);
  Message* write(const Talk& t, std::uint32_t number, std::uint32_t length);
  std::uint32_t length();
  void let_go(Held& h, Time now);
  static std::uint64_t cookie(Messages::Flow f, std::uint32_t number) {
    return std::uint64_t{f.channel} << 40U | std::uint64_t{f.from} << 32U | number;
  }

  Town& town_;
  pair::WorldPort& port_;
  std::uint32_t host_;
  Prng random_;
  std::unique_ptr<Context> context_;
  // Its clock goes back now and then (Context::rebase), and nobody else may notice.
  Prng clocks_;
  Prng traces_;  // turns tracing on and off
  Prng naps_;
  Time asleep_until_{};
  Duration back_{};
  Time local(Time now) const { return now - back_; }
  std::map<Channel*, Talk> talks_;
  std::vector<Held> held_;
  SeedResult past_;
};

// The world and everybody in it.
class Town final : public pair::Programs {
 public:
  Town(std::uint64_t seed, pair::Recorder* recorder);
  SeedResult run();

  Time next_wake() const override;
  void act(pair::World&, Time now) override;
  bool waiting() const override { return false; }

  std::uint32_t number_of(std::uint64_t session) {
    return numbers_.try_emplace(session, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  const Plan& plan() const { return plan_; }
  Messages& messages() { return messages_; }
  // Both ends have sent what they had; or one of them is gone.
  std::map<std::uint32_t, std::set<std::uint8_t>> done;
  std::set<std::uint32_t> over;  // ends that were told, or crashed: channel * 2 + side
  std::uint64_t unknown = 0;
  std::uint64_t traced = 0;
  channel::StreamPort* streams(std::uint32_t host) { return plan_.tcp ? &streams_.at(host) : nullptr; }
  Time now() const { return world_.now(); }
  check::Report& report() { return world_.referee().report(); }

 private:
  bool settled() const;
  std::string unsettled() const;  // what there is still to come

  Plan plan_;
  Prng random_;
  pair::World world_;
  Exchange exchange_;
  Messages messages_{world_.referee().report()};
  std::map<std::uint64_t, std::uint32_t> numbers_;
  std::vector<std::unique_ptr<pair::WorldPort>> ports_;
  std::vector<std::unique_ptr<Person>> people_;
  std::vector<Time> failures_;
  std::vector<Time> crashes_;
  Prng moving_;
  Streams streams_;
  std::vector<Time> moves_;
  std::vector<Time> cuts_;
  std::uint64_t crashed_ = 0;
  bool ended_ = false;
};

}  // namespace weft::channel_world
