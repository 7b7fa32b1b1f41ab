#include "lab/nic_account.h"

#include <algorithm>
#include <cstdint>
#include <deque>

#include "account/srnic.h"
#include "sim/nic/context/store.h"
#include "sim/nic/memory.h"
#include "sim/world/nic_design.h"

namespace weft::lab {
namespace {

using sim::Design;
using sim::memory_of;
using sim::MemoryAccount;
using sim::Place;
using Figures = Result<std::vector<ComputedFigure>>;

constexpr std::uint64_t kQps = 10'000;       // SRNIC §3.2: "10K"
constexpr std::uint64_t kMost = 128 * 1024;  // csRNA §5.2, Table 1: "128K"
constexpr double kMega = 1e6;
constexpr double kKibi = 1024;
constexpr double kMebi = kKibi * 1024;
constexpr double kGibi = kMebi * 1024;

struct Counted {
  Design design;
  MemoryAccount memory;
  double chip(const char* part, double unit) const { return static_cast<double>(memory.bytes(part)) / unit; }
  double host(const char* part, double unit) const {
    return static_cast<double>(memory.bytes(part, Place::kHost)) / unit;
  }
};

Result<Counted> count(const char* name, std::uint64_t queue_pairs, const char* changes = "") {
  auto design = sim::design_named(name, "", changes);
  if (!design) return tl::unexpected(design.error());
  auto memory = memory_of(*design, queue_pairs);
  if (!memory) return tl::unexpected(memory.error());
  return Counted{std::move(*design), std::move(*memory)};
}

// What connections need on the chip (csRNA §5.2, Table 1: "used by connection information").
double of_connections(const Counted& c) {
  double bytes = 0;
  for (const char* part : {"contexts", "context cache", "SQ address table", "index FIFOs", "pending FIFO",
                           "pending record table"})
    bytes += c.chip(part, 1);
  return bytes;
}

// A memory of contexts that answers when it is told to.
struct SlowMemory final : sim::ContextMemory {
  void read(Qpn qpn, Bytes, Time) override { reads.push_back(qpn); }
  void write(Qpn, Bytes, Time) override {}
  std::deque<Qpn> reads;
};

// csRNA §3, Figure 2: the place of QP6, whose context is not on the chip, among the answers to QP6, QP5, QP4.
double place_of_the_miss(const Design& design) {
  constexpr auto kChannel = sim::StoreChannel::kRequester;
  SlowMemory memory;
  const auto store = sim::make_store(design, &memory);
  Time now{};
  std::vector<Qpn> answered;
  const auto run = [&](std::initializer_list<std::uint32_t> asked) {
    for (const std::uint32_t q : asked) store->request({Qpn{q}, kChannel, 0}, now);
    for (int step = 0; step < 8; ++step) {
      now = now + microseconds(1);
      store->advance(now);
      for (sim::ContextGrant g; store->next_grant(now, g); store->release(g.qpn, false, now))
        answered.push_back(g.qpn);
      for (; step != 0 && !memory.reads.empty(); memory.reads.pop_front())
        store->fetched(memory.reads.front(), now);
    }
  };
  run({5, 4});
  answered.clear();
  run({6, 5, 4});
  return static_cast<double>(std::find(answered.begin(), answered.end(), Qpn{6}) - answered.begin()) + 1;
}

// Before and after SRNIC's optimisations: a row of its Table 1.
Figures row(std::initializer_list<const char*> parts, double unit, const char* after_part) {
  const auto before = count("conceptual", kQps);
  if (!before) return tl::unexpected(before.error());
  const auto after = count("srnic", kQps);
  if (!after) return tl::unexpected(after.error());
  double sum = 0;
  for (const char* part : parts) sum += before->chip(part, unit);
  return std::vector<ComputedFigure>{{"on the chip, before", sum}, {"after", after->chip(after_part, unit)}};
}

constexpr ComputedQuantity kQuantities[] = {
    {"srnic-eq1-maxqp", "queue pairs",
     "contexts that the memory of cx5-like would hold, if all of it held contexts",
     []() -> Figures {
       const auto nic = count("cx5-like", 1);
       if (!nic) return tl::unexpected(nic.error());
       const double n = static_cast<double>(
           account::srnic::most_queue_pairs(nic->design.on_chip.n, nic->design.context.bytes));
       return std::vector<ComputedFigure>{{"queue pairs", n},
                                          {"times its cache", n / nic->design.context.cache}};
     }},
    {"srnic-tab1-recvbuf", "MiB", "the receiving buffer of 10000 queue pairs, and of 20000",
     []() -> Figures {
       const auto few = count("srnic", kQps);
       if (!few) return tl::unexpected(few.error());
       const auto many = count("srnic", 2 * kQps, "context.most=20000, on_chip=8MiB");
       if (!many) return tl::unexpected(many.error());
       return std::vector<ComputedFigure>{{"10000", few->chip("receiving buffer", kMebi)},
                                          {"20000", many->chip("receiving buffer", kMebi)}};
     }},
    {"srnic-tab1-qpc", "MiB", "contexts of 10000 queue pairs",
     [] { return row({"contexts"}, kMebi, "contexts"); }},
    {"srnic-tab1-mtt", "MiB", "translations of 4 GiB, and the cache that is left of them",
     [] { return row({"MTT"}, kMebi, "MTT cache"); }},
    {"srnic-tab1-wqe", "MiB", "WQE caches of 10000 queue pairs",
     []() -> Figures {
       auto both = row({"send WQE cache", "receive WQE cache"}, kMebi, "send WQE cache");
       const auto one = row({"send WQE cache"}, kMebi, "receive WQE cache");
       if (!both) return both;
       if (!one) return one;
       return std::vector<ComputedFigure>{{"send", (*one)[0].value},
                                          {"both", (*both)[0].value},
                                          {"after", (*both)[1].value + (*one)[1].value}};
     }},
    {"srnic-tab1-bitmap", "MiB", "bitmaps of 10000 queue pairs",
     [] { return row({"bitmaps"}, kMebi, "bitmaps"); }},
    {"srnic-tab1-reorder", "GiB", "reordering buffers of 10000 queue pairs",
     [] { return row({"reordering buffers"}, kGibi, "reordering buffers"); }},
    {"srnic-tab1-ort", "[KiB, MiB, MiB]",
     "outstanding requests: one queue pair, 10000, and with larger headers",
     []() -> Figures {
       const auto one = count("conceptual", 1);
       if (!one) return tl::unexpected(one.error());
       const auto all = row({"outstanding requests"}, kMebi, "outstanding requests");
       if (!all) return all;
       return std::vector<ComputedFigure>{{"each", one->chip("outstanding requests", kKibi)},
                                          {"all", (*all)[0].value},
                                          {"after", (*all)[1].value}};
     }},
    {"srnic-tab1-total", "MiB", "what Table 1 leaves on the chip, with contexts that are not aligned",
     []() -> Figures {
       const auto after = count("srnic", kQps, "context.stride=210");
       if (!after) return tl::unexpected(after.error());
       const auto before = count("conceptual", kQps);
       if (!before) return tl::unexpected(before.error());
       double rest = 0;
       for (const char* part : {"receiving buffer", "contexts", "MTT", "send WQE cache", "receive WQE cache",
                                "bitmaps", "outstanding requests"})
         rest += before->chip(part, kMebi);
       return std::vector<ComputedFigure>{
           {"after", after->chip("receiving buffer", kMebi) + after->chip("contexts", kMebi) +
                         after->chip("MTT cache", kMebi)},
           {"before, without the reordering buffers", rest}};
     }},
    {"srnic-tab2-resources", "MiB",
     "the prototype's memory: contexts, MTT cache, receiving buffer, scheduler, and their sum",
     []() -> Figures {
       const auto nic = count("srnic", kQps);
       if (!nic) return tl::unexpected(nic.error());
       std::vector<ComputedFigure> all;
       double sum = 0;
       for (const char* part : {"contexts", "MTT cache", "receiving buffer", "SQ scheduler"}) {
         all.push_back({part, nic->chip(part, kMebi)});
         sum += all.back().value;
       }
       all.push_back({"sum", sum});
       // "Each memory depth should be a power of 2" (footnote 5) would make it more than Table 2 says.
       all.push_back({"contexts in a depth of 16384", 16384.0 * nic->design.context.bytes / kMebi});
       all.push_back({"transmit buffer, which Table 2 does not count", nic->chip("transmit buffer", kMebi)});
       return all;
     }},
    {"srnic-mem-scaling", "ratio",
     "memory of twice the queue pairs over that of 10000: contexts, and all the rest",
     []() -> Figures {
       const auto one = count("srnic", kQps);
       const auto two = count("srnic", 2 * kQps, "context.most=20000, on_chip=8MiB");
       if (!one) return tl::unexpected(one.error());
       if (!two) return tl::unexpected(two.error());
       const auto rest = [](const Counted& c) {
         return static_cast<double>(c.memory.total(Place::kChip)) - c.chip("contexts", 1);
       };
       return std::vector<ComputedFigure>{{"contexts", two->chip("contexts", 1) / one->chip("contexts", 1)},
                                          {"the rest", rest(*two) / rest(*one)}};
     }},
    {"srnic-schedq", "KiB", "the schedule queue of 10000 send queues, where nothing more is provisioned",
     []() -> Figures {
       const auto nic = count("srnic", kQps, "scheduler.memory=0");
       if (!nic) return tl::unexpected(nic.error());
       return std::vector<ComputedFigure>{{"queue", nic->chip("SQ scheduler", kKibi)}};
     }},
    {"srnic-norm-scal", "ratio", "queue pairs that perform per MiB on the chip: srnic over cx5-like",
     []() -> Figures {
       const auto srnic = count("srnic", kQps);
       const auto cx = count("cx5-like", 1);
       if (!srnic) return tl::unexpected(srnic.error());
       if (!cx) return tl::unexpected(cx.error());
       const double counted = srnic->chip("contexts", kMebi) + srnic->chip("MTT cache", kMebi) +
                              srnic->chip("receiving buffer", kMebi) + srnic->chip("SQ scheduler", kMebi);
       const double ours = account::srnic::connections_per_mib(static_cast<double>(kQps), counted);
       const double theirs = account::srnic::connections_per_mib(
           cx->design.context.cache, static_cast<double>(cx->design.on_chip.n) / kMebi);
       return std::vector<ComputedFigure>{{"ratio", ours / theirs}};
     }},

    {"csrna-qpc-4gb", "GiB", "contexts of 2^24 queue pairs",
     []() -> Figures {
       const auto nic = count("csrna-fcfs", 1U << 24U, "context.most=16777216");
       if (!nic) return tl::unexpected(nic.error());
       return std::vector<ComputedFigure>{{"contexts", nic->host("contexts", kGibi)}};
     }},
    {"csrna-formula2", "bytes",
     "what one more unit of out-of-order capacity takes, with the fields that the paper names",
     []() -> Figures {
       const auto nic = count("csrna-nb", kQps);
       if (!nic) return tl::unexpected(nic.error());
       const sim::ContextDesign& c = nic->design.context;
       const double sram = nic->chip("waiting SRAM", 1) / c.ooo_capacity;
       return std::vector<ComputedFigure>{
           {"printed", static_cast<double>(bits_per_capacity(c, true)) / 8},
           {"with tickets that keep the order", static_cast<double>(bits_per_capacity(c, false)) / 8},
           {"waiting SRAM beside it", sram},
           {"part of a context", static_cast<double>(bits_per_capacity(c, true)) / 8 / c.bytes}};
     }},
    {"csrna-ooo16-mem", "KiB", "out-of-order capacity of 16, with the fields that the paper names",
     []() -> Figures {
       const auto nic = count("csrna-nb", kQps);
       if (!nic) return tl::unexpected(nic.error());
       const double units = nic->design.context.ooo_capacity;
       return std::vector<ComputedFigure>{
           {"printed", units * static_cast<double>(bits_per_capacity(nic->design.context, true)) / 8 / kKibi},
           {"40 bytes each", units * 40 / kKibi},
           {"with tickets", nic->chip("index FIFOs", kKibi) + nic->chip("pending FIFO", kKibi) +
                                nic->chip("pending record table", kKibi)}};
     }},
    {"csrna-sqtable", "MiB", "SQ addresses of 128K queue pairs",
     []() -> Figures {
       const auto nic = count("csrna-lathiding", kMost);
       if (!nic) return tl::unexpected(nic.error());
       return std::vector<ComputedFigure>{{"table", nic->chip("SQ address table", kMebi)}};
     }},
    {"csrna-table1-csrna", "MB", "connection information on the chip of csrna-lathiding, 128K queue pairs",
     []() -> Figures {
       const auto nic = count("csrna-lathiding", kMost);
       if (!nic) return tl::unexpected(nic.error());
       return std::vector<ComputedFigure>{
           {"K = 1000", of_connections(*nic) / kMega},
           {"MiB", of_connections(*nic) / kMebi},
           {"MB with the waiting SRAM", (of_connections(*nic) + nic->chip("waiting SRAM", 1)) / kMega}};
     }},
    {"csrna-table1-others", "[KiB, MiB, MiB]",
     "connection information on the chip of ernic, srnic and cx5-like",
     []() -> Figures {
       const auto ernic = count("ernic", 127);
       const auto srnic = count("srnic", kQps);
       const auto cx = count("cx5-like", kMost);
       if (!ernic) return tl::unexpected(ernic.error());
       if (!srnic) return tl::unexpected(srnic.error());
       if (!cx) return tl::unexpected(cx.error());
       return std::vector<ComputedFigure>{
           {"ernic, 127", of_connections(*ernic) / kKibi},
           {"srnic, 10K", of_connections(*srnic) / kMebi},
           {"cx5-like, 128K: its whole memory", static_cast<double>(cx->design.on_chip.n) / kMebi},
           {"cx5-like: its contexts", of_connections(*cx) / kMebi},
           {"10K contexts of csRNA's size, MB", kQps * 256 / kMega}};
     }},
    {"csrna-hol-example", "place", "QP6 among the answers to QP6, which misses, QP5 and QP4, which hit",
     []() -> Figures {
       std::vector<ComputedFigure> all;
       for (const char* name : {"csrna-fcfs", "csrna-nb"}) {
         const auto design = sim::design_named(name, "", "");
         if (!design) return tl::unexpected(design.error());
         all.push_back({name, place_of_the_miss(*design)});
       }
       return all;
     }},
    {"csrna-pf-size", "elements", "the pending FIFO, for each unit of capacity, and how many can be in it",
     []() -> Figures {
       const auto nic = count("csrna-nb", kQps);
       if (!nic) return tl::unexpected(nic.error());
       const sim::ContextDesign& c = nic->design.context;
       const double elements = nic->chip("pending FIFO", 1) * 8 / pending_bits(c, false).element;
       return std::vector<ComputedFigure>{{"elements", elements / c.ooo_capacity},
                                          {"requests of all channels", 1.0 * c.channels}};
     }},
    {"csrna-prt-size", "entries", "the pending record table, for each unit of capacity",
     []() -> Figures {
       const auto nic = count("csrna-nb", kQps);
       if (!nic) return tl::unexpected(nic.error());
       const sim::ContextDesign& c = nic->design.context;
       const double entries = nic->chip("pending record table", 1) * 8 / pending_bits(c, false).entry;
       return std::vector<ComputedFigure>{{"entries", entries / c.ooo_capacity}};
     }},
};

}  // namespace

std::span<const ComputedQuantity> nic_quantities() { return kQuantities; }

}  // namespace weft::lab
