#include "sim/fabric/switch.h"

namespace weft::sim {

std::uint32_t Switch::add_port(Port& egress) {
  const auto number = static_cast<std::uint32_t>(ports_.size());
  ports_.push_back(&egress);
  Ingress& in = ingress_.emplace_back();
  const PortConfig& link = egress.config();  // the far end's sending side has the same rate and delay
  in.limits.headroom = pfc_headroom(link.rate, link.delay, config_.largest_frame, Port::kPfcFrameBytes).n;
  reserved_ += in.limits.headroom * config_.classes;
  if (config_.xoff.n != 0) {
    in.limits.xoff = config_.xoff.n;
  } else if (config_.kind == SwitchKind::kInputQueued && config_.buffer.n != 0) {
    const std::uint64_t each = config_.buffer.n / config_.classes;
    in.limits.xoff = each > in.limits.headroom ? each - in.limits.headroom : 1;
  }
  if (counts()) egress.on_departure<&Switch::left>(*this);
  return number;
}

void Switch::arrive(const Transit& t, std::uint32_t ingress) {
  if (t.is_pfc()) [[unlikely]] {
    ports_[ingress]->pause(t.traffic_class, t.kind == Transit::Kind::kPause);
    return;
  }
  const std::uint32_t port = routes_.port_for(t);
  if (port == Routes::kNoPort) [[unlikely]] {
    ++counters_.dropped_no_route;
    if (config_.credits) ports_[ingress]->send_credit(t.traffic_class, t.bytes);
    fabric_.release(t.packet);
    return;
  }
  Port& out = *ports_[port];
  if (out.free_for(t.traffic_class)) {
    out.begin(t);
    if (config_.credits) ports_[ingress]->send_credit(t.traffic_class, t.bytes);
    return;
  }

  Ingress& in = ingress_[ingress];
  if (!admits(t, in, out)) {
    ++counters_.dropped_full;
    return out.drop(t.packet);
  }
  Transit waiting = t;
  if (config_.ecn.kind != EcnConfig::Kind::kNone && t.ecn_capable && marks(out, t)) {
    waiting.congested = true;
    out.count_mark();
  }
  const std::uint8_t k = t.traffic_class;
  if (!counts()) return out.enqueue(waiting, static_cast<std::uint16_t>(ingress));
  used_ += t.bytes;
  in.bytes += t.bytes;
  in.class_bytes[k] += t.bytes;
  counters_.fullest =
      std::max(counters_.fullest, config_.kind == SwitchKind::kInputQueued ? in.bytes : used_);
  out.enqueue(waiting, static_cast<std::uint16_t>(ingress));
  if (config_.pfc && (in.stopped >> k & 1U) == 0 && over(in, k)) {
    in.stopped |= 1U << k;
    ports_[ingress]->send_pfc(k, true);
  }
}

bool Switch::admits(const Transit& t, const Ingress& in, const Port& out) const {
  if (config_.queue.n != 0 && out.queued().n + t.bytes > config_.queue.n) return false;
  if (config_.credits) return in.class_bytes[t.traffic_class] + t.bytes <= share_;
  if (config_.buffer.n == 0) return true;
  if (config_.kind == SwitchKind::kInputQueued) return in.bytes + t.bytes <= config_.buffer.n;
  if (used_ + t.bytes > config_.buffer.n) return false;
  if (config_.pfc) return true;  // the sender is stopped instead
  const std::uint64_t threshold = (config_.buffer.n - used_) * config_.alpha_64 / 64U;
  return out.queued(t.traffic_class).n + t.bytes <= threshold;
}

bool Switch::marks(const Port& out, const Transit& t) {
  const EcnConfig& e = config_.ecn;
  const std::uint64_t length = out.queued(t.traffic_class).n + t.bytes;
  if (length <= e.low) return false;
  if (e.kind == EcnConfig::Kind::kStep || length > e.high) return true;
  return random_.below((e.high - e.low) * 1'000'000U) < (length - e.low) * e.probability;
}

void Switch::left(const Transit& t, std::uint16_t ingress) {
  Ingress& in = ingress_[ingress];
  const std::uint8_t k = t.traffic_class;
  used_ -= t.bytes;
  in.bytes -= t.bytes;
  in.class_bytes[k] -= t.bytes;
  if (config_.credits) return ports_[ingress]->send_credit(k, t.bytes);
  if ((in.stopped >> k & 1U) == 0) return;
  const std::uint64_t resume = resume_limit(config_, pause_limit(config_, in.limits, reserved_, used_));
  if (in.class_bytes[k] > resume) return;
  in.stopped &= ~(1U << k);
  ports_[ingress]->send_pfc(k, false);
}

}  // namespace weft::sim
