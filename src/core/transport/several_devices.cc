#include "core/transport/several_devices.h"

#include <algorithm>

#include "core/transport/engine.h"

namespace weft {

bool is_used(const Engine& e, PdId pd) {
  if (e.keys.uses(pd) || e.address_handles.uses(pd)) return true;
  const auto of_srq = [pd](const auto& srq) { return srq != nullptr && srq->pd == pd; };
  if (std::any_of(e.srqs.begin(), e.srqs.end(), of_srq)) return true;
  // A queue pair that is gone has left no cold part.
  const auto of_qp = [pd](const auto& cold) { return cold != nullptr && cold->init.pd == pd; };
  return std::any_of(e.colds.begin(), e.colds.end(), of_qp);
}

bool is_used(const Engine& e, CqId cq) {
  return cq.v < e.cqs.size() && e.cqs[cq.v] != nullptr && e.cqs[cq.v]->users != 0;
}

Outcome<void> arm_anew(Device& device, CqId cq, bool solicited_only) {
  const Engine& e = device.engine();
  if (cq.v < e.cqs.size() && e.cqs[cq.v] != nullptr) static_cast<void>(e.cqs[cq.v]->disarm());
  return device.request_notify(cq, solicited_only);
}

}  // namespace weft
