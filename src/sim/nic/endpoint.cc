#include "sim/nic/endpoint.h"

namespace weft::sim {

struct Endpoint::Counter {
  Endpoint& endpoint;
  const wire::Header& header;

  bool place(const Placement& p) {
    endpoint.counters_.bytes_placed += p.length;
    if (endpoint.observer_ != nullptr) endpoint.observer_->placed(endpoint.host_, p, header, endpoint.now());
    return true;
  }
  bool place_value(const ValuePlacement&) { return true; }
  AtomicResult execute(const AtomicRequest& a) {
    std::uint64_t& word = endpoint.words_[{a.region.v, a.offset}];
    const std::uint64_t old = word;
    if (!a.compare_swap) word += a.swap_or_add;
    if (a.compare_swap && old == a.compare) word = a.swap_or_add;
    return {true, old};
  }
};

void Endpoint::emit(const wire::Burst& burst) {
  const HostId to = host_at(device.path(burst.path).peer);
  for (const wire::TxPacket& t : burst.packets) {
    const PacketRef ref = fabric_.packets.acquire();
    Packet& p = fabric_.packets.at(ref);
    p = Packet{};
    p.rx.header = t.header;
    p.rx.source = address_of(host_);
    p.rx.payload = t.payload;
    p.rx.tos = burst.ecn_capable ? wire::kEct0 : std::uint8_t{0};
    p.frame = frame_bytes(t.header, t.payload, framing_);
    p.destination = to;
    p.flow = burst.qpn.v;
    p.retransmission = t.retransmission;
    ++counters_.packets_sent;
    if (observer_ != nullptr) observer_->sent(host_, to, t, now());
    egress_.send(ref);
  }
}

void Endpoint::deliver(PacketRef ref) {
  const Packet& p = fabric_.packets.at(ref);
  if (p.corrupt) {
    ++counters_.corrupt_dropped;
  } else {
    ++counters_.packets_received;
    if (observer_ != nullptr) observer_->arrived(host_, p.rx, now());
    Counter sink{*this, p.rx.header};
    device.on_packets(now(), {&p.rx, 1}, sink);
  }
  fabric_.release(ref);
}

}  // namespace weft::sim
