// What an undecided claim would take to be decided. It moves no verdict: it tells a claim that lacks seeds
// from one on the edge of its rule.
#pragma once
#include <cstddef>
#include <string>

#include "lab/verdict.h"

namespace weft::lab {

// The fewest seeds that would decide it if further ones differ as those at hand do, and 0 where kManySeeds
// would not.
inline constexpr std::size_t kManySeeds = 30;
std::size_t seeds_that_decide(const Judgement& j);

// One sentence.
std::string needs_text(const Judgement& j);

}  // namespace weft::lab
