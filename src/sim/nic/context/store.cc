#include "sim/nic/context/store.h"

#include "core/base/check.h"
#include "sim/nic/context/first_come.h"
#include "sim/nic/context/non_blocking.h"
#include "sim/nic/context/on_chip.h"

namespace weft::sim {

std::uint32_t most_queue_pairs(const ContextDesign& design) {
  const std::uint32_t most = design.most != 0 ? design.most : kMostQueuePairs;
  const bool table = design.policy == ContextPolicy::kNonBlocking && design.sq_table != 0;
  return table ? std::min(most, design.sq_table) : most;
}

ContextStore::ContextStore(const Design& design, ContextMemory* memory)
    : design_(design.context),
      interval_(design.cycles(design.context.access.interval)),
      depth_(design.cycles(design.context.access.depth)),
      requesters_(design.context.channels, Requester(design.context.ooo_capacity)),
      seen_(memory),
      grants_(std::size_t{design.context.channels} * design.context.ooo_capacity) {}

void ContextStore::integrate(Time now) {
  CHECK_OP(now.ps, >=, integrated_.ps);
  counters_.occupied += (now - integrated_) * waiting_;
  integrated_ = now;
}

void ContextStore::request(const ContextRequest& request, Time now) {
  CHECK(can_request(request.channel));
  advance(now);
  integrate(now);
  ++counters_.requests;
  counters_.most_waiting = std::max<std::uint64_t>(counters_.most_waiting, ++waiting_);
  if (seen_.observer != nullptr) seen_.observer->asked(request, now);
  const auto channel = static_cast<std::uint16_t>(row(request.channel));
  const std::uint16_t index = requesters_[channel].put({request.tag, now, false});
  accept({request.qpn, channel, index}, now);
  advance(now);
}

void ContextStore::grant(const Asked& asked, Time now) {
  const Requester::Waiting& w = requesters_[asked.channel].at(asked.index);
  grants_.push(
      {asked.qpn, static_cast<StoreChannel>(asked.channel), asked.index, w.tag, w.asked, now + depth_});
}

bool ContextStore::next_grant(Time now, ContextGrant& out) {
  advance(now);
  if (grants_.empty() || grants_.front().at > now) return false;
  out = grants_.pop();
  integrate(now);
  requesters_[static_cast<std::size_t>(out.channel)].take(out.index);
  --waiting_;
  ++counters_.grants;
  counters_.waited += now - out.asked;
  if (seen_.observer != nullptr) seen_.observer->granted(out, now);
  return true;
}

void ContextStore::fetched(Qpn qpn, Time now) {
  advance(now);
  if (seen_.observer != nullptr) seen_.observer->read_ended(qpn, now);
  arrive(qpn, now);
  advance(now);
}

void ContextStore::release(Qpn qpn, bool dirty, Time now) {
  advance(now);
  if (seen_.observer != nullptr) seen_.observer->released(qpn, dirty, now);
  let_go(qpn, dirty, now);
  advance(now);
}

void ContextStore::forget(Qpn qpn, Time now) {
  advance(now);
  if (seen_.observer != nullptr) seen_.observer->forgot(qpn, now);
  drop(qpn);
}

void ContextStore::Seen::read(Qpn qpn, Bytes bytes, Time now) {
  if (observer != nullptr) observer->read_begun(qpn, now);
  memory->read(qpn, bytes, now);
}

void ContextStore::Seen::write(Qpn qpn, Bytes bytes, Time now) {
  if (observer != nullptr) observer->written(qpn, now);
  memory->write(qpn, bytes, now);
}

std::unique_ptr<ContextStore> make_store(const Design& design, ContextMemory* memory) {
  CHECK(validate(design).has_value());
  switch (design.context.policy) {
    case ContextPolicy::kOnChip:
      return std::make_unique<OnChipStore>(design);
    case ContextPolicy::kFcfs:
      return std::make_unique<FirstComeStore>(design, memory);
    case ContextPolicy::kNonBlocking:
      return std::make_unique<NonBlockingStore>(design, memory);
  }
  return nullptr;
}

}  // namespace weft::sim
