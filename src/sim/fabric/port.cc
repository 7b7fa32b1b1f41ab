#include "sim/fabric/port.h"

#include <algorithm>

namespace weft::sim {

// Held-back packets leave in order of time, then of arrival. Each has one wake-up at its time, so the
// wake-up that runs is always that of the earliest.
struct Port::Detour {
  struct Held {
    Time until;
    std::uint64_t serial;
    PacketRef packet;
  };
  static bool later(const Held& a, const Held& b) {
    return a.until != b.until ? a.until > b.until : a.serial > b.serial;
  }

  Detour(Port& p, const impair::ImpairConfig& config, Prng prng)
      : port(p), impairment(config, prng), actor(p.fabric_.timeline.add<&Detour::on_wake>(*this)) {}

  void hold(PacketRef ref, Time until) {
    held.push_back({until, serial++, ref});
    std::push_heap(held.begin(), held.end(), later);
    port.fabric_.timeline.wake(actor, until);
  }
  void on_wake(Time /*now*/) {
    std::pop_heap(held.begin(), held.end(), later);
    const PacketRef ref = held.back().packet;
    held.pop_back();
    port.far_.arrive(port.far_.node, ref, port.far_.number);
  }

  Port& port;
  impair::Impairment impairment;
  ActorId actor;
  std::uint64_t serial = 0;
  std::vector<Held> held;
};

Port::Port(Fabric& fabric, const PortConfig& config, Prng prng)
    : fabric_(fabric), actor_(fabric.timeline.add<&Port::on_arrival>(*this)), config_(config) {
  constexpr std::uint64_t kPsBits = 8'000'000'000'000ULL;
  if (config.rate.bps != 0 && kPsBits % config.rate.bps == 0) {
    ps_per_byte_ = static_cast<std::int64_t>(kPsBits / config.rate.bps);
  }
  ring_.resize(8);
  mask_ = 7;
  if (!config.impair.clean() || config.impair.delay.ps != 0) {
    detour_ = std::make_unique<Detour>(*this, config.impair, prng);
  }
}

Port::~Port() = default;

bool Port::send(PacketRef ref) {
  const std::uint32_t bytes = fabric_.packets.at(ref).frame;
  const Time now = fabric_.timeline.now();
  retire(now);
  if (config_.queue.n != 0 && queued_ + bytes > config_.queue.n) {
    ++counters_.dropped_full;
    fabric_.release(ref);
    return false;
  }
  queued_ += bytes;
  counters_.longest_queue = std::max(counters_.longest_queue, queued_);
  free_at_ = std::max(now, free_at_) + serialisation(bytes);
  if (tail_ - head_ == ring_.size()) grow();
  entry(tail_++) = {free_at_.ps, ref, bytes};
  if (tail_ - head_ == 1) fabric_.timeline.wake(actor_, free_at_ + config_.delay);
  return true;
}

void Port::retire(Time now) {
  while (retired_ != tail_ && entry(retired_).departs_ps <= now.ps) queued_ -= entry(retired_++).bytes;
}

Bytes Port::queued() const {
  std::uint64_t sum = queued_;
  for (std::uint32_t i = retired_; i != tail_; ++i) {
    const Entry& e = ring_[i & mask_];
    if (e.departs_ps > fabric_.timeline.now().ps) break;
    sum -= e.bytes;
  }
  return {sum};
}

void Port::on_arrival(Time now) {
  const Entry e = entry(head_);
  if (retired_ == head_) {
    ++retired_;
    queued_ -= e.bytes;
  }
  ++head_;
  if (head_ != tail_) fabric_.timeline.wake(actor_, Time{entry(head_).departs_ps} + config_.delay);
  ++counters_.packets;
  counters_.bytes += e.bytes;
  if (detour_ != nullptr) [[unlikely]] {
    impaired_arrival(e.packet, now);
  } else {
    far_.arrive(far_.node, e.packet, far_.number);
  }
}

void Port::impaired_arrival(PacketRef ref, Time now) {
  const impair::Verdict v = detour_->impairment.decide();
  if (v.copies == 0) {
    ++counters_.dropped_loss;
    fabric_.release(ref);
    return;
  }
  if (v.copies == 2) {
    ++counters_.duplicated;
    const PacketRef twin = fabric_.packets.acquire();
    const Packet& original = fabric_.packets.at(ref);
    fabric_.packets.at(twin) = original;
    if (original.payload != kNoPayload) fabric_.payloads.share(original.payload);
    detour_->hold(twin, now + v.duplicate_delay);
  }
  if (v.mark) fabric_.packets.at(ref).rx.tos |= wire::kEcnCe;
  if (v.corrupt) {
    ++counters_.corrupted;
    fabric_.packets.at(ref).corrupt = true;
  }
  if (v.delay.ps != 0) {
    ++counters_.delayed;
    detour_->hold(ref, now + v.delay);
  } else {
    far_.arrive(far_.node, ref, far_.number);
  }
}

void Port::grow() {
  std::vector<Entry> bigger(ring_.size() * 2U);
  const auto mask = static_cast<std::uint32_t>(bigger.size() - 1U);
  for (std::uint32_t i = head_; i != tail_; ++i) bigger[i & mask] = entry(i);
  ring_ = std::move(bigger);
  mask_ = mask;
}

}  // namespace weft::sim
