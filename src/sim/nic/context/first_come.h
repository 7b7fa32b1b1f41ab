// A cache of contexts behind one FIFO of requests: first come, first served (csRNA §3, Figure 2). A request
// whose context is not there holds up all that came after it, although theirs may be.
//
//   accept -> [ looked up: r r w | not yet: . . . . ] -> grants, from the left only
//               r: its context is in use for it    w: its context is on the way
//
// With `misses` above 1 the unit looks ahead of a miss, and begins up to so many reads at once; answers still
// leave in order. The look-ahead keeps a free place for each context that is on the way, so that what waits
// behind the head never keeps the head's context out.
#pragma once
#include "sim/nic/context/chip_cache.h"

namespace weft::sim {

class FirstComeStore final : public ContextStore {
 public:
  FirstComeStore(const Design& design, ContextMemory* memory);

  void advance(Time now) override;
  Time next_event() const override;
  bool holds(Qpn qpn) const override { return cache_.holds(qpn); }
  void check_invariants() const override { cache_.check_invariants(); }

 private:
  enum class Context : std::uint8_t { kUnknown, kOnTheWay, kInUse };
  struct Request {
    Asked asked;
    Time came{};
    Context context = Context::kUnknown;
  };
  struct Arrival {
    Qpn qpn = kNoQpn;
    Time at{};
  };
  void accept(const Asked& asked, Time now) override;
  void arrive(Qpn qpn, Time now) override { arrivals_.push({qpn, now}); }
  void let_go(Qpn qpn, bool dirty, Time now) override;
  void drop(Qpn qpn) override { cache_.forget(qpn); }
  bool may_look_up() const;
  Time look_up_due() const;
  Time arrival_due() const;
  void look_up(Time now);
  void place(Time now);
  void answer(Time now);
  bool on_the_way(Qpn qpn) const;

  ChipCache cache_;
  Ring<Request> requests_;
  Ring<Arrival> arrivals_;
  std::size_t looked_up_ = 0;  // requests from the front
  std::uint32_t misses_ = 0;   // reads under way, or arrived and not placed
  Time unit_free_{};
  Time answer_free_{};
};

}  // namespace weft::sim
