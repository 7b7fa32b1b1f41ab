// Two Devices whose packets a test carries by hand: it decides what comes late, what is lost, and what the
// two ends believe of each other meanwhile.
#pragma once
#include "core/transport/two_devices.h"

namespace weft {

using Frames = std::vector<Side::Frame>;

struct Hand : TwoDevices {
  using TwoDevices::TwoDevices;

  // Everything that this side wants to send now.
  Frames from(Side& s) {
    Frames out;
    for (;;) {
      wire::Burst burst = s.device.poll_control(now);
      if (burst.empty()) burst = s.device.poll_transmit(now, {});
      if (burst.empty()) return out;
      s.collect(burst, out);
    }
  }
  void to(Side& s, const Frames& frames) {
    for (const Side::Frame& f : frames) {
      Side::Copier sink{s, &f.payload};
      s.device.on_packets(now, {&f.packet, 1}, sink);
    }
  }
  // The same, after as many of its time-outs as it takes; nothing if it waits for none.
  Frames from_in_time(Side& s) {
    Frames out = from(s);
    while (out.empty() && s.device.next_deadline() != kNever) {
      now = s.device.next_deadline();
      s.device.on_timer(now);
      out = from(s);
    }
    return out;
  }
  // Back and forth and through time until nothing moves; what comes from b is lost while `mute` says so.
  template <class Mute>
  void play(Mute mute, Duration limit = milliseconds(2000)) {
    const Time end = now.after(limit);
    for (int turns = 0; turns < 10'000; ++turns) {
      now = now.after(microseconds(1));
      const Frames x = from(a);
      to(b, x);
      const Frames y = from(b);
      if (!mute()) to(a, y);
      if (!x.empty() || !y.empty()) continue;
      const Time next = std::min(a.device.next_deadline(), b.device.next_deadline());
      if (next > end) return;
      now = std::max(now, next);
      a.device.on_timer(now);
      b.device.on_timer(now);
    }
  }
  void play() {
    play([] { return false; });
  }
};

inline std::vector<WcStatus> statuses(Side& s) {
  std::vector<WcStatus> out;
  for (const Completion& c : s.completions()) out.push_back(c.status);
  return out;
}
using Statuses = std::vector<WcStatus>;

inline Frames only(const Frames& all, std::uint8_t opcode) {
  Frames out;
  for (const Side::Frame& f : all) {
    if (f.packet.header.opcode == opcode) out.push_back(f);
  }
  return out;
}

}  // namespace weft
