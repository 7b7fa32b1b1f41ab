// The world of the live target: two hosts, the network between them, and whoever else is on it.
//
// What a host sends lies on its wire; carry() lets the input decide what becomes of the oldest train, forge()
// makes one up from what was seen. Both give it to the other host by one of its doors: as a wire of the test
// shows it, by UDP, or through shared memory (live_doors.h; host 0 alone).
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "live/engine/sizing.h"
#include "tests/fuzz/live_connections.h"
#include "tests/fuzz/live_frames.h"
#include "tests/fuzz/live_host.h"
#include "tests/fuzz/live_system.h"

namespace weft::fuzz {

inline constexpr std::uint16_t kPort = 4791;
inline constexpr wire::Address kGroup = wire::Address::v4(239, 1, 2, 3);
inline constexpr std::uint32_t kFirstPsn = 0xFFFFF0;  // it wraps soon

inline wire::Address plain_v6(std::uint8_t n) {
  wire::Address a;
  a.bytes[0] = 0xFD;
  a.bytes[15] = n;
  return a;
}

// Any of them; the first is the most likely one.
template <class T>
T any_of(const std::vector<T>& all, Input& in, T none) {
  return all.empty() ? none : all[in.u8() % all.size()];
}

struct World {
  explicit World(Input& in, Doors* all_doors)
      : v6(in.below(8) == 1),
        mode(static_cast<wire::Mode>(in.below(wire::kModeCount))),
        doors(in.below(4) == 1 && !v6 ? all_doors : nullptr),
        options(options_of(in)),
        counts(in.flag()),
        hosts{std::make_unique<Host>(shape(1, Doors::kSlot), clock, doors),
              std::make_unique<Host>(shape(2, 9), clock, nullptr)} {
    for (std::size_t i = 0; i < 2; ++i) parties[i] = std::make_unique<Party>(*hosts[i]);
  }
  ~World() {
    if (doors != nullptr) doors->end_input();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Host& host(std::size_t i) { return *hosts[i & 1U]; }
  std::size_t index(const Host& h) const { return &h == hosts[0].get() ? 0 : 1; }
  Host& other(const Host& h) { return host(index(h) ^ 1U); }
  wire::Address address(const Host& h) const { return v6 ? h.wire->facts().own.second : h.address(); }
  Time now() const { return clock.now(); }
  void wait_until(Time t) {
    if (t > now()) virtual_ns += (t - now()).ns() + 1;
  }

  const bool v6;
  const wire::Mode mode;
  Doors* const doors;
  const live::Options options;
  const bool counts;  // frames of a train are numbered
  live::Clock clock;
  std::array<std::unique_ptr<Party>, 2> parties;  // outlive the hosts, which tell them
  std::array<std::unique_ptr<Host>, 2> hosts;
  std::vector<std::pair<std::size_t, Bytes>> seen;                // frames, and by whom they were sent
  std::map<std::pair<std::size_t, std::uint32_t>, WirePsn> psns;  // of the last one to a host's queue pair

 private:
  live::Options options_of(Input& in) const {
    live::Options o;
    o.mode = mode;
    o.icrc = in.below(8) != 1;
    o.strict_write_order = in.below(4) == 1;
    return o;
  }
  Shape shape(std::uint8_t n, std::uint8_t slot) const {
    Shape s;
    s.options = options;
    s.facts.own.first = plain(n);
    if (v6) s.facts.own.second = plain_v6(n);
    s.facts.port = kPort;
    s.facts.slot = slot;
    s.facts.mtu = 9000;
    s.facts.max_frames = 16;
    s.facts.identification_counts = counts;
    s.facts.receive_buffer = 256U << 10U;
    DeviceConfig& c = s.device;
    c = live::size_device(s.facts, n);
    c.max_qp = 16;
    c.qpn_bits = 4;
    c.qpn_base = std::uint32_t{slot} << 16U;
    c.max_cq = 2;
    c.max_mr = 16;
    c.max_pd = 2;
    c.max_srq = 1;
    c.max_path = 8;
    c.max_ah = 8;
    c.max_ring = 16;
    c.control_ring = 64;
    c.window_packets = 64;
    c.bdp_cap = 64;
    c.loss_blocks = 8;
    return s;
  }
};

}  // namespace weft::fuzz
