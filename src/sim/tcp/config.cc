#include "sim/tcp/config.h"

#include <array>

namespace weft::sim::tcp {
namespace {

constexpr std::array kRows{
    FlavourRow{"sack", Flavour::kSack, "selective acknowledgments; recovery as in RFC 6675"},
    FlavourRow{"newreno", Flavour::kNewReno,
               "cumulative acknowledgments; one loss repaired per round trip, RFC 6582"},
    FlavourRow{"reno", Flavour::kReno, "recovery ends with the first new acknowledgment, RFC 5681"},
};

}  // namespace

std::span<const FlavourRow> flavours() { return kRows; }

}  // namespace weft::sim::tcp
