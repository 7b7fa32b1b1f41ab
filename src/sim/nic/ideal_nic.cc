#include "sim/nic/ideal_nic.h"

#include <algorithm>

namespace weft::sim {

IdealNic::IdealNic(Exchange& exchange, Fabric& fabric, HostId host, const DeviceConfig& config, Port& egress,
                   PacketMarking marking, NicObserver* observer, SendOrder order, Duration retransmit_delay)
    : Nic(exchange, fabric, host, config, egress, marking, observer),
      order_(order),
      retransmit_delay_(retransmit_delay),
      fetch_actor_(fabric.timeline.add<&IdealNic::on_fetched>(*this, fabric.node_of(host))),
      deadline_actor_(fabric.timeline.add<&IdealNic::on_deadline>(*this, fabric.node_of(host))) {
  egress.on_idle<&IdealNic::on_line_free>(*this);
}

Outcome<void> IdealNic::take(Qpn qpn, const SendWr& wr) {
  if (const auto slot = device().post_send(qpn, wr); !slot) return fail(slot.error());
  return {};
}

void IdealNic::arrive(const Transit& t, std::uint32_t /*link*/) {
  if (t.is_pfc()) [[unlikely]] {
    endpoint_.egress().pause(t.traffic_class, t.kind == Transit::Kind::kPause);
    return pump();
  }
  if (endpoint_.ends_service(t)) return;
  endpoint_.deliver(t);
  pump();
  endpoint_.progressed();
}

void IdealNic::on_line_free(Time) { pump(); }

void IdealNic::on_deadline(Time now) {
  if (now < deadline_asked_) return;  // a wake-up for an earlier deadline has replaced this one
  deadline_asked_ = kNever;
  if (device().next_deadline() <= now) {
    device().on_timer(now);
    pump();
    endpoint_.progressed();
  }
  watch_deadline();
}

void IdealNic::send_control() {
  const Time now = endpoint_.now();
  for (wire::Burst acks = device().poll_control(now); !acks.empty(); acks = device().poll_control(now))
    endpoint_.emit(acks);
}

bool IdealNic::send_data() {
  const Time now = endpoint_.now();
  if (!endpoint_.line_free()) return false;
  const wire::Burst data = retransmit_delay_.ps == 0
                               ? device().poll_transmit(now, {1, device().config().burst_bytes})
                               : next_fetched(now);
  if (data.empty()) return false;
  endpoint_.emit(data);
  return true;
}

// Queue pairs whose lost packet has been fetched go first. A queue pair that is about to repeat a packet
// waits until that packet has been fetched.
wire::Burst IdealNic::next_fetched(Time now) {
  const Budget one{1, device().config().burst_bytes};
  while (!fetches_.empty() && fetches_.front().until <= now) {
    const Qpn qpn = fetches_.front().qpn;
    fetches_.pop_front();
    // Empty when an ACK came meanwhile.
    if (const wire::Burst data = device().transmit(qpn, now, one); !data.empty()) return data;
  }
  for (Qpn qpn = device().pick(now); qpn != kNoQpn; qpn = device().pick(now)) {
    if (!device().next_is_retransmission(qpn)) {
      const wire::Burst data = device().transmit(qpn, now, one);
      if (data.empty()) continue;
      CHECK(!data.packets[0].retransmission);
      return data;
    } else {
      fetches_.push_back({qpn, now + retransmit_delay_});
      endpoint_.fabric().timeline.wake(fetch_actor_, now + retransmit_delay_);
    }
  }
  return {};
}

void IdealNic::on_fetched(Time) {
  pump();
  endpoint_.progressed();
}

void IdealNic::pump() {
  if (order_ == SendOrder::kDataFirst) send_data();
  send_control();
  // In roce an ACK waits for older READ responses; this may have been the last.
  while (send_data()) send_control();
  // A stopped link starts again with the arrival of a frame, and every arrival pumps.
  const bool fetched = !fetches_.empty() && fetches_.front().until <= endpoint_.now();
  if (!endpoint_.line_free() && !endpoint_.stopped() && (fetched || !device().engine().ready_queue.empty()))
    endpoint_.egress().await_idle();
  watch_deadline();
}

void IdealNic::watch_deadline() {
  const Time due = device().next_deadline();
  if (due == kNever || due >= deadline_asked_) return;
  deadline_asked_ = due;
  // A shard, too, drains its wire before it fires timers.
  endpoint_.fabric().timeline.wake_for_timeout(deadline_actor_, std::max(due, endpoint_.now()));
}

}  // namespace weft::sim
