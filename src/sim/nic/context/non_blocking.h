// csRNA's QPC management module (csRNA §4.3): a cache of contexts whose misses hold up nobody but their own
// queue pair.
//
//   channel 0 --\                                            read                       fetched
//   channel 1 ----> arbiter: FIFO -> request handling -------------> [ memory ] ----------------> pending
//   handling channel 2 --/                      |   |   miss, or not its turn |   |
//                                  hit |   +----------------------> [ pending FIFO, table ] <---------+   |
//                                      v                                                                  v
//                                    grants <-------------------------------------------------------------+
//
// The arbiter takes the oldest request of all channels, so that requests of a queue pair keep their order
// across them. Request handling (Algorithm 1), one request each interval: a queue pair with pending requests
// has one more; a context that is there is granted; otherwise the read begins and the request is pending.
// Pending handling (Algorithm 2), one element each interval: while an answer of the memory waits it pops
// elements until the one that the answer is for, which is granted. Otherwise, as long as some queue pair's
// turn has come without a read of its own (`ready_`, the paper's start_check), it walks through the pending
// elements: whose turn it is is granted, or is read again if its context has been evicted meanwhile.
//
// Latency hiding (csRNA §4.5): with a table of send queue addresses a WQE is read without the context; the
// look-up begins a prefetch on the descriptor unit's channel. A prefetch takes an index while it is under
// way, never waits for one, and is nothing where the context is there or on its way.
#pragma once
#include "sim/nic/context/chip_cache.h"
#include "sim/nic/context/pending_fifo.h"
#include "sim/nic/context/pending_table.h"

namespace weft::sim {

class NonBlockingStore final : public ContextStore {
 public:
  NonBlockingStore(const Design& design, ContextMemory* memory);

  void advance(Time now) override;
  Time next_event() const override { return std::min(request_due(), pending_due()); }
  bool queue_address(Qpn qpn, Time now) override;
  bool holds(Qpn qpn) const override { return cache_.holds(qpn); }
  void check_invariants() const override { cache_.check_invariants(); }

 private:
  struct Incoming {
    Asked asked;
    Time came{};
  };
  struct Arrival {
    Qpn qpn = kNoQpn;
    Time at{};
  };
  struct Element {
    Asked asked;
    bool reading = false;  // dma_posted
    std::uint32_t ticket = 0;
  };
  void accept(const Asked& asked, Time now) override;
  void arrive(Qpn qpn, Time now) override { arrivals_.push({qpn, now}); }
  void let_go(Qpn qpn, bool dirty, Time now) override;
  void drop(Qpn qpn) override { cache_.forget(qpn); }
  Time request_due() const;
  Time pending_due() const;
  void handle_request(Time now);
  void handle_pending(Time now);
  // False: it is not its turn, and it stays pending.
  bool take_turn(Element element, Time now);
  void answer(const Asked& asked, PendingTable::Entry& entry, Time now);
  void end_prefetch(const Asked& asked) { requesters_[asked.channel].take(asked.index); }
  bool is_prefetch(const Asked& a) const { return requesters_[a.channel].at(a.index).prefetch; }

  ChipCache cache_;
  Ring<Incoming> incoming_;
  PendingFifo<Element> pending_;
  PendingTable table_;
  Ring<Arrival> arrivals_;
  std::uint32_t ready_ = 0;  // queue pairs whose next request is not reading
  Time request_free_{};
  Time pending_free_{};
};

}  // namespace weft::sim
