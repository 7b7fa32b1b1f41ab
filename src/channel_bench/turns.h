// What the turns of a benchmark measured. A row that has nothing in some turn, such as a program that did not
// answer, has a place without a value there, so that ratios are always of one turn.
#pragma once
#include <optional>
#include <vector>

namespace weft::bench {

using Turns = std::vector<std::optional<double>>;

// The middle one; of an even number the mean of the two. 0 of none.
double median(std::vector<double> values);

std::vector<double> values_of(const Turns& turns);
// The median over the turns that have both of one over the other. 0 of none.
double ratio_of(const Turns& of, const Turns& over);

}  // namespace weft::bench
