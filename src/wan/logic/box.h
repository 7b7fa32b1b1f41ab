// One of a pair of boxes on the path between two sites (NTT §5): it acknowledges its site's WRITEs and SENDs
// early, and together with its partner makes good on that (docs/ARCHITECTURE.md, "A pair of boxes").
//
// Sans-IO: frames and time go in, frames come out. How a world drives it, in any order and as often as it
// likes:
//
//   on_frame(now, side, frame, mad)   a frame that came from the site or from the line; `mad` is the payload
//                                     of a management datagram or of a parity frame, empty for everything
//                                     else
//   poll(now, side, out)              one frame to send towards that side; false: nothing now
//   poll_released(body)               a body that the box needs no longer
//   poll_restore(r)                   packets that parity gives back: asked after every frame of the line, or
//                                     after several, before poll_released. The world computes them, and
//                                     gives each one whose ICRC is right to on_restored
//   on_timer(now), next_deadline()    time-outs
//
// A body belongs to the box from on_frame until it comes back: once, either with an Out that says `last`, or
// from poll_released. In between, Outs may name it as often as the box repeats it.
//
// What is not understood passes: a box that knows nothing yet, has no partner, or meets a mode, a service or
// an operation that it does not handle, is a wire.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "wan/logic/config.h"
#include "wan/logic/frame.h"

namespace weft::wan {

struct BoxState;

class Box {
 public:
  explicit Box(const BoxConfig& config);
  ~Box();
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;

  void on_frame(Time now, Side from, const Frame& frame, std::span<const std::uint8_t> mad = {});
  bool poll(Time now, Side to, Out& out);
  bool poll_released(BodyId& body);
  bool poll_restore(Restore& out);
  // A packet of the group that poll_restore gave last, with a body of its own.
  void on_restored(Time now, const Frame& frame);
  void on_timer(Time now);
  Time next_deadline() const;
  // It is about to be switched off. Nothing new is taken, what is kept is delivered, and the partner does the
  // same; all of that is over when owned() is 0. It stays a wire for as long as it is driven.
  void leave(Time now);

  // --- what tests, tools and worlds may look at ---
  const BoxConfig& config() const;
  const BoxCounters& counters() const;
  Bytes stored() const;         // now
  Bytes most_stored() const;    // ever
  std::uint32_t owned() const;  // halves that this box answers for, and halves that it delivers
  std::uint32_t loss_blocks_in_use() const;
  bool partner_is_there(Time now) const;
  ParityTerms partner_parity() const;  // as the partner said
  void check_invariants() const;

 private:
  std::unique_ptr<BoxState> state_;
};

}  // namespace weft::wan
