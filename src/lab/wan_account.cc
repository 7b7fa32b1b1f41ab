#include "lab/wan_account.h"

#include "sim/nic/memory.h"
#include "sim/world/nic_design.h"
#include "wan/plan/frame.h"
#include "wan/plan/plan.h"

namespace weft::lab {
namespace {

using wan::Plan;
using wan::Question;
using wan::Way;
using Figures = Result<std::vector<ComputedFigure>>;

// NTT §2.2 and §4.1: 100 Gb/s, path MTU 4096, one queue pair.
Plan over(std::uint64_t km, std::uint64_t message = 4096, std::uint32_t tx_depth = 128) {
  Question q;
  q.distance = kilometres(km);
  q.message = message;
  q.tx_depth = tx_depth;
  return wan::plan(q);
}

double us(Duration d) { return static_cast<double>(d.ps) / 1e6; }
double of(std::uint64_t n) { return static_cast<double>(n); }
double gbps(const Plan& p, Way w) { return p.way(w).goodput_bps / 1e9; }

constexpr ComputedQuantity kQuantities[] = {
    {"ntt-table1", "us", "round trip of 10, 100 and 1000 km",
     []() -> Figures {
       return std::vector<ComputedFigure>{{"10 km", us(over(10).round_trip)},
                                          {"100 km", us(over(100).round_trip)},
                                          {"1000 km", us(over(1000).round_trip)}};
     }},
    {"ntt-qd-formula", "requests", "round trip x rate / frame, rounded down",
     []() -> Figures {
       return std::vector<ComputedFigure>{{"100 km", of(over(100).paper_depth)},
                                          {"bytes of the frame", of(wan::frame_bytes(4096))},
                                          {"10 km", of(over(10).paper_depth)},
                                          {"1000 km", of(over(1000).paper_depth)},
                                          {"100 km, with a WRITE's RETH", of(over(100).paper_depth_reth)},
                                          {"100 km: what fills the line", of(over(100).full_depth)}};
     }},
    {"ntt-qd-limit", "[KiB, ratio, ratio]",
     "a send queue of 16384 requests, and what 1000 km ask for beside it",
     []() -> Figures {
       const Plan p = over(1000);
       const double bytes = of(p.way(Way::kDeep).nic_bytes);
       const auto nic = sim::design_named("cx5-like", "", "");
       if (!nic) return tl::unexpected(nic.error());
       return std::vector<ComputedFigure>{
           {"send queue of 16384", bytes / 1024},
           {"depth that 1000 km need, over 16384", of(p.full_depth) / of(p.way(Way::kDeep).depth)},
           {"send queue, over that of 128 requests", bytes / (128.0 * wan::kWqeBytes)},
           {"part of the memory on the chip of cx5-like", bytes / of(nic->on_chip.n)}};
     }},
    // Not stated, but what the paper's own settings give: why Figures 3, 4 and 6 are as they are.
    {"ntt-fixed-window", "Gb/s", "128 requests of 4096 B over 10, 100 and 1000 km",
     []() -> Figures {
       return std::vector<ComputedFigure>{{"10 km", gbps(over(10), Way::kAtHand)},
                                          {"100 km", gbps(over(100), Way::kAtHand)},
                                          {"1000 km", gbps(over(1000), Way::kAtHand)}};
     }},
    {"ntt-tx-depth", "Gb/s", "2048 requests over 100 km: messages of 256, 512, 4096 and 8192 B",
     []() -> Figures {
       std::vector<ComputedFigure> all;
       for (const std::uint64_t bytes : {256U, 512U, 4096U, 8192U})
         all.push_back({std::to_string(bytes) + " B", gbps(over(100, bytes, 2048), Way::kAtHand)});
       return all;
     }},
};

}  // namespace

std::span<const ComputedQuantity> wan_quantities() { return kQuantities; }

}  // namespace weft::lab
