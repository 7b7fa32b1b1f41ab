// An experiment: which scenarios are run, what is measured, and by which rule a claim counts as reproduced.
// docs/guide/experiments.md describes the file; experiment_file.cc reads it.
//
// The grid is variants x the points of every axis; each of its cells is run with every seed. A measure is a
// number per seed: a metric of a variant, or how two variants of one point and seed compare. What is said of
// it is its mean over seeds with a 95 % confidence interval.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace weft::lab {

struct Metric {
  std::string name;        // in measures and figures
  std::string text;        // in tables
  std::string expression;  // of the run's record: record/reading.h
  std::string unit;
  bool grows = false;  // with the time that flows take: a run that was cut off gives a lower bound
};

struct Size {
  std::string name;  // quick, decide, full
  std::uint32_t seeds = 0;
  std::vector<std::string> changes;
};

struct Variant {
  std::string name;
  std::string base;  // its own scenario, or empty
  std::vector<std::string> changes;
};

struct Point {
  std::string label;
  std::vector<std::string> changes;  // with those of this size
  std::uint32_t seeds = 0;           // no more than these; 0: as many as the size has
};

struct Axis {
  std::string name;
  std::vector<Point> points;
};

// Numbers from low to high, or on one side of a limit.
struct Band {
  std::string text;
  double low = 0;
  double high = 0;
  bool low_open = false;  // the end itself is outside
  bool high_open = false;

  bool contains(double v) const {
    return (low_open ? v > low : v >= low) && (high_open ? v < high : v <= high);
  }
  bool contains_all(double from, double to) const { return contains(from) && contains(to); }
  bool meets(double from, double to) const {
    return (low_open ? to > low : to >= low) && (high_open ? from < high : from <= high);
  }
};

enum class As : std::uint8_t { kValue, kRatio, kPercentLess, kPercentMore };
// kEach: a finding for every point. kAlways: one finding that says the same of all points. kUpTo: one
// finding, about the largest.
enum class Reduce : std::uint8_t { kEach, kAlways, kUpTo, kMean, kIncreasing, kDecreasing };

inline constexpr std::size_t kSamePoint = static_cast<std::size_t>(-1);

struct Measure {
  std::string account;     // a quantity that is computed, not run; then only the bands below matter
  std::size_t metric = 0;  // of Experiment::metrics
  std::size_t of = 0;      // variants
  std::size_t over = 0;
  As as = As::kValue;
  Reduce reduce = Reduce::kEach;
  std::size_t along = 0;                         // increasing, decreasing: the axis
  std::vector<std::vector<std::size_t>> points;  // for each axis, the points that count
  // For each axis, the point at which `over` is measured; kSamePoint: the point of `of`.
  std::vector<std::size_t> over_points;
  std::optional<Band> reproduced;
  std::optional<Band> trend;
  bool aside = false;  // shown beside the others, and no part of the verdict
};

struct Claim {
  std::string id;
  std::string statement;
  std::string paper;  // its value, as the paper has it
  std::string why;
  std::string caveats;
  std::vector<Measure> measures;
};

// What the paper states of a variant at one point of a plot's axis.
struct PaperPoint {
  std::size_t variant = 0;
  std::size_t metric = 0;
  std::size_t point = 0;
  double value = 0;
};

enum class PlotKind : std::uint8_t { kBars, kLines };

struct Plot {
  std::string name;
  std::string title;
  PlotKind kind = PlotKind::kBars;
  std::vector<std::size_t> metrics;  // a panel each
  std::vector<std::size_t> variants;
  std::size_t along = 0;                         // lines: the axis
  std::vector<std::vector<std::size_t>> points;  // one point of each other axis
  bool logarithmic = false;
  std::optional<std::size_t> over;  // variants are drawn as factors over this one
  std::optional<Band> band;         // what the paper states of them
  std::vector<PaperPoint> paper;    // and its single numbers
};

struct Experiment {
  std::string name;  // the file's
  std::string file;
  std::string title;
  std::vector<std::string> groups;
  std::string base;  // the scenario's path, or what live.h makes of a benchmark; empty if nothing is run
  std::string caveats;
  std::vector<Size> sizes;  // as many as kSizes, or none
  std::vector<Metric> metrics;
  std::vector<std::size_t> shown;  // metrics of the table
  std::vector<Variant> variants;
  std::vector<Axis> axes;
  std::vector<Plot> plots;
  std::vector<Claim> claims;

  const Size& size(std::string_view which) const;
  std::size_t points() const;  // cells per variant
  // How many of `seeds` seeds a cell has at this point.
  std::uint32_t seeds_at(std::size_t point, std::uint32_t seeds) const;
  // Points no longer have fewer of them than others.
  void same_seeds_everywhere();
  // Of all cells.
  std::uint64_t runs(std::uint32_t seeds) const;
};

inline constexpr const char* kSizes[] = {"quick", "decide", "full"};

// The folder holds NAME.toml for each experiment, and families/NAME.toml for what several of them share.
// Points of axes that are not for this size are left out.
Result<Experiment> read_experiment(const std::string& folder, const std::string& name,
                                   const std::string& size);
// Of all files, in the order of their names; the first mistake in any of them is the answer.
Result<std::vector<Experiment>> read_experiments(const std::string& folder, const std::string& size);

// The folder of the experiments that came with this program: the nearest `experiments` or
// `share/weft/experiments` above `program`, a path.
std::string find_experiments(const std::string& program);

// The place of a point on each axis, from the point's number and back; the last axis counts fastest.
std::vector<std::size_t> point_of(const Experiment& e, std::size_t number);
std::size_t number_of(const Experiment& e, const std::vector<std::size_t>& at);
std::string point_text(const Experiment& e, std::size_t number);  // "load=30%, cc=none", or empty

}  // namespace weft::lab
