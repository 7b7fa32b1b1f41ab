#include "sim/nic/services.h"

#include <algorithm>

#include "core/wire/mad.h"
#include "sim/fabric/routing.h"

namespace weft::sim {

Services::Services(Endpoint& endpoint, Port& egress, const cm::CmConfig& manager,
                   const cm::DiscoveryConfig& discovery)
    : endpoint_(endpoint),
      egress_(egress),
      manager_(manager),
      discovery_(discovery),
      deadline_actor_(endpoint.fabric().timeline.add<&Services::on_deadline>(
          *this, endpoint.fabric().node_of(endpoint.host()))) {
  endpoint.serve(this);
}

void Services::take(const wire::Address& from, const wire::Mad& mad) {
  const cm::MadFacts facts{.source = from, .destination = address_of(endpoint_.host())};
  const Time now = endpoint_.now();
  // A message of neither is nobody's.
  if (!manager_.on_mad(now, facts, mad)) static_cast<void>(discovery_.on_mad(now, facts, mad));
  pump();
  endpoint_.progressed();
}

void Services::pump() {
  for (cm::PeerId peer; discovery_.poll_news(peer);) {  // whoever asks looks again by itself
  }
  for (cm::MadOut out; manager_.poll_mad(out) || discovery_.poll_mad(out);) emit(out);
  watch_deadline();
}

void Services::emit(const cm::MadOut& out) {
  Fabric& fabric = endpoint_.fabric();
  const HostId to = host_at(out.facts.destination);
  const PacketRef ref = fabric.packets.acquire();
  Packet& p = fabric.packets.at(ref);
  p = Packet{};
  p.rx.header = wire::mad_packet(psn_);
  psn_ = {(psn_.v + 1) & kPsnMask};
  p.rx.source = out.facts.source;
  p.rx.payload = wire::kMadBytes;
  p.frame = frame_bytes(p.rx.header, p.rx.payload, endpoint_.marking().framing);
  p.destination = to;
  p.flow = flow_hash(endpoint_.host().v, to.v, wire::kGeneralServices.v);
  p.control = true;
  p.traffic_class = endpoint_.marking().control_class;
  p.payload = fabric.payloads.acquire();
  std::copy(out.mad.begin(), out.mad.end(), fabric.payloads.bytes(p.payload).begin());
  endpoint_.said(to, p.rx.header, out.mad);
  egress_.send(ref);
}

void Services::on_deadline(Time now) {
  if (now < deadline_asked_) return;  // a wake-up for an earlier deadline has replaced this one
  deadline_asked_ = kNever;
  if (next_deadline() <= now) {
    manager_.on_timer(now);
    discovery_.on_timer(now);
    pump();
    endpoint_.progressed();
  }
  watch_deadline();
}

void Services::watch_deadline() {
  const Time due = next_deadline();
  if (due == kNever || due >= deadline_asked_) return;
  deadline_asked_ = due;
  endpoint_.fabric().timeline.wake_for_timeout(deadline_actor_, std::max(due, endpoint_.now()));
}

}  // namespace weft::sim
