// The rules by which an interval meets what a paper states.
//
//   reproduced   the interval lies in the paper's band; or its middle does, and it is narrower than the band
//   compatible   the interval and the band overlap, and neither of the above
//   trend        only the direction holds, for the whole interval
//   open         the interval reaches across a limit, or there are fewer than three seeds
//   refuted      the interval lies outside of the trend; or outside of the band, and reaches across the
//   trend;
//                or a difference is claimed, and the interval rules out one that is worth the name
//
// "Better than" is met by a hair, so an interval around no difference at all would stay open for ever. It is
// settled once it lies within a twentieth of it either way, or within less if the paper's band begins there.
//
// A band with one side ("> 1") has no width: the whole interval must lie in it. An interval that reaches
// beyond both ends of a band says nothing about it, so it is not compatible. Where a trend is stated, what is
// not reproduced is at most open unless the whole interval lies within the trend.
//
// "Always" and "each" are many tests at once, and so is "up to". With forty cells one lies outside of its 95
// % interval by chance. A claim is therefore refuted only by what Holm's correction over all of its cells
// leaves.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lab/experiment.h"
#include "lab/statistics.h"

namespace weft::lab {

enum class Grade : unsigned char { kMissing, kRefuted, kOpen, kTrend, kCompatible, kReproduced };
const char* grade_text(Grade g);

// The part of the probability beyond one end of a 95 % interval.
inline constexpr double kAlpha = 0.025;

// What is known of a number at one point of the grid. `values` holds one value per seed, on the scale on
// which intervals are computed (logarithms, for factors); `estimate` is on the scale of bands.
struct Cell {
  std::string where;
  Estimate estimate;
  std::vector<double> values;
  Grade grade = Grade::kOpen;
};

// The scale on which intervals are computed: `to` leads there and `from` leads back. Both functions rise.
struct Scale {
  As as = As::kValue;
  bool factors = false;  // logarithms
  double to(double v) const;
  double from(double y) const;
};

inline constexpr double kWorthTheName = 0.05;

Grade grade_of(const std::optional<Band>& band, const std::optional<Band>& trend, const Scale& scale,
               const Estimate& e);

// Whether that is because any difference is too small.
bool is_tie(const std::optional<Band>& band, const std::optional<Band>& trend, const Scale& scale,
            const Estimate& e);

// How probable such values are, or ones further out, if the truth is at the rule's limit: small where the
// rule is refuted. The rule is the band, or the trend where there is none. For a tie, the limits are those of
// a difference that is worth the name.
double doubt(const std::optional<Band>& band, const std::optional<Band>& trend, const Scale& scale,
             const Cell& c);

// "Up to": the largest of the cells lies in the band. Reproduced if some cell lies above the band's low end
// for sure (Holm) and none has a mean above its high end; a cell that lies above it for sure leaves the trend
// only.
Grade grade_up_to(const std::optional<Band>& band, const std::optional<Band>& trend, const Scale& scale,
                  const std::vector<Cell>& cells);

}  // namespace weft::lab
