// The real side: Shards that step through virtual time on a wire of bytes (live/engine/shard.h).
#include <algorithm>

#include "live/engine/shard.h"
#include "tests/differential/virtual_wire.h"

namespace weft::differential {
namespace {

// At one time; more is an engine that is in a loop.
constexpr std::uint32_t kMostTurns = 10'000;

class LiveHost final : public Host {
 public:
  LiveHost(std::size_t n, const WorldPlan& plan, const Time& now, Programs& programs,
           const Sabotage& sabotage)
      : wire(n, plan, now),
        shard_(plan.devices[n], wire.facts(), true,
               plan.services ? plan.services->managers[n] : cm::CmConfig{},
               plan.services ? plan.services->discoveries[n] : cm::DiscoveryConfig{}),
        number_(n),
        now_(now),
        programs_(programs) {
    wire.tell(programs, n == 0 ? sabotage : Sabotage{});
  }

  Device& device() override { return shard_.device(); }
  wire::Address address() const override { return wire.facts().own.first; }
  cm::Cm& manager() override { return shard_.services().manager(); }
  cm::Discovery& discovery() override { return shard_.services().discovery(); }
  void set_region(RegionId region, std::uint8_t* bytes) override { shard_.set_region(region, bytes); }
  // A shard sends a few trains and then looks at its wire; time does not pass meanwhile here.
  void send() override {
    while (shard_.has_to_send() && shard_.transmit(now_, wire)) {
    }
  }

  Time next() const {
    return std::min({wire.next_arrival(), shard_.next_deadline(), programs_.next_wake(number_)});
  }
  // Everything that happens here at this time: what arrived, frame by frame, then what is due. What a frame
  // makes possible leaves before anything is due; a step() of the shard would look at its timers earlier,
  // when a few trains have left.
  void run() {
    while (wire.next_arrival() <= now_) {
      shard_.receive(now_, wire);
      send();
      act();
    }
    if (programs_.next_wake(number_) <= now_) act();
    if (shard_.next_deadline() <= now_) {
      shard_.step(now_, wire, 1);
      send();
      act();
    }
  }
  void act() {
    programs_.act(number_, now_);
    send();
  }

  VirtualWire wire;

 private:
  live::Shard shard_;
  std::size_t number_;
  const Time& now_;
  Programs& programs_;
};

}  // namespace

bool run_live(const WorldPlan& plan, Programs& programs, const Sabotage& sabotage) {
  Time now{};
  LiveHost host0(0, plan, now, programs, sabotage);
  LiveHost host1(1, plan, now, programs, sabotage);
  host0.wire.peer = &host1.wire;
  host1.wire.peer = &host0.wire;
  programs.set_up({&host0, &host1});
  host0.act();
  host1.act();
  for (std::uint32_t turns = 0; turns <= kMostTurns; ++turns) {
    const Time at = std::min(host0.next(), host1.next());
    if (at > plan.end) break;
    if (at != now) turns = 0;
    if (turns == kMostTurns) programs.log(0, Lane::kDevice, at, "something is due and is never done");
    now = at;
    host0.run();
    host1.run();
  }
  programs.leave(plan.end);
  return !host0.wire.tied() && !host1.wire.tied();
}

}  // namespace weft::differential
