#include "sim/nic/endpoint.h"

#include <algorithm>
#include <cstring>

#include "sim/fabric/routing.h"
#include "sim/nic/services.h"

namespace weft::sim {
namespace {

bool is_control(std::uint8_t opcode) {
  return opcode == wire::kAcknowledge || opcode == wire::kReadAcknowledge || opcode == wire::kCnp;
}

bool is_read_response(std::uint8_t opcode) {
  return opcode >= wire::kReadResponseFirst && opcode <= wire::kReadResponseOnly;
}

}  // namespace

struct Endpoint::Counter {
  Endpoint& endpoint;
  const wire::Header& header;
  std::span<const std::uint8_t> payload;  // empty where bytes are only counted

  bool place(const Placement& p) {
    return place(p, payload.empty() ? payload : payload.subspan(p.payload_offset, p.length));
  }
  bool place_value(const ValuePlacement& v) {
    std::uint8_t value[8];
    std::memcpy(value, &v.value, 8);
    const std::span<const std::uint8_t> all(value);
    return place({v.qpn, v.packet, v.value_offset, v.length, v.region, v.offset},
                 endpoint.memory.has(v.region) ? all.subspan(v.value_offset, v.length)
                                               : std::span<const std::uint8_t>());
  }
  AtomicResult execute(const AtomicRequest& a) {
    std::uint64_t word = 0;
    const bool counted = !endpoint.memory.has(a.region);
    if (counted) {
      word = endpoint.words_[{a.region.v, a.offset}];
    } else {
      std::memcpy(&word, endpoint.memory.at(a.region, a.offset, 8).data(), 8);
    }
    const std::uint64_t old = word;
    if (endpoint.observer_ != nullptr) endpoint.observer_->executed(endpoint.host_, a, old, endpoint.now());
    if (!a.compare_swap) word += a.swap_or_add;
    if (a.compare_swap && old == a.compare) word = a.swap_or_add;
    if (counted) {
      endpoint.words_[{a.region.v, a.offset}] = word;
    } else {
      std::memcpy(endpoint.memory.at(a.region, a.offset, 8).data(), &word, 8);
    }
    return {true, old};
  }

 private:
  bool place(const Placement& p, std::span<const std::uint8_t> bytes) {
    endpoint.counters_.bytes_placed += p.length;
    endpoint.last_placement_ = p;
    if (!bytes.empty() && !endpoint.memory.has(p.region)) bytes = {};
    if (endpoint.observer_ != nullptr)
      endpoint.observer_->placed(endpoint.host_, p, header, bytes, endpoint.now());
    if (bytes.empty()) return true;
    // If this does not fit, the observer has reported it already.
    if (!endpoint.memory.holds(p.region, p.offset, p.length)) return false;
    std::copy(bytes.begin(), bytes.end(), endpoint.memory.at(p.region, p.offset, p.length).begin());
    return true;
  }
};

void Endpoint::emit(const wire::Burst& burst) {
  for (const wire::TxPacket& t : burst.packets) launch(make(burst, t));
}

PacketRef Endpoint::make(const wire::Burst& burst, const wire::TxPacket& t) {
  const HostId to = host_at(device.path(burst.path).peer);
  const PacketRef ref = fabric_.packets.acquire();
  Packet& p = fabric_.packets.at(ref);
  p = Packet{};
  p.rx.header = t.header;
  p.rx.source = address_of(host_);
  p.rx.payload = t.payload;
  p.frame = frame_bytes(t.header, t.payload, marking_.framing);
  if (t.payload != 0) p.frame += marking_.extra_header;
  p.destination = to;
  p.flow = flow_hash(host_.v, to.v, burst.qpn.v);
  const bool control = is_control(t.header.opcode);
  if (control && marking_.ack_bytes != 0) p.frame = marking_.ack_bytes;
  p.control = control;
  p.traffic_class = control ? marking_.control_class : marking_.data_class;
  if (burst.ecn_capable) {
    p.ecn_capable = true;
    p.rx.tos = wire::kEct0;
  }
  p.retransmission = t.retransmission;
  const bool moves = !marking_.count_reads || !is_read_response(t.header.opcode);
  if (moves && !memory.empty() && t.segment_count != 0 && held(burst, t)) p.payload = gather(burst, t);
  ++counters_.packets_sent;
  if (observer_ != nullptr) observer_->sent(host_, to, t, now());
  return ref;
}

// Whether all of its memory holds bytes.
bool Endpoint::held(const wire::Burst& burst, const wire::TxPacket& packet) const {
  const auto segments = burst.segments.subspan(packet.first_segment, packet.segment_count);
  return std::all_of(segments.begin(), segments.end(),
                     [this](const wire::Segment& s) { return memory.has(s.region); });
}

PayloadRef Endpoint::gather(const wire::Burst& burst, const wire::TxPacket& packet) {
  const PayloadRef ref = fabric_.payloads.acquire();
  const std::span<std::uint8_t> slot = fabric_.payloads.bytes(ref);
  std::size_t at = 0;
  for (const wire::Segment& s : burst.segments.subspan(packet.first_segment, packet.segment_count)) {
    const std::span<const std::uint8_t> from = memory.at(s.region, s.offset, s.length);
    std::copy(from.begin(), from.end(), slot.begin() + static_cast<std::ptrdiff_t>(at));
    at += s.length;
  }
  CHECK_OP(at, ==, packet.payload);
  return ref;
}

bool Endpoint::ends_service(const Transit& t) {
  const Packet& p = fabric_.packets.at(t.packet);
  if (!wire::carries_mad(p.rx.header, p.rx.payload)) return false;
  ++(p.corrupt ? counters_.corrupt_dropped : counters_.packets_received);
  wire::Mad mad{};
  const bool heard = services_ != nullptr && !p.corrupt && p.payload != kNoPayload;
  if (heard) std::copy_n(fabric_.payloads.bytes(p.payload).begin(), mad.size(), mad.begin());
  const wire::Address from = p.rx.source;
  fabric_.release(t.packet);
  if (heard) services_->take(from, mad);
  return true;
}

void Endpoint::deliver(const Transit& t) {
  Packet& p = fabric_.packets.at(t.packet);
  if (t.congested) p.rx.tos |= wire::kEcnCe;
  if (p.corrupt) {
    ++counters_.corrupt_dropped;
  } else {
    ++counters_.packets_received;
    if (observer_ != nullptr) observer_->arrived(host_, p.rx, now());
    Counter sink{*this, p.rx.header, {}};
    if (p.payload != kNoPayload) sink.payload = fabric_.payloads.bytes(p.payload).first(p.rx.payload);
    device.on_packets(now(), {&p.rx, 1}, sink);
  }
  fabric_.release(t.packet);
}

}  // namespace weft::sim
