// What concerns several hosts at once is settled between two windows of time (sim/engine/timeline.h), when
// all hosts have come equally far: a flow that ended is counted, its queue pairs are given back, a run that
// is complete stops.
#pragma once

namespace weft::sim {

class Settler {
 public:
  // A flow has ended on some host: the world settles at the end of this window.
  virtual void ended() = 0;

 protected:
  ~Settler() = default;
};

}  // namespace weft::sim
