#include "core/transport/shared_receive.h"

#include <algorithm>
#include <bit>

#include "core/base/allocate.h"
#include "core/transport/device.h"
#include "core/transport/engine.h"
#include "core/transport/rc/responder.h"

namespace weft {
namespace {

// Once, then it is disarmed. Also when it is armed late: what it waits for may have happened already, and no
// other receive may ever be taken.
void tell_of_limit(Engine& e, SrqId id, SharedReceiveQueue& s, Qpn taker) {
  if (s.size() >= s.caps.limit) return;
  s.caps.limit = 0;
  e.raise({DeviceEventKind::kSrqLimit, {}, taker, id});
}

}  // namespace

Outcome<SrqId> Device::create_srq(PdId pd, const SrqCaps& asked) {
  Engine& e = *engine_;
  if (pd.v >= e.pds.size() || !e.pds[pd.v]) return fail(Errc::kInvalid);
  if (asked.max_wr == 0 || asked.max_wr > e.config.max_ring || asked.max_sge > 32 ||
      asked.limit > asked.max_wr)
    return fail(Errc::kInvalid);
  std::size_t i = 0;
  while (i < e.srqs.size() && e.srqs[i] != nullptr) ++i;
  if (i == e.config.max_srq) return fail(Errc::kNoMemory);
  if (i == e.srqs.size()) e.srqs.emplace_back();
  std::unique_ptr<SharedReceiveQueue> s(new (std::nothrow) SharedReceiveQueue);
  if (s == nullptr) return fail(Errc::kNoMemory);
  s->pd = pd;
  s->caps = asked;
  s->caps.max_wr = std::bit_ceil(asked.max_wr);
  s->caps.max_sge = std::max(asked.max_sge, 1U);
  s->ring = try_array<RecvWqe>(s->caps.max_wr);
  s->sges = try_array<Sge>(std::size_t{s->caps.max_wr} * s->caps.max_sge);
  if (s->ring == nullptr || s->sges == nullptr) return fail(Errc::kNoMemory);
  e.srqs[i] = std::move(s);
  return SrqId{static_cast<std::uint32_t>(i)};
}

Outcome<void> Device::set_srq_limit(SrqId id, std::uint32_t limit) {
  SharedReceiveQueue* s = engine_->find_srq(id);
  if (s == nullptr) return fail(Errc::kNotFound);
  if (limit > s->caps.max_wr) return fail(Errc::kInvalid);
  s->caps.limit = limit;
  tell_of_limit(*engine_, id, *s, kNoQpn);
  return {};
}

Outcome<SrqCaps> Device::query_srq(SrqId id) const {
  const SharedReceiveQueue* s = engine_->find_srq(id);
  if (s == nullptr) return fail(Errc::kNotFound);
  return s->caps;
}

Outcome<void> Device::destroy_srq(SrqId id) {
  SharedReceiveQueue* s = engine_->find_srq(id);
  if (s == nullptr) return fail(Errc::kNotFound);
  if (s->users != 0) return fail(Errc::kBusy);
  engine_->srqs[id.v].reset();
  return {};
}

Outcome<void> Device::post_srq_recv(SrqId id, const RecvWr& wr) {
  SharedReceiveQueue* s = engine_->find_srq(id);
  if (s == nullptr) return fail(Errc::kNotFound);
  if (wr.sges.size() > s->caps.max_sge) return fail(Errc::kInvalid);
  if (s->size() == s->caps.max_wr) return fail(Errc::kNoMemory);
  RecvWqe& r = s->ring[s->tail & s->mask()];
  r = {};
  r.wr_id = wr.wr_id;
  r.sge_count = static_cast<std::uint8_t>(wr.sges.size());
  std::copy(wr.sges.begin(), wr.sges.end(), s->sges_of(s->tail));
  ++s->tail;
  return {};
}

bool rc_take_shared(Engine& e, QueuePair& q) {
  ColdQueuePair& c = e.cold(q);
  if (c.init.srq == kNoSrq) return false;
  SharedReceiveQueue& s = *e.srqs[c.init.srq.v];
  if (s.size() == 0 || static_cast<std::uint16_t>(q.rq_tail - q.rq_head) > c.rq_mask) return false;
  const RecvWqe& from = s.ring[s.head & s.mask()];
  e.recv_wqe(c, q.rq_tail) = from;
  std::copy_n(s.sges_of(s.head), from.sge_count,
              &c.rq_sges[static_cast<std::size_t>(q.rq_tail & c.rq_mask) * c.init.caps.max_recv_sge]);
  ++s.head;
  ++q.rq_tail;
  tell_of_limit(e, c.init.srq, s, q.qpn);
  return true;
}

}  // namespace weft
