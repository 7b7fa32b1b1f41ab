// Which of the sockets of an address ours is, as the kernel counts them (steering.h). The kernel moves its
// last socket into the place of one that closes and tells nobody, so a process measures: it sends a probe to
// each place and looks which one arrives here. It does so when it opens, when something of its own was handed
// to it, and when a check stays away, a frame that it sends to its own slot now and then: it goes where data
// go.
#pragma once
#include <cstdint>

#include "live/wires/neighbours.h"
#include "live/wires/wire.h"

namespace weft::live {

class PlaceFinder {
 public:
  // `fd`: the socket; `source`: another one of the address, from which probes leave. Both are the caller's.
  PlaceFinder(int fd, int source, const WireFacts& facts, Neighbours& neighbours);

  void look(Time now);    // now and then
  void handed(Time now);  // another process had what is ours
  bool is_probe(const RxTrain& train) const;
  void arrived(const RxTrain& probe);
  Time next_due() const { return check_at_; }

 private:
  static constexpr std::uint8_t kNoPlace = 0xFF;
  void find();
  void steer();
  void send_probe(std::uint8_t opcode, std::uint8_t index);

  int fd_;
  int source_;
  const WireFacts& facts_;
  Neighbours& neighbours_;
  std::uint32_t round_ = 0;  // of probes; those of former rounds tell nothing
  std::uint8_t place_ = kNoPlace;
  bool looking_ = false;  // probes to every place are on their way
  bool asked_ = false;    // a check is
  bool alone_ = false;    // nobody else was there, and nobody has sent a probe since
  Time check_at_{};       // when to look next; kNever: nobody can have changed anything
  Time found_at_{};       // when the probes of this round left
};

}  // namespace weft::live
