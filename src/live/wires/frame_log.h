// Who is told of every frame that leaves or comes in, one by one: a packet trace (live/capture). The network
// is seen from the host's own plug: a frame is told of as it comes, before what is done to it on purpose, and
// as it leaves, after that.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/base/units.h"
#include "live/wires/wire.h"

namespace weft::live {

class FrameLog {
 public:
  FrameLog() = default;
  virtual ~FrameLog() = default;
  FrameLog(const FrameLog&) = delete;
  FrameLog& operator=(const FrameLog&) = delete;

  // Trains of one frame. `fate` is what is done to it besides ("dropped by --loss"); empty: nothing.
  virtual void received(const RxTrain& frame, Time now, std::string_view fate) = 0;
  // `identification` is that of its IPv4 header.
  virtual void sent(const TxTrain& frame, std::uint16_t identification, Time now, std::string_view fate) = 0;
  // In a forked child: nothing is told any more, because the log is the parent's.
  virtual void abandon(int nowhere) = 0;
  virtual void visit_counters(const Wire::SeeCounter& see) const = 0;
};

}  // namespace weft::live
