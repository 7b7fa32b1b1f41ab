// All contexts are on the chip (eRNIC, SRNIC §3.2.1): a request is granted after the time of one access, and
// nothing ever comes from outside. How many queue pairs there can be is what this costs.
#pragma once
#include "sim/nic/context/store.h"

namespace weft::sim {

class OnChipStore final : public ContextStore {
 public:
  explicit OnChipStore(const Design& design) : ContextStore(design, nullptr) {}

  void advance(Time) override {}
  Time next_event() const override { return kNever; }
  // The address of the send queue is a part of the context.
  bool queue_address(Qpn, Time) override { return true; }
  bool holds(Qpn) const override { return true; }

 private:
  void accept(const Asked& asked, Time now) override {
    free_ = std::max(free_, now);
    ++counters_.hits;
    grant(asked, free_);
    free_ = free_ + interval_;
  }
  void arrive(Qpn, Time) override { CHECK(false); }
  void let_go(Qpn, bool, Time) override {}
  void drop(Qpn) override {}
  Time free_{};  // when the memory takes the next access
};

}  // namespace weft::sim
