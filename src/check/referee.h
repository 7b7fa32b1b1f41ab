// All observers of one run behind one face: the world reports each event once, and the referee passes
// it to the observer that judges it.
//
//   Ledger          what was promised             Completions   what is reported to users
//   Delivery        bytes on their way to memory  WireObserver  packets
//   Progress        that anything happens at all
//
// The observers share no code with the transport; they may include base, wire and verbs only, and the
// build holds them to it.
#pragma once
#include <span>

#include "check/completions.h"
#include "check/delivery.h"
#include "check/facts.h"
#include "check/ledger.h"
#include "check/progress.h"
#include "check/report.h"
#include "check/wire_observer.h"

namespace weft::check {

class Referee {
 public:
  // `transit`: see progress.h.
  explicit Referee(Duration transit)
      : ledger_(report_),
        delivery_(ledger_, report_),
        completions_(ledger_, delivery_, report_),
        wire_(report_),
        progress_(transit, report_) {}
  Referee(const Referee&) = delete;
  Referee& operator=(const Referee&) = delete;

  // --- what was set up ---
  void region(HostId host, RegionId id, const Region& region) { ledger_.region(host, id, region); }
  void region_gone(HostId host, RegionId id) { ledger_.region_gone(host, id); }
  void region_faults(HostId host, RegionId id) { ledger_.region_faults(host, id); }
  void shared_receives(HostId host, SrqId id, PdId pd) { ledger_.shared(host, id, pd); }
  void window(HostId host, Key key, PdId pd) { ledger_.window(host, key, pd); }  // of type 2
  void connected(const QpFacts& a, const QpFacts& b);
  void destroyed(End end, Time now) {
    progress_.happened(now);
    ledger_.destroyed(end);
  }
  void forced_error(End end, Time now) {
    progress_.happened(now);
    ledger_.forced_error(end);
  }
  // The queue pair goes into SQD or out of it; SQ_DRAINED has been raised.
  void draining(End end, bool on) { wire_.draining(end, on); }
  void drained(End end, Time now) { wire_.drained(end, now); }
  // A queue pair has just gone to ERR; its user learns it from a later completion.
  void failed(End end, Time now) {
    if (wire_.requester_failed(end, now)) progress_.happened(now);
    ledger_.failed(end);
  }

  // --- what the users did and saw ---
  void posted_send(End end, const SendWr& wr, std::span<const std::uint8_t> inline_bytes, Time now) {
    progress_.happened(now);
    ledger_.posted_send(end, wr, inline_bytes, now);
    wire_.posted(end, wr);
  }
  void posted_recv(End end, const RecvWr& wr, Time now) {
    progress_.happened(now);
    ledger_.posted_recv(end, wr, now);
  }
  void posted_shared(HostId host, SrqId id, const RecvWr& wr, Time now) {
    progress_.happened(now);
    ledger_.posted_shared(host, id, wr, now);
  }
  // The limit event was armed with this limit; the limit event came.
  void limit_armed(HostId host, SrqId id, std::uint32_t limit) { ledger_.limit_armed(host, id, limit); }
  void limit_reached(HostId host, SrqId id, Time now) { ledger_.limit_reached(host, id, now); }
  void completed(HostId host, const Completion& c, Time now);
  void farewell(End end, Time now) { completions_.farewell(end, now); }

  // --- what the network and the devices did ---
  void sent(HostId from, HostId to, const wire::Header& h, std::uint32_t payload, Time now) {
    wire_.sent(from, to, h, payload, now);
  }
  // `marked`: the network has set a congestion mark.
  void arrived(HostId at, const wire::Header& h, Time now, bool marked = false) {
    if (wire_.arrived(at, h, now, marked)) progress_.happened(now);
  }
  void placed(const Placed& p, const wire::Header& h, std::span<const std::uint8_t> bytes, Time now);

  void executed(const Executed& x, Time now) {
    progress_.happened(now);
    delivery_.executed(x, now);
  }

  // Something is awaited at this time; false when it has been awaited for too long.
  bool waiting(Time now) { return progress_.waiting(now); }
  // A finding of the world's own: a pool that is not empty, a transmitter that never stops.
  Report& report() { return report_; }
  const Report& report() const { return report_; }
  const Progress& progress() const { return progress_; }

  // Nothing is under way any more.
  void finish(Time now);

 private:
  Report report_;
  Ledger ledger_;
  Delivery delivery_;
  Completions completions_;
  WireObserver wire_;
  Progress progress_;
};

}  // namespace weft::check
