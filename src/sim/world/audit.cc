#include "sim/world/audit.h"

namespace weft::sim {
namespace {

using Count = unsigned long long;

struct Dropped {
  std::uint64_t lost = 0;  // by impairments
  std::uint64_t full = 0;
  std::uint64_t no_route = 0;
  std::uint64_t failed = 0;  // on failed links
  std::uint64_t duplicated = 0;
};

Dropped dropped(const Network& network) {
  Dropped d;
  for (const Port& p : network.ports()) {
    d.lost += p.wire_counters().dropped_loss;
    d.failed += p.wire_counters().dropped_failed;
    d.duplicated += p.wire_counters().duplicated;
    d.full += p.counters().dropped_full;
  }
  for (const Switch& s : network.switches()) d.no_route += s.counters().dropped_no_route;
  return d;
}

void conservation(const AuditSubject& a, check::Report& report) {
  const Dropped d = dropped(a.network);
  const EndpointCounters& h = a.hosts;
  BoxNodeCounters b;
  for (const auto& box : a.boxes) {
    const BoxNodeCounters& one = box->counters();
    b.made += one.made;
    b.ended += one.ended + one.corrupt_dropped + one.overflow_dropped;
  }
  const std::uint64_t came = h.packets_sent + d.duplicated + b.made;
  const std::uint64_t went = h.packets_received + h.corrupt_dropped + h.overflow_dropped + d.lost + d.full +
                             d.no_route + d.failed + b.ended;
  if (came != went + a.fabric.packets.in_use())
    report.add(
        a.fabric.timeline.now(), "conservation",
        "%llu packets sent, %llu duplicated and %llu made by boxes, but %llu delivered, %llu ended in boxes, "
        "%llu corrupt, %llu refused by full NICs, "
        "%llu lost, %llu dropped by full queues, %llu on failed links, %llu without a route, %llu under way",
        Count{h.packets_sent}, Count{d.duplicated}, Count{b.made}, Count{h.packets_received}, Count{b.ended},
        Count{h.corrupt_dropped}, Count{h.overflow_dropped}, Count{d.lost}, Count{d.full}, Count{d.failed},
        Count{d.no_route}, Count{a.fabric.packets.in_use()});
  if ((a.switches.pfc || a.switches.credits) && d.full != 0)
    report.add(a.fabric.timeline.now(), "lossless",
               "%llu packets were dropped for want of room in spite of %s", Count{d.full},
               a.switches.pfc ? "PFC" : "credits");
}

void buffers(const AuditSubject& a, bool at_rest, check::Report& report) {
  const Time now = a.fabric.timeline.now();
  const SwitchConfig& c = a.switches;
  for (std::size_t i = 0; i < a.network.switches().size(); ++i) {
    const Switch& s = a.network.switches()[i];
    std::uint64_t queued = 0;
    for (const Port* p : s.ports()) queued += p->queued().n;
    if ((c.pfc || c.credits || c.buffer.n != 0) && s.buffered() != queued)
      report.add(now, "buffer", "switch %zu says that it buffers %llu bytes, its queues hold %llu", i,
                 Count{s.buffered()}, Count{queued});
    if (c.buffer.n != 0 && s.counters().fullest > c.buffer.n)
      report.add(now, "buffer", "switch %zu held %llu bytes in a buffer of %llu", i,
                 Count{s.counters().fullest}, Count{c.buffer.n});
    if (at_rest && queued != 0)
      report.add(now, "at rest", "switch %zu is left with %llu bytes", i, Count{queued});
  }
  for (std::size_t i = 0; i < a.network.ports().size(); ++i) {
    const Port& p = a.network.ports()[i];
    if (c.queue.n != 0 && p.counters().longest_queue > c.queue.n)
      report.add(now, "buffer", "%s queued %llu bytes, its bound is %llu", a.network.port_name(i).c_str(),
                 Count{p.counters().longest_queue}, Count{c.queue.n});
    for (std::uint8_t k = 0; at_rest && k < kClasses; ++k) {
      if (p.credited() && p.credit(k) != p.granted() && a.network.link_up(i / 2))
        report.add(now, "credits", "%s is left with %llu of the %llu bytes of class %u that it was granted",
                   a.network.port_name(i).c_str(), Count{p.credit(k)}, Count{p.granted()}, unsigned{k});
      if (p.paused(k))
        report.add(now, "at rest", "%s is left stopped in class %u", a.network.port_name(i).c_str(),
                   unsigned{k});
    }
  }
}

// The store is never above its bound, and nothing is left of anything in the end.
void boxes(const AuditSubject& a, bool at_rest, check::Report& report) {
  const Time now = a.fabric.timeline.now();
  for (std::size_t i = 0; i < a.boxes.size(); ++i) {
    const wan::Box& b = a.boxes[i]->box();
    b.check_invariants();
    if (b.most_stored() > b.config().store)
      report.add(now, "box", "box %zu kept %llu bytes in a store of %llu", i, Count{b.most_stored().n},
                 Count{b.config().store.n});
    if (at_rest && (b.stored().n != 0 || b.owned() != 0 || b.loss_blocks_in_use() != 0))
      report.add(now, "at rest", "box %zu is left with %llu bytes, %u halves and %u loss blocks", i,
                 Count{b.stored().n}, b.owned(), b.loss_blocks_in_use());
  }
}

}  // namespace

void audit(const AuditSubject& a, bool at_rest, check::Report& report) {
  conservation(a, report);
  buffers(a, at_rest, report);
  boxes(a, at_rest, report);
  const std::size_t packets = a.fabric.packets.in_use();
  const std::size_t payloads = a.fabric.payloads.in_use();
  if (payloads > packets || (at_rest && packets != 0))
    report.add(a.fabric.timeline.now(), "at rest", "%zu packets and %zu payloads are left in their pools",
               packets, payloads);
}

}  // namespace weft::sim
