#include "sim/fabric/port.h"

namespace weft::sim {

Port::Port(Fabric& fabric, const PortConfig& config, Prng prng)
    : fabric_(fabric),
      actor_(fabric.timeline.add<&Port::on_service>(*this, config.node)),
      wire_(fabric, config.delay, config.impair, prng, config.far),
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
  t.ecn_capable = p.ecn_capable;
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
  t.kind = on ? Transit::Kind::kPause : Transit::Kind::kResume;
  free_at_ = std::max(fabric_.timeline.now(), free_at_) + serialisation(t.bytes);
  wire_.carry(t, free_at_);
  counters_.pauses_sent += on ? 1U : 0U;
}

void Port::grant(std::uint64_t granted, std::uint32_t largest_frame, Port& reverse) {
  credits_ = std::make_unique<Credits>();
  credits_->granted = granted;
  credits_->largest_frame = largest_frame;
  reverse.wire_.on_credit<&Port::on_credit>(*this);
  grant_again({});
}

void Port::grant_again(const std::array<std::uint64_t, kClasses>& taken) {
  spends_ = true;
  for (std::uint8_t k = 0; k < kClasses; ++k) {
    CHECK_OP(taken[k], <=, credits_->granted);
    credits_->left[k] = credits_->granted - taken[k];
    credit_changed(k);
  }
}

void Port::credit_changed(std::uint8_t k) {
  const bool stop = spends_ && credits_->left[k] < credits_->largest_frame;
  if (stop == paused(k)) return;
  pause(k, stop);
  // A host's NIC sends when the link is free, so it waits for this.
  if (!stop && idle_.node != nullptr) await_idle();
}

void Port::spend(const Transit& t) {
  std::uint64_t& left = credits_->left[t.traffic_class];
  CHECK_OP(left, >=, t.bytes);
  left -= t.bytes;
  credit_changed(t.traffic_class);
}

void Port::on_credit(const Transit& t) {
  credits_->left[t.traffic_class] += t.flow;
  credit_changed(t.traffic_class);
}

void Port::send_credit(std::uint8_t traffic_class, std::uint32_t bytes) {
  Transit t;
  t.bytes = kCreditFrameBytes;
  t.flow = bytes;
  t.traffic_class = traffic_class;
  t.kind = Transit::Kind::kCredit;
  free_at_ = std::max(fabric_.timeline.now(), free_at_) + serialisation(t.bytes);
  wire_.carry(t, free_at_);
}

void Port::fail() {
  wire_.fail();
  if (credits_ == nullptr) return;
  spends_ = false;
  for (std::uint8_t k = 0; k < kClasses; ++k) credit_changed(k);
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
