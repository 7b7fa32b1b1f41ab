#include "sim/fabric/wire.h"

#include <algorithm>

namespace weft::sim {

// Held-back packets leave in order of time, then of arrival. Each has one wake-up at its time, so the
// wake-up that runs is always that of the earliest.
struct Wire::Detour {
  struct Held {
    Time until;
    std::uint64_t serial;
    Transit transit;
  };
  static bool later(const Held& a, const Held& b) {
    return a.until != b.until ? a.until > b.until : a.serial > b.serial;
  }

  Detour(Wire& w, const impair::ImpairConfig& config, Prng prng, NodeId far)
      : wire(w), impairment(config, prng), actor(w.fabric_.timeline.add<&Detour::on_wake>(*this, far)) {}

  void hold(const Transit& t, Time until) {
    held.push_back({until, serial++, t});
    std::push_heap(held.begin(), held.end(), later);
    wire.fabric_.timeline.wake_for_arrival(actor, until);
  }
  void on_wake(Time /*now*/) {
    std::pop_heap(held.begin(), held.end(), later);
    const Transit t = held.back().transit;
    held.pop_back();
    wire.far_.arrive(wire.far_.node, t, wire.far_.number);
  }

  Wire& wire;
  impair::Impairment impairment;
  ActorId actor;
  std::uint64_t serial = 0;
  std::vector<Held> held;
};

Wire::Wire(Fabric& fabric, Duration delay, const impair::ImpairConfig& impair, Prng prng, NodeId far)
    : fabric_(fabric), actor_(fabric.timeline.add<&Wire::on_arrival>(*this, far)), delay_(delay) {
  ring_ = std::make_unique<Entry[]>(4);
  mask_ = 3;
  if (!impair.clean() || impair.delay.ps != 0) detour_ = std::make_unique<Detour>(*this, impair, prng, far);
  special_ = detour_ != nullptr;
}

Wire::~Wire() = default;

void Wire::on_arrival(Time now) {
  const std::uint32_t index = head_++;
  const Transit t = ring_[index & mask_].transit;
  if (head_ != tail_) {
    const Entry& next = ring_[head_ & mask_];
    fabric_.timeline.wake_for_arrival(actor_, Time{next.at_ps});
    if (last_hop_) fabric_.packets.prefetch(next.transit.packet);
  }
  if (special_) [[unlikely]] {
    special_arrival(t, index, now);
  } else {
    far_.arrive(far_.node, t, far_.number);
  }
}

void Wire::special_arrival(const Transit& t, std::uint32_t index, Time now) {
  if (losing_ && lost_to_failure(t, index)) return;
  if (t.kind == Transit::Kind::kCredit) return credit_.credit(credit_.port, t);
  if (detour_ != nullptr && !t.is_pfc()) {
    impaired_arrival(t, now);
  } else {
    far_.arrive(far_.node, t, far_.number);
  }
}

void Wire::fail() { failed_ = losing_ = special_ = true; }

void Wire::repair() {
  failed_ = false;
  lost_until_ = tail_;
}

bool Wire::lost_to_failure(const Transit& t, std::uint32_t index) {
  if (!failed_ && index == lost_until_) {  // the first one sent since the repair
    losing_ = false;
    special_ = !plain();
    return false;
  }
  if (!t.is_packet()) return true;
  ++counters_.dropped_failed;
  fabric_.release(t.packet);
  return true;
}

void Wire::impaired_arrival(const Transit& t, Time now) {
  const impair::Fate v = detour_->impairment.decide();
  if (v.copies == 0) {
    ++counters_.dropped_loss;
    fabric_.release(t.packet);
    return;
  }
  if (v.copies == 2) {
    ++counters_.duplicated;
    Transit twin = t;
    twin.packet = fabric_.packets.acquire();
    const Packet& original = fabric_.packets.at(t.packet);
    fabric_.packets.at(twin.packet) = original;
    if (original.payload != kNoPayload) fabric_.payloads.share(original.payload);
    detour_->hold(twin, now + v.duplicate_delay);
  }
  Transit goes_on = t;
  if (v.mark) goes_on.congested = true;
  if (v.corrupt) {
    ++counters_.corrupted;
    fabric_.packets.at(t.packet).corrupt = true;
  }
  if (v.delay.ps != 0) {
    ++counters_.delayed;
    detour_->hold(goes_on, now + v.delay);
  } else {
    far_.arrive(far_.node, goes_on, far_.number);
  }
}

void Wire::grow() {
  const std::uint32_t mask = 2U * mask_ + 1U;
  auto bigger = std::make_unique<Entry[]>(mask + 1U);
  for (std::uint32_t i = head_; i != tail_; ++i) bigger[i & mask] = ring_[i & mask_];
  ring_ = std::move(bigger);
  mask_ = mask;
}

}  // namespace weft::sim
