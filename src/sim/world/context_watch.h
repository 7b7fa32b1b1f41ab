// A detailed NIC's store of contexts under the eyes of the order observer (check/context_order.h).
#pragma once
#include "check/context_order.h"
#include "sim/nic/context/store.h"

namespace weft::sim {

class ContextWatch final : public StoreObserver {
 public:
  ContextWatch(check::Report& report, const ContextDesign& design)
      : order_(report, design.write_back && design.policy != ContextPolicy::kOnChip) {}
  void asked(const ContextRequest& r, Time) override { order_.asked(r.qpn, number(r.channel), r.tag); }
  void granted(const ContextGrant& g, Time now) override {
    order_.granted(g.qpn, number(g.channel), g.tag, now);
  }
  void released(Qpn qpn, bool dirty, Time now) override { order_.released(qpn, dirty, now); }
  void forgot(Qpn qpn, Time now) override { order_.forgot(qpn, now); }
  void read_begun(Qpn qpn, Time now) override { order_.read_begun(qpn, now); }
  void read_ended(Qpn qpn, Time now) override { order_.read_ended(qpn, now); }
  void written(Qpn qpn, Time now) override { order_.written(qpn, now); }
  // Nothing is to come.
  void finish(Time now) { order_.finish(now); }

 private:
  static std::uint32_t number(StoreChannel c) { return static_cast<std::uint32_t>(c); }
  check::ContextOrder order_;
};

}  // namespace weft::sim
