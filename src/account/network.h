// What a network holds and what its buffers and time-outs must cover: the arithmetic of IRN §4.1, as
// functions of the network. Bytes and packets are whole numbers, as in the papers.
#pragma once
#include <cstdint>

#include "core/base/units.h"

namespace weft::account {

// What stands around a packet's payload in RoCEv2 over IPv4, as a capture shows it with its FCS. Extension
// headers come on top of it.
struct Headers {
  std::uint32_t ethernet = 14;
  std::uint32_t ipv4 = 20;
  std::uint32_t udp = 8;
  std::uint32_t bth = 12;
  std::uint32_t icrc = 4;
  std::uint32_t fcs = 4;
  // SRNIC §4.4.1 counts without the FCS, which is Ethernet's and not the packet's.
  constexpr std::uint32_t without_fcs() const { return ethernet + ipv4 + udp + bth + icrc; }
  constexpr std::uint32_t total() const { return without_fcs() + fcs; }
};

constexpr std::uint64_t bytes_in_flight(Rate rate, Duration time) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{rate.bps} * static_cast<std::uint64_t>(time.ps) /
                                    8'000'000'000'000ULL);
}
constexpr Duration round_trip(std::uint32_t hops, Duration delay) { return delay * 2 * hops; }
constexpr std::uint64_t bdp(Rate rate, std::uint32_t hops, Duration delay) {
  return bytes_in_flight(rate, round_trip(hops, delay));
}
// Whole packets of a path MTU, each with its headers.
constexpr std::uint64_t packets_in(std::uint64_t bytes, std::uint32_t mtu, std::uint32_t headers) {
  return bytes / (mtu + headers);
}

// The longest round trip with one congested link: propagation, plus the time in which a switch drains through
// one output when all its buffers are full of packets for it. `inputs` ports hold `buffer` bytes each.
// `inputs` is 1 if all the congested packets came in by one port.
constexpr Duration rto_high(Duration round_trip, std::uint32_t inputs, Bytes buffer, Rate rate) {
  return round_trip + rate.time_for({buffer.n * inputs});
}

// The buffer level at which a port must say X-OFF: the link delivers one round trip's worth of bytes
// afterwards.
constexpr std::uint64_t pfc_threshold(Bytes buffer, Rate rate, Duration delay) {
  return buffer.n - bytes_in_flight(rate, delay * 2);
}

// A three-tier fat-tree of k-port switches.
struct FatTree {
  std::uint32_t k;
  constexpr std::uint32_t pods() const { return k; }
  constexpr std::uint32_t servers() const { return k * k * k / 4; }
  constexpr std::uint32_t switches() const { return k * k + k * k / 4; }  // k per pod, and the core
  constexpr std::uint32_t longest_way() const { return 6; }               // links, between two pods
};

}  // namespace weft::account
