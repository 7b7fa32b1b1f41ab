#include "sim/nic/pcie.h"

#include "core/base/check.h"

namespace weft::sim {

const char* dma_name(Dma purpose) {
  static constexpr const char* kNames[kDmaCount] = {
      "doorbell",   "send_wqe",     "receive_wqe",   "payload_read", "payload_write",
      "completion", "context_read", "context_write", "translation",  "event"};
  return kNames[static_cast<std::size_t>(purpose)];
}

void Pcie::count(Dma purpose, std::uint64_t bytes) {
  counters_.bytes[static_cast<std::size_t>(purpose)] += bytes;
  ++counters_.transfers[static_cast<std::size_t>(purpose)];
}

Time Pcie::read(Time now, Dma purpose, std::uint64_t bytes, Time earliest) {
  count(purpose, bytes);
  counters_.down += bytes;
  Time done{};
  for (std::uint64_t left = bytes; left != 0 || done == Time{};) {
    const std::uint64_t part = std::min<std::uint64_t>(left, design_.request);
    left -= part;
    const Time begin = std::max(now, tags_[next_tag_]);
    counters_.read_waited += begin - now;
    const Duration asking = design_.rate.time_for({design_.overhead});
    up_free_ = std::max(up_free_, now) + asking;
    counters_.overhead_up += design_.overhead;
    const Time there = std::max(begin, up_free_) + design_.round_trip;
    const Duration busy = design_.rate.time_for({wire_bytes(part)});
    counters_.overhead_down += packets(part) * design_.overhead;
    // What is small comes back between the packets of payload, and takes their bandwidth.
    const bool payload = purpose == Dma::kPayloadRead;
    Time& free = payload ? down_free_ : small_free_;
    free = std::max(free, there) + busy;
    if (!payload) down_free_ = std::max(down_free_, now) + busy;
    done = std::max(free, earliest + asking + design_.round_trip + busy);
    tags_[next_tag_] = free;
    next_tag_ = next_tag_ + 1 == tags_.size() ? 0 : next_tag_ + 1;
  }
  return done;
}

Time Pcie::write(Time now, Dma purpose, std::uint64_t bytes, Time earliest) {
  count(purpose, bytes);
  counters_.up += bytes;
  counters_.overhead_up += packets(bytes) * design_.overhead;
  const Duration busy = design_.rate.time_for({wire_bytes(bytes)});
  up_free_ = std::max(up_free_, now) + busy;
  return std::max(up_free_, earliest + busy) + design_.one_way();
}

Time Pcie::doorbell(Time now, Dma purpose, std::uint64_t bytes, Time earliest) {
  count(purpose, bytes);
  counters_.down += bytes;
  counters_.overhead_down += design_.overhead;
  const Duration busy = design_.rate.time_for({wire_bytes(bytes)});
  down_free_ = std::max(down_free_, now) + busy;
  return std::max(now, earliest) + design_.one_way() + busy;
}

Duration Pcie::read_latency(std::uint64_t bytes) const {
  Pcie idle(design_);
  return idle.read(Time{}, Dma::kPayloadRead, bytes) - Time{};
}
Duration Pcie::write_latency(std::uint64_t bytes) const {
  return design_.rate.time_for({wire_bytes(bytes)}) + design_.one_way();
}
Duration Pcie::doorbell_latency(std::uint64_t bytes) const {
  return design_.one_way() + design_.rate.time_for({wire_bytes(bytes)});
}

}  // namespace weft::sim
