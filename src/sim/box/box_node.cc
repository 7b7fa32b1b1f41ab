#include "sim/box/box_node.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/wire/mad.h"
#include "sim/fabric/routing.h"
#include "sim/nic/host_address.h"
#include "wan/logic/parity_frame.h"

namespace weft::sim {
namespace {

std::pair<std::uint64_t, std::uint32_t> ends_of(HostId from, HostId to, Qpn qpn) {
  return {std::uint64_t{from.v} << 32U | to.v, qpn.v};
}

// A packet as parity codes it; the sender's and receiver's bytes of it must be the same, so it has no gaps.
struct Coded {
  wire::Header header;
  wire::Address source;
  std::uint32_t destination;
  std::uint32_t payload;
  std::uint32_t frame;
  std::uint32_t flow;
  std::uint32_t real_bytes;  // of the payload that follow
  std::uint8_t traffic_class;
  std::uint8_t ecn_capable;
  std::uint8_t control;
  std::uint8_t sum;  // over all of it, instead of an ICRC
};
static_assert(std::has_unique_object_representations_v<Coded>);

std::uint8_t sum_of(const Coded& c) {
  Coded without = c;
  without.sum = 0;
  std::uint32_t sum = 0x811C'9DC5;
  const auto* p = reinterpret_cast<const std::uint8_t*>(&without);
  for (std::size_t i = 0; i < sizeof without; ++i) sum = (sum ^ p[i]) * 0x0100'0193U;
  return static_cast<std::uint8_t>(sum >> 24U ^ sum);
}

constexpr std::uint32_t kLongestBlock = sizeof(Coded) + 4096;
static_assert(kLongestBlock + wan::kMostParityHeader <= PayloadStore::kSlotBytes);

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
  if (!config.parity.there()) return;
  encoder_ = std::make_unique<wan::Encoder>(config.parity.repair, kLongestBlock);
  decoder_ = std::make_unique<wan::Decoder>(PayloadStore::kSlotBytes);
  block_.resize(kLongestBlock);
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
  const bool parity = wan::is_parity(h) && p.payload != kNoPayload;
  const bool mad = wire::carries_mad(h, f.payload) && p.payload != kNoPayload;
  if (side == static_cast<std::uint32_t>(BoxSide::kLine) && h.opcode == wire::kAcknowledge)
    flow_of_[ends_of(host_at(f.source), p.destination, h.dest_qp)] = p.flow;
  box_.on_frame(fabric_.timeline.now(), side == 0 ? wan::Side::kSite : wan::Side::kLine, f,
                mad      ? std::span<const std::uint8_t>(fabric_.payloads.bytes(p.payload)).first(f.payload)
                : parity ? std::span<const std::uint8_t>(fabric_.payloads.bytes(p.payload))
                         : std::span<const std::uint8_t>());
  if (decoder_) restore(fabric_.timeline.now());
}

// Returns its length.
std::uint32_t BoxNode::block_of(const Packet& p) {
  Coded c{p.rx.header,
          p.rx.source,
          p.destination.v,
          p.rx.payload,
          p.frame,
          p.flow,
          p.payload == kNoPayload ? 0 : p.rx.payload,
          p.traffic_class,
          p.ecn_capable,
          p.control,
          0};
  c.sum = sum_of(c);
  std::memcpy(block_.data(), &c, sizeof c);
  if (c.real_bytes != 0)
    std::memcpy(block_.data() + sizeof c, fabric_.payloads.bytes(p.payload).data(), c.real_bytes);
  return static_cast<std::uint32_t>(sizeof c + c.real_bytes);
}

void BoxNode::restore(Time now) {
  for (wan::Restore r; box_.poll_restore(r);) {
    const Packet& parity = fabric_.packets.at({r.row[0].body.v});
    (void)wan::compute(
        r, *decoder_,
        [&](wan::BodyId b) {
          return std::span<const std::uint8_t>(block_).first(block_of(fabric_.packets.at({b.v})));
        },
        [&](const wan::Restore::Row& row) {
          const Packet& p = fabric_.packets.at({row.body.v});
          return std::span<const std::uint8_t>(fabric_.payloads.bytes(p.payload)).subspan(r.header_bytes);
        },
        [&](std::span<const std::uint8_t> block) { put(now, block, parity); });
  }
}

void BoxNode::put(Time now, std::span<const std::uint8_t> block, const Packet& parity) {
  Coded c;
  std::memcpy(&c, block.data(), sizeof c);
  if (c.sum != sum_of(c) || c.real_bytes > block.size() - sizeof c) return;
  const PacketRef ref = fabric_.packets.acquire();
  Packet& p = fabric_.packets.at(ref);
  p = Packet{};
  p.rx.header = c.header;
  p.rx.source = c.source;
  p.rx.payload = c.payload;
  p.rx.tos = parity.rx.tos;
  p.destination = {c.destination};
  p.frame = c.frame;
  p.flow = c.flow;
  p.traffic_class = c.traffic_class;
  p.ecn_capable = c.ecn_capable != 0;
  p.control = c.control != 0;
  if (c.real_bytes != 0) {
    p.payload = fabric_.payloads.acquire();
    std::memcpy(fabric_.payloads.bytes(p.payload).data(), block.data() + sizeof c, c.real_bytes);
  }
  ++counters_.made;
  wan::Frame f;
  f.header = c.header;
  f.source = c.source;
  f.destination = address_of(p.destination);
  f.payload = c.payload;
  f.tos = p.rx.tos;
  f.body = {ref.v};
  box_.on_restored(now, f);
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
  if (out.member != wan::Out::kNoMember) {
    if (out.member == 0) encoder_->begin();
    encoder_->add(out.member, std::span(block_).first(block_of(fabric_.packets.at({out.frame.body.v}))));
  }
  if (out.frame.body == wan::kNoBody) {
    ref = make(out);
    ++counters_.made;
  } else if (out.last) {
    ref = {out.frame.body.v};
  } else {
    ref = copy({out.frame.body.v});
    ++counters_.made;
  }
  if (side == 0 && wan::is_parity(out.frame.header)) {  // no endpoint knows that opcode
    ++counters_.ended;
    return fabric_.release(ref);
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

// An acknowledgement, a message to the partner, or parity.
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
  if (out.mad == nullptr && out.parity.empty() && marking_.ack_bytes != 0) p.frame = marking_.ack_bytes;
  p.control = true;
  p.traffic_class = marking_.control_class;
  const auto known = flow_of_.find(ends_of(from, p.destination, f.header.dest_qp));
  p.flow = known != flow_of_.end() ? known->second : flow_hash(from.v, p.destination.v, f.header.dest_qp.v);
  if (!out.parity.empty()) {
    p.control = false;
    p.traffic_class = marking_.data_class;
    p.payload = fabric_.payloads.acquire();
    const std::span<std::uint8_t> bytes = fabric_.payloads.bytes(p.payload);
    const auto coded = encoder_->row(out.row);
    std::copy(out.parity.begin(), out.parity.end(), bytes.begin());
    std::copy(coded.begin(), coded.end(), bytes.begin() + static_cast<std::ptrdiff_t>(out.parity.size()));
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(out.parity.size() + coded.size()), bytes.end(),
              std::uint8_t{0});
  }
  if (out.mad != nullptr) {
    p.payload = fabric_.payloads.acquire();
    std::copy(out.mad->begin(), out.mad->end(), fabric_.payloads.bytes(p.payload).begin());
  }
  return ref;
}

}  // namespace weft::sim
