// A NIC that costs nothing but the link's rate: every look-up is free, every decision is taken at the
// last moment. For studies of the fabric and of the transport.
//
//   arrival  -> Device at once, then ACKs and data leave
//   data     one packet at a time, and only when the link is idle, so that the scheduler picks by the newest
//            state, as hardware does that reads WQEs late
//   ACKs     at once, into the link's queue: they are small and nothing paces them
//   pause    a link that PFC has stopped counts as busy
//   timer    one wake-up at the Device's next deadline
//   repairs  at once; or, with `retransmit_delay`, that long after the packet was found lost (IRN §6.3): new
//            packets are prefetched, a lost one has to cross PCIe again. Its queue pair sends nothing
//            meanwhile, and looks ahead by one packet: the worst case.
//
// The soft NIC lets one burst of data go ahead of the ACKs, because an ACK then rides in its train; with
// `kDataFirst` this one does too, so that the two can be compared packet by packet.
#pragma once
#include <deque>

#include "sim/nic/nic.h"

namespace weft::sim {

enum class SendOrder : std::uint8_t { kControlFirst, kDataFirst };

class IdealNic final : public Nic {
 public:
  IdealNic(Exchange& exchange, Fabric& fabric, HostId host, const DeviceConfig& config, Port& egress,
           PacketMarking marking, NicObserver* observer, SendOrder order = SendOrder::kControlFirst,
           Duration retransmit_delay = {});

  void attach(Network& network) override { network.attach<&IdealNic::arrive>(host().v, *this); }
  void arrive(const Transit& t, std::uint32_t /*link*/);

  void ring() override { pump(); }
  std::uint32_t poll(CqId cq, std::span<Completion> out) override { return device().poll_cq(cq, out); }

 protected:
  Outcome<void> take(Qpn qpn, const SendWr& wr) override;

 private:
  void on_line_free(Time now);
  void on_deadline(Time now);
  void pump();
  void send_control();
  bool send_data();  // one packet, if the line is idle and there is one
  wire::Burst next_fetched(Time now);
  void on_fetched(Time now);
  void watch_deadline();

  struct Fetch {
    Qpn qpn;
    Time until;
  };
  SendOrder order_;
  Duration retransmit_delay_;
  std::deque<Fetch> fetches_;  // picked queue pairs, in order of time
  ActorId fetch_actor_;
  ActorId deadline_actor_;
  Time deadline_asked_ = kNever;  // the earliest pending wake-up for a deadline
};

}  // namespace weft::sim
