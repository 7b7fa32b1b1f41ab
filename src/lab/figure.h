// A figure as two files: the SVG, and a CSV of its numbers, from which others can draw it anew.
#pragma once
#include <string>

#include "core/base/result.h"
#include "lab/svg.h"

namespace weft::lab {

// Writes `svg`, and the same name with .csv. Each appears whole or not at all.
Result<void> write_figure(const Figure& figure, const std::string& svg);

}  // namespace weft::lab
