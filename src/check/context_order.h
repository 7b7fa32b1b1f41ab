// Watches a store of contexts from outside: that requests of one queue pair are granted in the order in which
// they were made, each once; that a context in use stays where it is; that what changed reaches the memory
// before it is read again; and that reads of the memory end in the order in which they began (csRNA §3, C2;
// §4.3.4).
//
// It knows of requests, grants and the traffic with the memory, and nothing of caches and tables.
#pragma once
#include <cstdint>
#include <deque>
#include <map>

#include "check/report.h"
#include "core/base/ids.h"
#include "core/base/units.h"

namespace weft::check {

class ContextOrder {
 public:
  // `written_back`: the store writes changed contexts back to memory.
  ContextOrder(Report& report, bool written_back) : report_(report), written_back_(written_back) {}

  // `tag`: what tells requests of one channel apart.
  void asked(Qpn qpn, std::uint32_t channel, std::uint64_t tag);
  void granted(Qpn qpn, std::uint32_t channel, std::uint64_t tag, Time now);
  void released(Qpn qpn, bool dirty, Time now);
  void forgot(Qpn qpn, Time now);
  void read_begun(Qpn qpn, Time now);
  void read_ended(Qpn qpn, Time now);
  void written(Qpn qpn, Time now);
  // Nothing is under way any more, so every request must have been granted.
  void finish(Time now);

 private:
  struct Request {
    std::uint32_t channel = 0;
    std::uint64_t tag = 0;
  };
  struct Context {
    std::deque<Request> waiting;
    std::uint32_t in_use = 0;  // grants
    bool changed = false;      // since it was written
    std::uint32_t reads = 0;   // under way
  };
  // Reports a context that is moved while it is in use.
  void moved(Qpn qpn, const char* how, Time now);

  Report& report_;
  bool written_back_;
  std::map<Qpn, Context> contexts_;
  std::deque<Qpn> reads_;
};

}  // namespace weft::check
