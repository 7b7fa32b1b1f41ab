#include "sim/fabric/port.h"

namespace weft::sim {

Port::Port(Fabric& fabric, const PortConfig& config, Prng prng)
    : fabric_(fabric),
      actor_(fabric.timeline.add<&Port::on_service>(*this)),
      wire_(fabric, config.delay, config.impair, prng),
      queues_(config.inputs),
      config_(config) {
  constexpr std::uint64_t kPsBits = 8'000'000'000'000ULL;
  if (config.rate.bps != 0 && kPsBits % config.rate.bps == 0) {
    ps_per_byte_ = static_cast<std::int64_t>(kPsBits / config.rate.bps);
  }
}

bool Port::send(PacketRef ref) {
  const Packet& p = fabric_.packets.at(ref);
  Transit t;
  t.packet = ref;
  t.destination = p.destination;
  t.flow = p.flow;
  t.bytes = static_cast<std::uint16_t>(p.frame);
  t.traffic_class = p.traffic_class;
  if (p.ecn_capable) t.marks = Transit::kEcnCapable;
  if (free_for(t.traffic_class)) {
    begin(t);
    return true;
  }
  if (config_.queue.n != 0 && queues_.bytes() + t.bytes > config_.queue.n) {
    drop(ref);
    return false;
  }
  enqueue(t, 0);
  return true;
}

void Port::drop(PacketRef ref) {
  ++counters_.dropped_full;
  counters_.dropped_control += fabric_.packets.at(ref).control ? 1U : 0U;
  fabric_.release(ref);
}

void Port::enqueue(const Transit& t, std::uint16_t ingress) {
  if (lengths_ == nullptr) [[unlikely]]
    lengths_ = std::make_unique<Histogram>();
  lengths_->add(queues_.bytes());
  queues_.push(fabric_.waiting, t, ingress);
  counters_.longest_queue = std::max(counters_.longest_queue, queues_.bytes());
  if (!paused(t.traffic_class)) ask(std::max(free_at_, fabric_.timeline.now()));
}

void Port::on_service(Time now) {
  asked_ = false;
  if (free_at_ > now) return ask(free_at_);  // a PFC frame went first
  serve(now);
}

void Port::serve(Time now) {
  if (queues_.ready(paused_)) {
    const Queues::Taken taken = queues_.pop(fabric_.waiting, paused_);
    begin(taken.transit);
    if (queues_.ready(paused_) || idle_awaited_) ask(free_at_);
    if (departure_.node != nullptr) departure_.left(departure_.node, taken.transit, taken.ingress);
  } else if (idle_awaited_) {
    idle_awaited_ = false;
    idle_.idle(idle_.node, now);
  }
}

void Port::pause(std::uint8_t traffic_class, bool on) {
  const Time now = fabric_.timeline.now();
  const std::uint32_t before = paused_;
  const std::uint32_t bit = 1U << traffic_class;
  paused_ = on ? before | bit : before & ~bit;
  if (before == 0 && paused_ != 0) paused_since_ = now;
  if (before != 0 && paused_ == 0) paused_for_ += now - paused_since_;
  if (!on && queues_.ready(paused_)) ask(std::max(free_at_, now));
}

void Port::send_pfc(std::uint8_t traffic_class, bool on) {
  Transit t;
  t.bytes = kPfcFrameBytes;
  t.traffic_class = traffic_class;
  t.marks = on ? Transit::kPause : Transit::kResume;
  free_at_ = std::max(fabric_.timeline.now(), free_at_) + serialisation(t.bytes);
  wire_.carry(t, free_at_);
  counters_.pauses_sent += on ? 1U : 0U;
}

Duration Port::paused_for() const {
  return paused_ == 0 ? paused_for_ : paused_for_ + (fabric_.timeline.now() - paused_since_);
}

Histogram Port::found_waiting() const {
  Histogram h;
  if (lengths_ != nullptr) h.merge(*lengths_);
  h.add(0, counters_.packets > h.total() ? counters_.packets - h.total() : 0);
  return h;
}

}  // namespace weft::sim
