// The connection manager's part of a world with a long line: queue pairs of both sites meet by REQ and REP
// before their programs begin, and part by DREQ and DREP once these are done. The Devices are connected
// already; what counts is that the messages pass the boxes, and that no DREQ arrives before the data that
// were complete when it was sent.
#pragma once
#include <vector>

#include "core/wire/mad.h"
#include "pair/workload.h"

namespace weft::pair {

class Meetings final : public Programs {
 public:
  Meetings(const Plan& plan, World& world, Workload& programs);

  Time next_wake() const override;
  void act(World& world, Time now) override;
  bool waiting() const override;
  void completed(World& world, HostId host, const Completion& c) override {
    programs_.completed(world, host, c);
  }

 private:
  struct Meeting {
    std::uint32_t connection = 0;
    std::uint32_t active = 0;  // the side that asks for it
    std::uint32_t leaves = 0;  // the side that ends it
    bool met = false;
    bool parted = false;
    Time again{};  // its message is sent once more, for want of an answer
  };
  void hear(World& world, std::uint32_t host, const wire::CmMessage& m, Time now);
  void say(World& world, const Meeting& m, std::uint32_t side, wire::CmKind kind);
  bool all(bool Meeting::*what) const;

  const Plan& plan_;
  Workload& programs_;
  std::vector<Meeting> meetings_;
};

}  // namespace weft::pair
