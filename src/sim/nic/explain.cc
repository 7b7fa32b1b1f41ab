#include "sim/nic/explain.h"

#include <algorithm>

#include "sim/fabric/frame.h"
#include "sim/nic/pcie.h"
#include "sim/nic/stage.h"

namespace weft::sim {
namespace {

// What one message needs, worked out once.
class Costs {
 public:
  Costs(const Design& design, const MessageLoad& message) : d(design), load(message), pcie(design.pcie) {
    packets = std::max(1U, (load.bytes + load.mtu - 1) / load.mtu);
    first = std::min(load.bytes, load.mtu);
    frame = frame_of(first);
    ack = frame_of_ack();
  }

  Stage stage(const PipelineDesign& p) const { return {d.cycles(p.interval), d.cycles(p.depth)}; }
  Duration width(std::uint32_t bytes) const {
    return Duration{static_cast<std::int64_t>(1'000'000 /
                                              (std::uint64_t{d.clock_mhz} * d.pipelines.bytes_per_cycle))} *
           static_cast<std::int64_t>(bytes);
  }
  bool reads() const { return load.op == WrOpcode::kRead; }
  bool takes_receive() const { return load.op == WrOpcode::kSend || load.op == WrOpcode::kSendImm; }
  bool inlined() const { return !reads() && load.bytes <= d.wqe.inline_bytes; }
  bool pushed() const { return d.wqe.pushed && load.batch == 1; }
  // Addresses of send queues are on the chip, so that WQEs do not wait for the context.
  bool early() const { return d.context.policy == ContextPolicy::kOnChip || d.context.sq_table != 0; }
  std::uint32_t fetched() const {
    return pushed() ? 0 : std::min({load.batch, d.scheduler.wqes, load.depth});
  }
  // Requests that leave in one turn when the queue is full.
  std::uint32_t in_turn() const {
    const std::uint64_t by_bytes = std::max<std::uint64_t>(1, d.scheduler.burst.n / std::max(load.bytes, 1U));
    return static_cast<std::uint32_t>(std::min<std::uint64_t>({d.scheduler.wqes, load.depth, by_bytes}));
  }
  Duration context_miss() const {
    if (d.context.policy == ContextPolicy::kOnChip) return {};
    if (d.context.home == Home::kBoard) return d.board.latency + d.board.rate.time_for({d.context.bytes});
    return pcie.read_latency(d.context.bytes);
  }
  Duration context() const { return d.cycles(d.context.access.depth); }
  Duration translation() const {
    const std::uint32_t bytes = d.translation.fetch_bytes;
    return d.translation.home == Home::kBoard ? d.board.latency + d.board.rate.time_for({bytes})
                                              : pcie.read_latency(bytes);
  }
  // Of PCIe's direction to the NIC, for contexts and translations.
  Duration tables() const;

  std::uint32_t frame_of(std::uint32_t payload) const {
    wire::Header h;
    h.mode = d.mode;
    h.opcode = takes_receive() ? wire::kSendOnly : reads() ? wire::kReadResponseOnly : wire::kWriteOnly;
    return frame_bytes(h, payload, Framing::kWire);
  }
  std::uint32_t frame_of_ack() const {
    wire::Header h;
    h.mode = d.mode;
    h.opcode = wire::kAcknowledge;
    h.syndrome = wire::kSyndromeAck;
    return frame_bytes(h, 0, Framing::kWire);
  }

  const Design& d;
  const MessageLoad& load;
  Pcie pcie;
  std::uint32_t packets;
  std::uint32_t first;
  std::uint32_t frame;
  std::uint32_t ack;
};

Duration per(Duration d, std::uint64_t n) {
  return {d.ps / static_cast<std::int64_t>(std::max<std::uint64_t>(n, 1))};
}

Duration part(double share, Duration d) {
  return {static_cast<std::int64_t>(share * static_cast<double>(d.ps))};
}

Duration Costs::tables() const {
  Duration sum{};
  if (d.context.home == Home::kHost) sum += part(load.miss, pcie.read_busy(d.context.bytes));
  if (d.translation.home == Home::kHost)
    sum += part(load.untranslated, pcie.read_busy(d.translation.fetch_bytes));
  return sum;
}

// How long the context store is occupied with one message's misses.
Duration store_busy(const Costs& c) {
  const ContextDesign& x = c.d.context;
  const Duration access = c.d.cycles(x.access.interval);
  if (x.policy == ContextPolicy::kOnChip || c.load.miss == 0) return access;
  const std::uint64_t at_once = x.policy == ContextPolicy::kFcfs ? x.misses : x.ooo_capacity;
  return std::max(access, part(c.load.miss, per(c.context_miss(), at_once)));
}

// Bytes of one message in each direction of PCIe at one side, with what their packets carry beside them.
Duration pcie_busy(const Costs& c, std::uint64_t once, std::uint64_t bytes) {
  return (once != 0 ? c.pcie.read_busy(once) : Duration{}) +
         (bytes != 0 ? c.pcie.read_busy(bytes) : Duration{});
}

void sender_stages(const Costs& c, Explanation& e) {
  const Design& d = c.d;
  const MessageLoad& l = c.load;
  const std::uint32_t rung = c.pushed() ? d.wqe.send_bytes : 8;
  const Stage bell = c.stage(d.pipelines.doorbell);
  e.sender.push_back({"doorbell", c.pcie.doorbell_latency(rung) + bell.latency(),
                      per(bell.interval(), l.batch), std::to_string(l.batch) + " requests a doorbell"});
  const Stage schedule = c.stage(d.pipelines.schedule);
  const Duration fetch =
      c.fetched() == 0 ? Duration{} : c.pcie.read_latency(std::uint64_t{c.fetched()} * d.wqe.send_bytes);
  const Duration waits = part(l.miss, c.context_miss());
  Duration turn = c.early() ? std::max(schedule.latency() + fetch, c.context() + waits)
                            : std::max(schedule.latency(), c.context() + waits) + fetch;
  e.sender.push_back({"schedule",
                      c.early() ? schedule.latency() : std::max(schedule.latency(), c.context() + waits),
                      per(schedule.interval(), c.in_turn()),
                      d.scheduler.picks == Picks::kBlind
                          ? "round robin over queue pairs with requests; turns without credit come on top"
                          : "round robin over queue pairs with credit"});
  // A full queue: a turn of as many requests as there may be in one. One queue pair has one turn at a time.
  const Duration full =
      c.pcie.read_latency(std::uint64_t{c.in_turn()} * d.wqe.send_bytes) + schedule.latency();
  const std::uint64_t turns = std::min<std::uint64_t>(d.scheduler.turns, l.queue_pairs);
  e.sender.push_back(
      {"WQE fetch", turn - e.sender.back().latency, per(full, turns * c.in_turn()),
       std::to_string(turns) + " turns at once, " + std::to_string(c.in_turn()) + " requests each"});
  const bool sends = !c.reads();
  if (sends && !c.inlined() && l.bytes != 0) {
    const std::uint64_t at_once =
        std::max<std::uint64_t>(1, d.pcie.reads / ((c.first + d.pcie.request - 1) / d.pcie.request));
    e.sender.push_back({"payload", c.pcie.read_latency(c.first) + part(l.untranslated, c.translation()),
                        per(c.pcie.read_latency(c.first) * c.packets, at_once),
                        std::to_string(at_once) + " packets' reads at once"});
  }
  const Stage tx = c.stage(d.pipelines.transmit);
  const std::uint32_t out = sends ? c.frame : c.frame_of_ack();
  e.sender.push_back({"transmit", tx.latency(c.width(out)),
                      tx.interval(c.width(out)) * (sends ? c.packets : 1),
                      std::to_string(sends ? c.packets : 1) + " packets"});
  e.sender.push_back({"contexts", {}, store_busy(c), "beside the stages"});
  const std::uint64_t payload = sends && !c.inlined() ? l.bytes : 0;
  e.sender.push_back({"PCIe to the NIC",
                      {},
                      pcie_busy(c, d.wqe.send_bytes, payload) + c.tables(),
                      "WQE, payload, contexts, translations"});
  e.sender.push_back(
      {"PCIe to the host", {}, pcie_busy(c, d.wqe.completion_bytes, c.reads() ? l.bytes : 0), "completion"});
}

void receiver_stages(const Costs& c, Explanation& e) {
  const Design& d = c.d;
  const MessageLoad& l = c.load;
  const Stage rx = c.stage(d.pipelines.receive);
  const std::uint32_t in = c.reads() ? c.frame_of_ack() : c.frame;
  e.receiver.push_back({"receive", rx.latency(c.width(in)),
                        rx.interval(c.width(in)) * (c.reads() ? 1 : c.packets),
                        std::to_string(c.reads() ? 1 : c.packets) + " packets"});
  e.receiver.push_back({"contexts", c.context() + part(l.miss, c.context_miss()), store_busy(c), ""});
  if (c.takes_receive()) {
    const bool cached = d.wqe.receive_cache != 0 || d.wqe.shared_receive_cache != 0;
    e.receiver.push_back({"receive WQE", cached ? Duration{} : c.pcie.read_latency(d.wqe.receive_bytes),
                          per(c.pcie.read_latency(d.wqe.receive_bytes), d.pcie.reads),
                          cached ? "on the chip" : "fetched when the packet is here"});
  }
  const Stage done = c.stage(d.pipelines.completion);
  const Duration payload = c.reads() || l.bytes == 0 ? Duration{} : c.pcie.read_busy(c.first);
  if (c.reads()) {
    const Stage schedule = c.stage(d.pipelines.schedule);
    const Stage tx = c.stage(d.pipelines.transmit);
    e.receiver.push_back(
        {"schedule", std::max(schedule.latency(), c.context()), schedule.interval(), "of the answer"});
    e.receiver.push_back({"payload", c.pcie.read_latency(c.first), {}, "of the answer"});
    e.receiver.push_back({"transmit", tx.latency(c.width(c.frame)), tx.interval(c.width(c.frame)) * c.packets,
                          "of the answer"});
    const Duration back = rx.latency(c.width(c.frame)) + c.context() +
                          std::max(done.latency(), c.pcie.read_busy(c.first)) +
                          c.pcie.write_latency(d.wqe.completion_bytes);
    e.receiver.push_back({"requester again", back, {}, "receive, context, payload, completion"});
    return;
  }
  e.receiver.push_back({"payload", payload, {}, "written"});
  if (c.takes_receive()) {
    e.receiver.push_back(
        {"completion",
         std::max(done.latency(), payload) - payload + c.pcie.write_latency(d.wqe.completion_bytes),
         done.interval(), "written behind the payload"});
  }
  e.receiver.push_back({"PCIe to the NIC",
                        {},
                        (c.takes_receive() ? c.pcie.read_busy(d.wqe.receive_bytes) : Duration{}) + c.tables(),
                        "receives, contexts, translations"});
  e.receiver.push_back({"PCIe to the host",
                        {},
                        pcie_busy(c, c.takes_receive() ? d.wqe.completion_bytes : 0, l.bytes),
                        "payload, completion"});
}

}  // namespace

Explanation explain(const Design& design, const MessageLoad& load) {
  const Costs c(design, load);
  Explanation e;
  sender_stages(c, e);
  receiver_stages(c, e);
  const Duration wire = load.link.time_for({c.frame});
  e.link.push_back(
      {"link", wire, load.link.time_for({std::uint64_t{c.frame} * c.packets}), "with headers and gaps"});
  for (const std::vector<StageBound>* list : {&e.sender, &e.link, &e.receiver}) {
    for (const StageBound& s : *list) {
      e.latency += s.latency;
      if (s.busy.ps != 0 && (e.binding == nullptr || s.busy > e.binding->busy)) e.binding = &s;
    }
  }
  e.completion = e.latency;
  if (c.reads()) return e;
  // Without the receiver's payload and completion.
  for (const StageBound& s : e.receiver) {
    if (s.name == "payload" || s.name == "completion") e.completion = e.completion - s.latency;
  }
  e.completion += c.stage(design.pipelines.transmit).latency(c.width(c.ack)) + load.link.time_for({c.ack}) +
                  c.stage(design.pipelines.receive).latency(c.width(c.ack)) + c.context() +
                  c.stage(design.pipelines.completion).latency() +
                  c.pcie.write_latency(design.wqe.completion_bytes);
  return e;
}

Duration round_trip_of(const Design& d, std::uint32_t mtu, bool misses) {
  MessageLoad load;
  load.bytes = load.mtu = mtu;
  const Costs c(d, load);
  const Stage tx = c.stage(d.pipelines.transmit);
  const Stage rx = c.stage(d.pipelines.receive);
  return c.pcie.read_latency(mtu) + tx.latency(c.width(c.frame)) + rx.latency(c.width(c.frame)) +
         c.pcie.read_latency(d.wqe.receive_bytes) + tx.latency(c.width(c.ack)) + rx.latency(c.width(c.ack)) +
         c.context() * 2 + (misses ? c.context_miss() * 2 : Duration{});
}

Duration slowest_in_nic(const Design& d, std::uint64_t bytes, std::uint32_t mtu) {
  MessageLoad load;
  load.bytes = 256;
  load.mtu = mtu;
  load.miss = 2;  // a look-up on the way out, one on the way in
  const Explanation e = explain(d, load);
  const Duration each = e.binding->busy + d.recovery.cpu_time * 2 + d.recovery.nak_delay + e.latency;
  return std::min(each * static_cast<std::int64_t>(std::min<std::uint64_t>(bytes / 256 + 1, 1U << 24U)),
                  seconds(86'400));
}

}  // namespace weft::sim
