#include "sim/box/box_node.h"

#include <algorithm>

#include "core/wire/mad.h"
#include "sim/fabric/routing.h"
#include "sim/nic/host_address.h"

namespace weft::sim {
namespace {

std::pair<std::uint64_t, std::uint32_t> ends_of(HostId from, HostId to, Qpn qpn) {
  return {std::uint64_t{from.v} << 32U | to.v, qpn.v};
}

}  // namespace

BoxNode::BoxNode(Fabric& fabric, Network& network, std::uint32_t index, const wan::BoxConfig& config,
                 const BoxCost& cost, const PacketMarking& marking)
    : fabric_(fabric),
      box_(config),
      cost_(cost),
      marking_(marking),
      ports_{&network.box_port(index, BoxSide::kSite), &network.box_port(index, BoxSide::kLine)} {
  const NodeId node = fabric.node_of({network.topology().box_node(index)});
  taken_actor_ = fabric.timeline.add<&BoxNode::on_taken>(*this, node);
  deadline_actor_ = fabric.timeline.add<&BoxNode::on_deadline>(*this, node);
  for (Port* p : ports_) p->on_idle<&BoxNode::on_port>(*this);
  network.attach_box<&BoxNode::arrive>(index, *this);
}

void BoxNode::arrive(const Transit& t, std::uint32_t side) {
  if (t.is_pfc()) {
    ports_[side]->pause(t.traffic_class, t.kind == Transit::Kind::kPause);
    return pump();
  }
  Packet& p = fabric_.packets.at(t.packet);
  if (t.congested) p.rx.tos |= wire::kEcnCe;
  if (p.corrupt) {
    ++counters_.corrupt_dropped;
    return fabric_.release(t.packet);
  }
  if (cost_.frame_time.ps == 0 && cost_.rate.bps == 0) {
    take(t.packet, side);
    return pump();
  }
  Waiting& w = waiting_[side];
  if (w.frames.size() >= cost_.waiting) {
    ++counters_.overflow_dropped;
    return fabric_.release(t.packet);
  }
  w.frames.push_back(t.packet);
  if (!w.asked) begin(side);
}

// The core begins with the frame that waits longest, and has taken it when it wakes up.
void BoxNode::begin(std::uint32_t side) {
  Waiting& w = waiting_[side];
  const Packet& p = fabric_.packets.at(w.frames.front());
  const Duration bytes = cost_.rate.bps == 0 ? Duration{} : cost_.rate.time_for({p.frame});
  w.free_at = std::max(w.free_at, fabric_.timeline.now()) + std::max(cost_.frame_time, bytes);
  w.asked = true;
  fabric_.timeline.wake(taken_actor_, w.free_at);
}

void BoxNode::on_taken(Time now) {
  for (std::uint32_t side = 0; side < 2; ++side) {
    Waiting& w = waiting_[side];
    if (!w.asked || w.free_at > now) continue;
    w.asked = false;
    const PacketRef ref = w.frames.front();
    w.frames.pop_front();
    take(ref, side);
    if (!w.frames.empty()) begin(side);
  }
  pump();
}

void BoxNode::take(PacketRef ref, std::uint32_t side) {
  const Packet& p = fabric_.packets.at(ref);
  const wire::Header& h = p.rx.header;
  wan::Frame f;
  f.header = h;
  f.source = p.rx.source;
  f.destination = address_of(p.destination);
  f.payload = p.rx.payload;
  f.tos = p.rx.tos;
  f.body = {ref.v};
  const bool mad = wire::carries_mad(h, f.payload) && p.payload != kNoPayload;
  if (side == static_cast<std::uint32_t>(BoxSide::kLine) && h.opcode == wire::kAcknowledge)
    flow_of_[ends_of(host_at(f.source), p.destination, h.dest_qp)] = p.flow;
  box_.on_frame(fabric_.timeline.now(), side == 0 ? wan::Side::kSite : wan::Side::kLine, f,
                mad ? std::span<const std::uint8_t>(fabric_.payloads.bytes(p.payload)).first(f.payload)
                    : std::span<const std::uint8_t>());
}

void BoxNode::on_port(Time) { pump(); }

void BoxNode::on_deadline(Time now) {
  if (now < deadline_asked_) return;
  deadline_asked_ = kNever;
  if (box_.next_deadline() <= now) box_.on_timer(now);
  pump();
}

void BoxNode::pump() {
  const Time now = fabric_.timeline.now();
  for (const std::uint32_t side : {1U, 0U}) {
    Port& port = *ports_[side];
    const wan::Side to = side == 0 ? wan::Side::kSite : wan::Side::kLine;
    const auto free = [&] {
      return port.free_for(marking_.data_class) && port.free_for(marking_.control_class);
    };
    wan::Out out;
    while (free() && box_.poll(now, to, out)) send(side, out);
    // A port that PFC has stopped goes on with the arrival of a frame, and every arrival pumps.
    if (port.free_at() > now) port.await_idle();
  }
  for (wan::BodyId body; box_.poll_released(body);) {
    ++counters_.ended;
    fabric_.release({body.v});
  }
  const Time due = box_.next_deadline();
  if (due == kNever || due >= deadline_asked_) return;
  deadline_asked_ = due;
  fabric_.timeline.wake_for_timeout(deadline_actor_, std::max(due, now));
}

void BoxNode::send(std::uint32_t side, const wan::Out& out) {
  PacketRef ref;
  if (out.frame.body == wan::kNoBody) {
    ref = make(out);
    ++counters_.made;
  } else if (out.last) {
    ref = {out.frame.body.v};
  } else {
    ref = copy({out.frame.body.v});
    ++counters_.made;
  }
  ports_[side]->send(ref);
}

PacketRef BoxNode::copy(PacketRef from) {
  const PacketRef ref = fabric_.packets.acquire();
  const Packet& original = fabric_.packets.at(from);
  fabric_.packets.at(ref) = original;
  if (original.payload != kNoPayload) fabric_.payloads.share(original.payload);
  return ref;
}

// An acknowledgement, or a message to the partner.
PacketRef BoxNode::make(const wan::Out& out) {
  const wan::Frame& f = out.frame;
  const PacketRef ref = fabric_.packets.acquire();
  Packet& p = fabric_.packets.at(ref);
  p = Packet{};
  const HostId from = host_at(f.source);
  p.rx.header = f.header;
  p.rx.source = f.source;
  p.rx.payload = f.payload;
  p.rx.tos = f.tos;
  p.destination = host_at(f.destination);
  p.frame = frame_bytes(f.header, f.payload, marking_.framing);
  if (out.mad == nullptr && marking_.ack_bytes != 0) p.frame = marking_.ack_bytes;
  p.control = true;
  p.traffic_class = marking_.control_class;
  const auto known = flow_of_.find(ends_of(from, p.destination, f.header.dest_qp));
  p.flow = known != flow_of_.end() ? known->second : flow_hash(from.v, p.destination.v, f.header.dest_qp.v);
  if (out.mad != nullptr) {
    p.payload = fabric_.payloads.acquire();
    std::copy(out.mad->begin(), out.mad->end(), fabric_.payloads.bytes(p.payload).begin());
  }
  return ref;
}

}  // namespace weft::sim
