// Figures as SVG, drawn here: no program is needed to make them, and no network to look at them.
//
// One column of a fixed width, so that text stays legible on a phone and several stand side by side on a
// desk. Colours follow the reader's dark or light setting; what they say, shapes say too.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lab/grade.h"
#include "lab/statistics.h"

namespace weft::lab {

inline constexpr double kSvgWidth = 440;

// One row of a drawing: a number, its interval, and what the paper states of it.
struct Strip {
  std::string label;
  std::string value;  // "2.21 [2.08, 2.33]x"
  Estimate ours;
  std::optional<Band> band;
  std::optional<Band> trend;
  Grade grade = Grade::kOpen;
  std::string grade_word;  // for readers who cannot see the shape
};

// A number that the paper states, drawn beside ours.
struct PaperMark {
  std::size_t tick = 0;
  double value = 0;
};

struct Series {
  std::string name;
  std::vector<Estimate> values;  // one for each tick; an Estimate whose `values` is 0 is not drawn
  std::vector<PaperMark> paper = {};
};

struct Panel {
  std::string title;
  std::string y_label;
  std::vector<Series> series;
  std::optional<Band> band;  // shaded: what the paper states
};

struct Figure {
  std::string title;
  std::string x_label;
  std::vector<std::string> ticks;  // places along x, the same in every panel; with one, values are bars
  std::vector<Panel> panels;
  bool logarithmic = false;
};

enum class Svg : unsigned char { kFile, kInline };  // a file brings its own colours, a page has them

// Draws strips of one unit; factors are on a logarithmic scale.
std::string draw_strips(const std::string& title, const std::vector<Strip>& strips, bool factors, Svg where);
// Draws strip `which` alone and without its words, on the scale that all strips share: for a row of a table.
std::string draw_strip(const std::vector<Strip>& strips, std::size_t which, bool factors, double width);
std::string draw_figure(const Figure& figure, Svg where);

// The colours of both settings, for pages that inline figures.
const char* svg_style();
std::string escape_xml(const std::string& text);

}  // namespace weft::lab
