// What lost packets cost over a long line, where each repair takes a round trip. Every packet is lost
// independently with the same probability.
//
// Three ways of repair:
//
//   go-back-N   everything sent behind the loss goes again: one window of packets for each loss
//   selective   only what was lost goes again; losses of one round are repaired together in the next
//   parity      `repair` packets for each `data` packets, any `data` of which give all the others back: a
//               group with more losses than that is repaired as in selective
//
// Models, not simulations: no packet of a round trip is repaired before the next round trip, time-outs for
// the last packets of a message are left out, and a loss on the way back costs nothing. SDR-RDMA (arXiv
// 2505.05366) compares selective repeat and erasure codes with the same expectation.
#pragma once
#include <cstdint>

namespace weft::wan {

struct Parity {
  std::uint32_t data = 16;
  std::uint32_t repair = 2;
  // Packets on the line for one of data.
  constexpr double overhead() const { return static_cast<double>(data + repair) / data; }
};

// The part of the line's time in which go-back-N sends something new, with `window` packets on their way.
double go_back_n_share(double window, double loss);

// How many rounds it takes until each of `packets` has arrived, on average: 1 without losses.
double rounds(double packets, double loss);
// The number of rounds that suffices with this probability.
double rounds_within(double packets, double loss, double probability);

// A group of data and repair packets in which more are lost than its repair packets give back.
double group_fails(const Parity& parity, double loss);
// As rounds, with parity in the first of them.
double rounds(double packets, double loss, const Parity& parity);
double rounds_within(double packets, double loss, const Parity& parity, double probability);

}  // namespace weft::wan
