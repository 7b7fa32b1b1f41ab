// What a detailed NIC counted, for programs to read.
#include "sim/world/nic_record.h"

#include <algorithm>

namespace weft::sim {
namespace {

double ns_each(Duration sum, std::uint64_t n) {
  return n == 0 ? 0 : static_cast<double>(sum.ps) / 1e3 / static_cast<double>(n);
}

double ratio(std::uint64_t of, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(of) / static_cast<double>(all);
}

record::Record stage_record(const StageCounters& s, Duration run) {
  record::Record r;
  r.set("items", s.items).set("waited_ns", ns_each(s.waited, s.items));
  r.set("busy", run.ps == 0 ? 0 : static_cast<double>(s.busy.ps) / static_cast<double>(run.ps));
  return r;
}

}  // namespace

record::Record to_record(const NicCounters& c, Duration run) {
  record::Record r;
  r.set("doorbells", c.doorbells).set("requests", c.requests);
  r.set("turns", c.turns).set("empty_turns", c.empty_turns);
  r.set("wqes_fetched", c.wqes_fetched).set("wqes_used", c.wqes_used);
  r.set("wqes_dropped", c.wqes_fetched - std::min(c.wqes_fetched, c.requests));
  r.set("receives_fetched", c.receives_fetched).set("receives_cached", c.receives_cached);
  r.set("packets_out", c.packets_out)
      .set("frame_bytes", c.frame_bytes)
      .set("control_out", c.control_out)
      .set("packets_in", c.packets_in);
  r.set("overflows", c.overflows).set("reorder_overflows", c.reorder_overflows);
  r.set("slow_packets", c.events);
  r.set("slow_share", ratio(c.events, c.packets_in));
  r.set("completions", c.completions);
  r.set("context_hits", c.context_hits).set("context_misses", c.context_misses);
  r.set("context_ordered", c.context_ordered).set("context_refetched", c.context_refetched);
  r.set("context_hit_rate", ratio(c.context_hits, c.context_hits + c.context_misses));
  r.set("translation_hit_rate", ratio(c.translation_hits, c.translation_hits + c.translation_misses));
  record::Record stalls;  // of each job, on average
  const StallTimes& s = c.stalls;
  const std::uint64_t packets = c.packets_out + c.control_out;
  stalls.set("scheduler_ns", ns_each(s.scheduler, c.turns))
      .set("send_context_ns", ns_each(s.send_context, c.turns));
  stalls.set("send_wqe_ns", ns_each(s.send_wqe, c.turns))
      .set("send_buffer_ns", ns_each(s.send_buffer, c.turns));
  stalls.set("payload_ns", ns_each(s.payload, c.packets_out))
      .set("transmit_ns", ns_each(s.transmit, packets));
  stalls.set("mac_ns", ns_each(s.mac, c.packets_out)).set("receive_ns", ns_each(s.receive, c.packets_in));
  stalls.set("receive_context_ns", ns_each(s.receive_context, c.packets_in));
  stalls.set("receive_wqe_ns", ns_each(s.receive_wqe, c.packets_in));
  stalls.set("software_ns", ns_each(s.software, c.events))
      .set("completion_ns", ns_each(s.completion, c.completions));
  r.set("stalls", std::move(stalls));
  record::Record stages;
  stages.set("doorbell", stage_record(c.doorbell, run)).set("schedule", stage_record(c.schedule, run));
  stages.set("transmit", stage_record(c.transmit, run)).set("receive", stage_record(c.receive, run));
  stages.set("completion", stage_record(c.completion, run)).set("software", stage_record(c.software, run));
  r.set("stages", std::move(stages));
  record::Record dma;
  for (std::size_t i = 0; i < kDmaCount; ++i) dma.set(dma_name(static_cast<Dma>(i)), c.dma.bytes[i]);
  dma.set("overhead_up", c.dma.overhead_up).set("overhead_down", c.dma.overhead_down);
  dma.set("up", c.dma.up).set("down", c.dma.down).set("extra", c.dma.extra());
  const double seconds = static_cast<double>(run.ps) / 1e12;
  dma.set("extra_gbps", seconds == 0 ? 0 : static_cast<double>(c.dma.extra()) * 8 / seconds / 1e9);
  r.set("pcie", std::move(dma));
  r.set("board_bytes", c.board_bytes);
  r.set("most_turns", c.turns_inside.most()).set("most_arrivals", c.arrivals_inside.most());
  return r;
}

}  // namespace weft::sim
