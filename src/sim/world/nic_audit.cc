#include "sim/world/nic_audit.h"

namespace weft::sim {
namespace {

using Count = unsigned long long;

void dma(const DetailedNic& nic, Time now, const char* what, std::uint64_t counted, std::uint64_t expected,
         check::Report& report) {
  if (counted != expected)
    report.add(now, "DMA", "host %u moved %llu bytes of %s over PCIe, and %llu are accounted for",
               nic.host().v, Count{counted}, what, Count{expected});
}

}  // namespace

void audit_nic(const DetailedNic& nic, Time now, bool at_rest, check::Report& report) {
  const NicCounters c = nic.counters();
  const Design& d = nic.design();
  const struct {
    const char* name;
    const Gauge& gauge;
  } places[] = {{"turns", c.turns_inside},
                {"packets on their way out", c.packets_inside},
                {"arrivals", c.arrivals_inside},
                {"completions", c.completions_inside}};
  for (const auto& [name, gauge] : places) {
    if (gauge.inside() > gauge.entered())
      report.add(now, "Little", "host %u lost count of its %s", nic.host().v, name);
    if (at_rest && !gauge.balanced())
      report.add(now, "Little",
                 "host %u: %llu %s are left inside; %llu item-picoseconds passed, %llu were left with",
                 nic.host().v, Count{gauge.inside()}, name, Count{gauge.area()}, Count{gauge.stayed()});
  }
  if (!at_rest) return;
  dma(nic, now, "payload read", c.dma.of(Dma::kPayloadRead) + c.payload_inline, c.payload_sent, report);
  dma(nic, now, "payload written", c.dma.of(Dma::kPayloadWrite), nic.endpoint().counters().bytes_placed,
      report);
  dma(nic, now, "send requests", c.dma.of(Dma::kSendWqe), c.wqes_fetched * d.wqe.send_bytes, report);
  dma(nic, now, "receives", c.dma.of(Dma::kReceiveWqe), c.receives_fetched * d.wqe.receive_bytes, report);
  dma(nic, now, "completions", c.dma.of(Dma::kCompletion), c.completions * d.wqe.completion_bytes, report);
  dma(nic, now, "events", c.dma.of(Dma::kEvent), 2 * c.events * d.recovery.event_bytes, report);
  const StoreCounters& s = nic.contexts().counters();
  const bool host = d.context.home == Home::kHost;
  dma(nic, now, "contexts read", host ? c.dma.of(Dma::kContextRead) : 0, host ? s.bytes_read : 0, report);
  dma(nic, now, "contexts written", host ? c.dma.of(Dma::kContextWrite) : 0, host ? s.bytes_written : 0,
      report);
  if (c.polled > c.completions)
    report.add(now, "DMA", "host %u polled %llu completions of %llu written", nic.host().v, Count{c.polled},
               Count{c.completions});
}

}  // namespace weft::sim
