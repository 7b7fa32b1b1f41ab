#include "lab/xrdma_account.h"

#include "channel/message.h"

namespace weft::lab {
namespace {

using Figures = Result<std::vector<ComputedFigure>>;

// Receives of a channel beside those of its window: docs/protocol/channel.md#acknowledgements.
constexpr double kBeside = 8;

// Threads of a block server and of a chunk server, block servers, depth, message size.
struct Mesh {
  double n, m, servers, depth;
  double size;
  double connections() const { return n * m * servers; }
  double formula() const { return connections() * depth * size; }
  // What contexts keep posted for it: blocks of whole cache lines with a descriptor and room for a head.
  double kept() const {
    const double bytes = channel::kFrameAt + size + channel::Head::kBytes;
    const double block = static_cast<double>((static_cast<std::uint64_t>(bytes) + 63) / 64 * 64);
    return connections() * (depth + kBeside) * block;
  }
};

constexpr ComputedQuantity kQuantities[] = {
    {"xrdma-mem-formula", "[GiB, GiB, ratio]",
     "a full mesh of 8 x 8 threads, 100 block servers, depth 32, 4 KiB",
     []() -> Figures {
       constexpr double kGibi = 1024.0 * 1024 * 1024;
       const Mesh small{8, 8, 100, 32, 4096};
       const Mesh large{8, 8, 100, 32, channel::kLeastFrame};
       return std::vector<ComputedFigure>{{"N x M x block servers x depth x size", small.formula() / kGibi},
                                          {"what contexts keep posted", small.kept() / kGibi},
                                          {"that over the product", small.kept() / small.formula()},
                                          {"large mode over small mode", large.kept() / small.kept()}};
     }},
    {"xrdma-api-count", "[structures, calls]", "what a program of the C interface sees of Table I",
     []() -> Figures {
       return std::vector<ComputedFigure>{{"structures", static_cast<double>(kStructures.size())},
                                          {"calls of Table I", static_cast<double>(kTableOne.size())}};
     }},
};

}  // namespace

std::span<const ComputedQuantity> xrdma_quantities() { return kQuantities; }

}  // namespace weft::lab
