#include "sim/tcp/host.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "sim/fabric/routing.h"

namespace weft::sim::tcp {

Host::Host(Fabric& fabric, HostId self, Port& egress, Classes classes, Connections& connections,
           Observer& observer)
    : fabric_(fabric),
      self_(self),
      egress_(egress),
      classes_(classes),
      connections_(connections),
      observer_(observer),
      timer_(fabric.timeline.add<&Host::on_timer>(*this, fabric.node_of(self))) {
  egress.on_idle<&Host::on_line_free>(*this);
}

void Host::doorbell(Connection& c) {
  line_up(c);
  pump();
}

void Host::arrive(const Transit& t, std::uint32_t /*link*/) {
  if (t.is_pfc()) [[unlikely]] {
    egress_.pause(t.traffic_class, t.kind == Transit::Kind::kPause);
    return pump();
  }
  deliver(t);
}

void Host::deliver(const Transit& t) {
  const Packet& p = fabric_.packets.at(t.packet);
  const Segment s = p.segment;
  const bool corrupt = p.corrupt;
  fabric_.release(t.packet);
  if (corrupt) {
    ++counters_.corrupt_dropped;
    return;
  }
  ++counters_.packets_received;
  Connection* c = connections_.find(s.socket, s.connection);
  if (c == nullptr) {
    ++counters_.late_dropped;
    return;
  }
  on_segment(*c, s, fabric_.timeline.now());
}

void Host::on_segment(Connection& c, const Segment& s, Time now) {
  observer_.arrived(c, s, now);
  if (!s.acknowledgment) {
    const Receiver::Delivered d = c.receiver.on_data(s, now);
    if (d.from != d.to) observer_.delivered(c, d, now);
    if (c.receiver.ack_due(now)) send_acknowledgment(c);
    watch(c, false);
    return;
  }
  const std::uint64_t before = c.sender.acknowledged();
  c.sender.on_ack(s, now);
  line_up(c);
  pump();
  watch(c, true);
  if (c.sender.acknowledged() != before) observer_.progressed(c, now);
}

void Host::line_up(Connection& c) {
  if (c.in_line || !c.sender.ready()) return;
  c.in_line = true;
  line_.push_back({c.socket, c.number});
}

void Host::pump() {
  while (!line_.empty()) {
    if (!egress_.free_for(classes_.data)) {
      // A stopped link starts again with the arrival of a frame, and every arrival pumps.
      if (!egress_.paused(classes_.data)) egress_.await_idle();
      return;
    }
    const Name name = line_.front();
    line_.pop_front();
    Connection* c = connections_.find(name.socket, name.number);
    if (c == nullptr) continue;
    c->in_line = false;
    if (!c->sender.ready()) continue;
    const Time now = fabric_.timeline.now();
    const Piece piece = c->sender.next(now);
    Segment s;
    s.seq = piece.seq;
    s.length = piece.length;
    observer_.sent(*c, s, piece.cause, now);
    send(*c, s, c->to, classes_.data);
    watch(*c, true);
    line_up(*c);
  }
}

void Host::send_acknowledgment(Connection& c) {
  Segment s;
  c.receiver.acknowledge(s);
  ++counters_.acknowledgments;
  observer_.sent(c, s, Cause::kNew, fabric_.timeline.now());
  send(c, s, c.from, classes_.acknowledgments);
}

void Host::send(Connection& c, const Segment& s, HostId to, std::uint8_t traffic_class) {
  const PacketRef ref = fabric_.packets.acquire();
  Packet& p = fabric_.packets.at(ref);
  p = Packet{};
  std::construct_at(&p.segment, s);
  p.segment.connection = c.number;
  p.segment.socket = c.socket;
  p.frame = frame_bytes(s.length, s.block_count);
  p.destination = to;
  p.flow = flow_hash(self_.v, to.v, c.number);
  p.traffic_class = traffic_class;
  p.control = s.length == 0;
  ++counters_.packets_sent;
  egress_.send(ref);
}

bool Host::later(const Due& a, const Due& b) {
  return std::tie(a.at, a.name.number) > std::tie(b.at, b.name.number);
}

void Host::watch(Connection& c, bool sender) {
  Time& asked = sender ? c.sender_wakes : c.receiver_wakes;
  const Time due = sender ? c.sender.deadline() : c.receiver.deadline();
  if (due == kNever || due >= asked) return;
  asked = due;
  dues_.push_back({due, {c.socket, c.number}, sender});
  std::push_heap(dues_.begin(), dues_.end(), later);
  ask_timer();
}

void Host::ask_timer() {
  if (dues_.empty() || dues_.front().at >= timer_asked_) return;
  timer_asked_ = dues_.front().at;
  fabric_.timeline.wake(timer_, timer_asked_);
}

void Host::on_timer(Time now) {
  if (now < timer_asked_) return;  // a wake-up for an earlier time has replaced this one
  timer_asked_ = kNever;
  while (!dues_.empty() && dues_.front().at <= now) {
    std::pop_heap(dues_.begin(), dues_.end(), later);
    const Due due = dues_.back();
    dues_.pop_back();
    Connection* c = connections_.find(due.name.socket, due.name.number);
    if (c == nullptr) continue;
    Time& asked = due.sender ? c->sender_wakes : c->receiver_wakes;
    if (due.at != asked) continue;  // a wake-up for an earlier time has replaced this one
    asked = kNever;
    if (!due.sender) {
      if (c->receiver.ack_due(now)) send_acknowledgment(*c);
    } else if (c->sender.deadline() <= now) {
      c->sender.on_timer(now);
      line_up(*c);
    }
    watch(*c, due.sender);
  }
  pump();
  ask_timer();
}

}  // namespace weft::sim::tcp
