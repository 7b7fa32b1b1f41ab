// Another wire, made worse: loss, duplication, delay, reordering and corruption by a seed. What
// happens to a frame is decided by core/impair, as in the simulator; here frames are held and let go.
// It is also where frames are looked at one by one, so a log of them (frame_log.h) is told here.
//
// It acts on reception, frame by frame, after the kernel's receive offload has been split. The sending
// side has to break trains apart, so that 1 % loss also costs the segmentation offload; it is a line of its
// own (line_out.h), for whoever asks for it. Otherwise each direction is impaired by the process that
// receives it, and both directions of a connection between two impaired processes suffer alike.
//
// Frames that pass at once stay where they are, in trains as long as the decisions allow; only held
// frames are copied, into slots of a fixed number: when all are taken the frame is dropped and
// counted, as by a full queue. Held frames leave in the order of their due times, ties in arrival
// order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/prng.h"
#include "core/impair/impair.h"
#include "live/wires/frame_log.h"
#include "live/wires/held_frames.h"
#include "live/wires/line_out.h"
#include "live/wires/wire_around.h"

namespace weft::live {

#define WEFT_IMPAIRED_COUNTERS(X)                                          \
  X(frames, "received packets that the impairments judged")                \
  X(dropped, "lost by --loss")                                             \
  X(duplicated, "delivered twice by --duplicate")                          \
  X(held, "held back by --delay, --jitter, --reorder or as a second copy") \
  X(corrupted, "with a bit flipped by --corrupt")                          \
  X(marked, "marked for congestion by --mark")                             \
  X(overflow, "lost because too many were held back already")

struct ImpairedCounters {
#define WEFT_X(name, text) std::uint64_t name = 0;
  WEFT_IMPAIRED_COUNTERS(WEFT_X)
#undef WEFT_X
};

class ImpairedWire final : public WireAround<Wire> {
 public:
  static constexpr std::size_t kSlots = HeldFrames<RxTrain>::kSlots;
  static constexpr std::size_t kSlotBytes = HeldFrames<RxTrain>::kSlotBytes;

  // `config` and `seed` are of what is received.
  ImpairedWire(std::unique_ptr<Wire> inner, const impair::ImpairConfig& config, std::uint64_t seed,
               const LineConfig& line = {}, std::unique_ptr<FrameLog> log = nullptr);
  ~ImpairedWire() override;

  std::span<const RxTrain> receive(Time now) override;
  SendStatus send(const TxTrain& train) override;
  void abandon(int nowhere) override;
  void let_go() override;
  Time next_due() const override {
    const Time due = std::min(held_.next_due(), inner_->next_due());
    return line_ != nullptr ? std::min(due, line_->next_due()) : due;
  }
  void visit_counters(const SeeCounter& see) const override;
  const ImpairedCounters& counters() const { return counters_; }

 private:
  void impair(const RxTrain& train, Time now);
  void log(const TxTrain& train);
  void pass(const RxTrain& frame);
  void hold(const RxTrain& frame, Time due);
  void release(Time now);
  void flip(const RxTrain& frame, std::uint32_t draw);

  std::unique_ptr<FrameLog> log_;
  impair::Impairment impairment_;
  const bool impairs_;             // what is received
  std::unique_ptr<LineOut> line_;  // if what is sent is impaired, or paced
  HeldFrames<RxTrain> held_;
  std::vector<std::uint32_t> lent_;  // slots whose frames the reader still holds
  std::vector<RxTrain> out_;
  ImpairedCounters counters_;
};

}  // namespace weft::live
