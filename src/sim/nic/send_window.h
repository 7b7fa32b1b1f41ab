// The packets in flight, as a NIC keeps them beside its contexts (csRNA §4.4: the requester unit maintains a
// send window). What answers a packet that stands here is taken without the queue pair's context: an ACK
// names its queue pair and a number, and the entry has the rest.
//
//   window    | qp 7: 3 packets | qp 9: 1 packet | ... |   entries in all
//
// A queue pair whose packets find no room does without the window until nothing of it is in flight: its
// answers need its context, as its requests do. So nothing waits for room, and no two NICs for each other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::sim {

class SendWindow {
 public:
  SendWindow(std::uint32_t entries, std::size_t queue_pairs)
      : entries_(entries), held_(entries == 0 ? 0 : queue_pairs) {}

  // So many packets of this queue pair are in flight now.
  void in_flight(std::size_t queue_pair, std::uint32_t packets) {
    if (entries_ == 0) return;
    Held& h = held_[queue_pair];
    if (packets == 0) h.outside = false;
    used_ -= h.packets;
    h.outside = h.outside || used_ + packets > entries_;
    h.packets = h.outside ? 0 : packets;
    used_ += h.packets;
  }
  // What answers its packets is taken from here.
  bool has(std::size_t queue_pair) const { return entries_ != 0 && !held_[queue_pair].outside; }
  std::uint32_t used() const { return used_; }

 private:
  struct Held {
    std::uint32_t packets = 0;
    bool outside = false;
  };
  std::uint32_t entries_;
  std::uint32_t used_ = 0;
  std::vector<Held> held_;
};

}  // namespace weft::sim
