// What watches a context store: check/context_order.h through sim/world, and tests. No call may come back to
// the store.
#pragma once
#include "core/base/ids.h"
#include "core/base/units.h"

namespace weft::sim {

struct ContextRequest;
struct ContextGrant;

class StoreObserver {
 public:
  virtual ~StoreObserver() = default;
  virtual void asked(const ContextRequest&, Time) {}
  virtual void granted(const ContextGrant&, Time) {}
  virtual void released(Qpn, bool /*dirty*/, Time) {}
  virtual void forgot(Qpn, Time) {}
  virtual void read_begun(Qpn, Time) {}
  virtual void read_ended(Qpn, Time) {}
  virtual void written(Qpn, Time) {}
};

}  // namespace weft::sim
