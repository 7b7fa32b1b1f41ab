#include "lab/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/axis.h"
#include "lab/number.h"

namespace weft::lab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMargin = 12;
constexpr double kStripHeight = 15;
constexpr double kRowHeight = 42;
constexpr double kValueWidth = 132;
constexpr std::size_t kLabelLetters = 60;
constexpr std::size_t kColours = 6;

const char* grade_class(Grade g) {
  switch (g) {
    case Grade::kReproduced:
      return "good";
    case Grade::kCompatible:
      return "near";
    case Grade::kTrend:
      return "side";
    case Grade::kRefuted:
      return "bad";
    default:
      return "open";
  }
}

// A shape for each grade: disc, ring, triangle, diamond, cross.
std::string grade_mark(Grade g, double x, double y) {
  const char* c = grade_class(g);
  switch (g) {
    case Grade::kReproduced:
      return fmt::format("<circle class='{}' cx='{:.1f}' cy='{:.1f}' r='5'/>", c, x, y);
    case Grade::kCompatible:
      return fmt::format("<circle class='{} ring' cx='{:.1f}' cy='{:.1f}' r='4.5'/>", c, x, y);
    case Grade::kTrend:
      return fmt::format("<path class='{}' d='M{:.1f} {:.1f}l5.5 9.5h-11z'/>", c, x, y - 6);
    case Grade::kRefuted:
      return fmt::format("<path class='{} cross' d='M{:.1f} {:.1f}l9 9m0 -9l-9 9'/>", c, x - 4.5, y - 4.5);
    default:
      return fmt::format("<path class='{} ring' d='M{:.1f} {:.1f}l5 5l-5 5l-5 -5z'/>", c, x, y - 5);
  }
}

std::string shortened(const std::string& text, std::size_t most) {
  std::size_t letters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U) continue;
    if (letters++ == most) return text.substr(0, i) + "\xE2\x80\xA6";
  }
  return text;
}

std::string text_at(double x, double y, const std::string& text, const char* classes = "",
                    const char* anchor = "start") {
  return fmt::format("<text class='{}' x='{:.1f}' y='{:.1f}' text-anchor='{}'>{}</text>", classes, x, y,
                     anchor, escape_xml(text));
}

std::string document(const std::string& body, double width, double height, const std::string& title,
                     Svg where) {
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' class='fig' viewBox='0 0 {0:.0f} {1:.0f}' width='{0:.0f}' "
      "height='{1:.0f}' role='img'><title>{2}</title>{3}{4}</svg>{5}",
      width, height, escape_xml(title),
      where == Svg::kFile
          ? fmt::format("<style>{}</style><rect class='paper' width='100%' height='100%'/>", svg_style())
          : "",
      body, where == Svg::kFile ? "\n" : "");
}

// The scale that strips share. It holds all numbers and bands, and of intervals what lies within twice that
// range.
AxisScale scale_for(const std::vector<Strip>& strips, bool factors, double from, double to) {
  double low = kInfinity;
  double high = -kInfinity;
  const auto hold = [&](double v) {
    if (!std::isfinite(v) || (factors && v <= 0)) return;
    low = std::min(low, v);
    high = std::max(high, v);
  };
  for (const Strip& s : strips) {
    hold(s.ours.mean);
    for (const auto& b : {s.band, s.trend}) {
      if (b) hold(b->low), hold(b->high);
    }
  }
  if (low > high) low = high = 1;
  if (low == high) low *= 0.9, high *= 1.1;
  const double reach = factors ? std::max(std::sqrt(high / low), 1.5) : high - low;
  const double least = factors ? low / reach : low - reach;
  const double most = factors ? high * reach : high + reach;
  for (const Strip& s : strips) {
    if (!s.ours.has_interval()) continue;
    hold(std::max(s.ours.low, least));
    hold(std::min(s.ours.high, most));
  }
  return {low, high, factors, from, to};
}

std::string strip_body(const Strip& s, const AxisScale& x, double from, double to, double top) {
  const double bottom = top + kStripHeight;
  const double middle = top + kStripHeight / 2;
  std::string t = fmt::format("<rect class='ground' x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}'/>",
                              from, top, to - from, kStripHeight);
  if (s.band) {
    const double a = std::isfinite(s.band->low) ? x.at(s.band->low) : from;
    const double b = std::isfinite(s.band->high) ? x.at(s.band->high) : to;
    t += fmt::format("<rect class='band' x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}'/>", a, top,
                     std::max(b - a, 3.0), kStripHeight);
  }
  if (s.trend) {
    for (const double v : {s.trend->low, s.trend->high}) {
      if (std::isfinite(v))
        t += fmt::format("<path class='limit' d='M{:.1f} {:.1f}V{:.1f}'/>", x.at(v), top, bottom);
    }
  }
  if (s.ours.values == 0) return t;
  const char* c = grade_class(s.grade);
  if (s.ours.has_interval() || s.ours.at_least) {
    const double a = x.at(s.ours.has_interval() ? s.ours.low : s.ours.mean);
    const double b = s.ours.at_least ? to : x.at(s.ours.high);
    t += fmt::format("<path class='{} bar' d='M{:.1f} {:.1f}H{:.1f}'/>", c, a, middle, b);
    if (x.beyond_low(s.ours.low) && s.ours.has_interval())
      t += fmt::format("<path class='{0} bar' d='M{1:.1f} {2:.1f}l-4 4l4 4'/>", c, from + 4, middle - 4);
    if (s.ours.at_least || x.beyond_high(s.ours.high))
      t += fmt::format("<path class='{0} bar' d='M{1:.1f} {2:.1f}l4 4l-4 4'/>", c, to - 4, middle - 4);
  }
  return t + grade_mark(s.grade, x.at(s.ours.mean), middle);
}

// How many letters all labels of several strips begin with, up to and with a comma and a space.
std::size_t common_start(const std::vector<Strip>& strips) {
  if (strips.size() < 2) return 0;
  const std::string& first = strips[0].label;
  std::size_t same = first.size();
  for (const Strip& s : strips)
    same = std::min<std::size_t>(
        same,
        static_cast<std::size_t>(
            std::mismatch(first.begin(), first.end(), s.label.begin(), s.label.end()).first - first.begin()));
  const std::size_t comma = first.substr(0, same).rfind(", ");
  return comma == std::string::npos ? 0 : comma + 2;
}

std::string tick_text(double v) { return fmt::format("{:.6g}", v); }

// An open diamond in the colour of its series.
std::string paper_mark(std::size_t series, double x, double y) {
  return fmt::format("<path class='l{} said' d='M{:.1f} {:.1f}l5 5l-5 5l-5 -5z'/>", series % kColours, x,
                     y - 5);
}

bool has_paper_marks(const Figure& f) {
  for (const Panel& p : f.panels) {
    for (const Series& s : p.series) {
      if (!s.paper.empty()) return true;
    }
  }
  return false;
}

double legend(const Figure& f, double y, std::string& body) {
  double x = kMargin;
  const auto entry = [&](const std::string& name) {
    const double width = 22 + 6.6 * static_cast<double>(name.size());
    if (x > kMargin && x + width > kSvgWidth - kMargin) x = kMargin, y += 18;
    const double at = x;
    x += width;
    body += text_at(at + 16, y, name);
    return at;
  };
  const std::vector<Series>& series = f.panels[0].series;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const double at = entry(series[i].name);
    body += fmt::format("<rect class='c{}' x='{:.1f}' y='{:.1f}' width='11' height='11' rx='2'/>",
                        i % kColours, at, y - 10);
  }
  if (has_paper_marks(f)) {
    const double at = entry("the paper");
    body += fmt::format("<path class='mark said' d='M{:.1f} {:.1f}l5 5l-5 5l-5 -5z'/>", at + 6, y - 9);
  }
  return y + 10;
}

constexpr double kPanelHeight = 170;
constexpr double kLeft = 52;

std::string error_bar(const Estimate& e, const AxisScale& y, double x, const char* classes) {
  if (!e.has_interval()) return "";
  return fmt::format("<path class='{0}' d='M{1:.1f} {2:.1f}V{3:.1f}m-3 0h6M{4:.1f} {2:.1f}h6'/>", classes, x,
                     y.at(e.low), y.at(e.high), x - 3);
}

std::string panel_body(const Figure& f, const Panel& p, double top) {
  const double right = kSvgWidth - kMargin;
  const double bottom = top + kPanelHeight;
  const bool bars = f.ticks.size() <= 1;
  double low = f.logarithmic ? kInfinity : 0;
  double high = f.logarithmic ? 0 : -kInfinity;
  const auto hold = [&](double v) {
    if (!std::isfinite(v) || (f.logarithmic && v <= 0)) return;
    low = std::min(low, v);
    high = std::max(high, v);
  };
  double largest = 0;
  for (const Series& s : p.series) {
    for (const Estimate& e : s.values) {
      if (e.values != 0) hold(e.mean), largest = std::max(largest, e.mean);
    }
    for (const PaperMark& m : s.paper) hold(m.value);
  }
  for (const Series& s : p.series) {
    for (const Estimate& e : s.values) {
      if (e.has_interval()) hold(std::min(e.high, 1.6 * largest));
    }
  }
  if (p.band) hold(p.band->low), hold(p.band->high);
  if (low > high) low = 0, high = 1;
  const AxisScale y(low, high, f.logarithmic, bottom, top);
  std::string t = text_at(kMargin, top - 8,
                          p.y_label.empty() ? p.title : fmt::format("{} ({})", p.title, p.y_label), "head");
  if (p.band) {
    const double a = std::isfinite(p.band->low) ? y.at(p.band->low) : bottom;
    const double b = std::isfinite(p.band->high) ? y.at(p.band->high) : top;
    t += fmt::format("<rect class='band' x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}'/>", kLeft, b,
                     right - kLeft, std::max(a - b, 2.0));
  }
  for (const double v : y.ticks(5)) {
    t += fmt::format("<path class='grid' d='M{:.1f} {:.1f}H{:.1f}'/>", kLeft, y.at(v), right);
    t += text_at(kLeft - 6, y.at(v) + 4, tick_text(v), "small", "end");
  }
  const std::size_t places = bars ? p.series.size() : f.ticks.size();
  const double step = (right - kLeft) / static_cast<double>(std::max<std::size_t>(places, 1));
  const auto centre = [&](std::size_t i) { return kLeft + step * (static_cast<double>(i) + 0.5); };
  for (std::size_t i = 0; i < p.series.size(); ++i) {
    const Series& s = p.series[i];
    if (bars) {
      if (s.values.empty() || s.values[0].values == 0) continue;
      const double width = std::min(step * 0.6, 60.0);
      const double at = y.at(s.values[0].mean);
      t += fmt::format("<rect class='c{}' x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' rx='2'/>",
                       i % kColours, centre(i) - width / 2, at, width, std::max(bottom - at, 1.0));
      t += error_bar(s.values[0], y, centre(i), "whisker");
      t += text_at(centre(i) + width / 2 + 2, at - 4, number_text(s.values[0].mean), "small", "middle");
      for (const PaperMark& m : s.paper) t += paper_mark(i, centre(i), y.at(m.value));
      continue;
    }
    // Series stand a little beside each other, so that their intervals can be told apart.
    const double aside = (static_cast<double>(i) - static_cast<double>(p.series.size() - 1) / 2) * 5;
    std::string line;
    std::string marks;
    for (std::size_t k = 0; k < s.values.size(); ++k) {
      if (s.values[k].values == 0) continue;
      const double x = centre(k) + aside;
      line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x, y.at(s.values[k].mean));
      marks += error_bar(s.values[k], y, x, fmt::format("l{}", i % kColours).c_str());
      marks += fmt::format("<circle class='c{}' cx='{:.1f}' cy='{:.1f}' r='3.5'/>", i % kColours, x,
                           y.at(s.values[k].mean));
    }
    t += fmt::format("<path class='l{} line' d='{}'/>{}", i % kColours, line, marks);
    for (const PaperMark& m : s.paper) t += paper_mark(i, centre(m.tick) + aside, y.at(m.value));
  }
  for (std::size_t k = 0; !bars && k < f.ticks.size(); ++k) {
    const auto room = static_cast<std::size_t>(std::max(step / 6, 3.0));
    t += text_at(centre(k), bottom + 15, shortened(f.ticks[k], room), "small", "middle");
  }
  return t + fmt::format("<path class='axis' d='M{:.1f} {:.1f}H{:.1f}'/>", kLeft, bottom, right);
}

}  // namespace

const char* svg_style() {
  return ".fig{font:12px system-ui,sans-serif;max-width:100%;height:auto;--paper:#fff;--ink:#1f2328;"
         "--dim:#59636e;--line:#d1d9e0;--ground:#f3f5f7;--band:#9ec5f4;--good:#1a7f37;--near:#0969da;"
         "--side:#9a6700;--open:#6e7781;--bad:#cf222e;--k0:#0969da;--k1:#bc4c00;--k2:#1a7f37;--k3:#8250df;"
         "--k4:#bf3989;--k5:#6e7781}"
         "@media(prefers-color-scheme:dark){.fig{--paper:#0d1117;--ink:#e6edf3;--dim:#9198a1;--line:#3d444d;"
         "--ground:#1b2129;--band:#1f4b7f;--good:#3fb950;--near:#58a6ff;--side:#d29922;--open:#9198a1;"
         "--bad:#f85149;--k0:#58a6ff;--k1:#f0883e;--k2:#3fb950;--k3:#bc8cff;--k4:#f778ba;--k5:#9198a1}}"
         ".fig text{fill:var(--ink)}.fig .small{fill:var(--dim);font-size:11px}.fig .head{font-weight:600}"
         ".fig .paper{fill:var(--paper)}.fig .ground{fill:var(--ground)}.fig .band{fill:var(--band)}"
         ".fig .limit{stroke:var(--ink);stroke-dasharray:2 2;fill:none}.fig .grid{stroke:var(--line)}"
         ".fig .axis{stroke:var(--dim)}.fig .good{fill:var(--good);stroke:var(--good)}"
         ".fig .near{fill:var(--near);stroke:var(--near)}.fig .side{fill:var(--side);stroke:var(--side)}"
         ".fig .open{fill:var(--open);stroke:var(--open)}.fig .bad{fill:var(--bad);stroke:var(--bad)}"
         ".fig .ring{fill:var(--paper);stroke-width:2}.fig .cross{fill:none;stroke-width:2.5}"
         ".fig .bar{fill:none;stroke-width:2}.fig .whisker{stroke:var(--ink);fill:none}"
         ".fig .c0{fill:var(--k0)}.fig .c1{fill:var(--k1)}.fig .c2{fill:var(--k2)}.fig .c3{fill:var(--k3)}"
         ".fig .c4{fill:var(--k4)}.fig .c5{fill:var(--k5)}.fig .l0{stroke:var(--k0);fill:none}"
         ".fig .l1{stroke:var(--k1);fill:none}.fig .l2{stroke:var(--k2);fill:none}"
         ".fig .l3{stroke:var(--k3);fill:none}.fig .l4{stroke:var(--k4);fill:none}"
         ".fig .l5{stroke:var(--k5);fill:none}.fig .line{stroke-width:2}"
         ".fig .mark{stroke:var(--ink)}.fig .said{fill:var(--paper);stroke-width:2}";
}

std::string escape_xml(const std::string& text) {
  std::string all;
  for (const char c : text) {
    switch (c) {
      case '&':
        all += "&amp;";
        break;
      case '<':
        all += "&lt;";
        break;
      case '>':
        all += "&gt;";
        break;
      case '"':
        all += "&quot;";
        break;
      case '\'':
        all += "&#39;";
        break;
      default:
        // What XML forbids cannot be escaped.
        all += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return all;
}

std::string draw_strip(const std::vector<Strip>& strips, std::size_t which, bool factors, double width) {
  const Strip& strip = strips[which];
  const AxisScale x = scale_for(strips, factors, 6, width - 6);
  const std::string said = fmt::format("{}: {}; {}", strip.label, strip.value, strip.grade_word);
  return document(strip_body(strip, x, 0, width, 1), width, kStripHeight + 2, said, Svg::kInline);
}

std::string draw_strips(const std::string& title, const std::vector<Strip>& strips, bool factors, Svg where) {
  const double right = kSvgWidth - kMargin - kValueWidth;
  const AxisScale x = scale_for(strips, factors, kMargin + 6, right - 6);
  std::string body;
  double y = kMargin + 12;
  body += text_at(kMargin, y, shortened(title, kLabelLetters), "head");
  y += 14;
  // What every label begins with is said once.
  const std::size_t same = common_start(strips);
  if (same != 0) {
    y += 4;
    body += text_at(kMargin, y, strips[0].label.substr(0, same - 2), "small");
    y += 4;
  }
  const double top = y;
  for (const Strip& s : strips) {
    body += fmt::format("<g><title>{}</title>",
                        escape_xml(fmt::format("{}: {}; {}", s.label, s.value, s.grade_word)));
    body += text_at(kMargin, y + 13, shortened(s.label.substr(same), kLabelLetters));
    body += strip_body(s, x, kMargin, right, y + 19);
    body += text_at(right + 8, y + 19 + kStripHeight - 3, s.value, "small");
    body += "</g>";
    y += kRowHeight;
  }
  for (const double v : x.ticks(6)) {
    body = fmt::format("<path class='grid' d='M{:.1f} {:.1f}V{:.1f}'/>", x.at(v), top + 4, y) + body;
    body += text_at(x.at(v), y + 12, tick_text(v), "small", "middle");
  }
  y += 32;
  body += fmt::format("<rect class='band' x='{:.1f}' y='{:.1f}' width='18' height='11'/>", kMargin, y - 10);
  body += text_at(kMargin + 23, y, "paper", "small");
  double at = kMargin + 64;
  const std::pair<Grade, const char*> words[] = {{Grade::kReproduced, "in it"},
                                                 {Grade::kCompatible, "overlaps"},
                                                 {Grade::kTrend, "trend only"},
                                                 {Grade::kOpen, "undecided"},
                                                 {Grade::kRefuted, "contradicts"}};
  for (const auto& [grade, word] : words) {
    body += grade_mark(grade, at, y - 4) + text_at(at + 9, y, word, "small");
    at += 24 + 6.1 * static_cast<double>(std::string_view(word).size());
  }
  return document(body, kSvgWidth, y + kMargin, title, where);
}

std::string draw_figure(const Figure& f, Svg where) {
  std::string body;
  double y = kMargin + 12;
  body += text_at(kMargin, y, shortened(f.title, kLabelLetters), "head");
  y = f.panels.empty() ? y : legend(f, y + 22, body);
  for (const Panel& p : f.panels) {
    y += 22;
    body += panel_body(f, p, y);
    y += kPanelHeight + (f.ticks.size() > 1 ? 20 : 6);
  }
  if (f.ticks.size() > 1)
    body += text_at(kLeft + (kSvgWidth - kMargin - kLeft) / 2, y + 10, f.x_label, "small", "middle"), y += 14;
  return document(body, kSvgWidth, y + kMargin, f.title, where);
}

}  // namespace weft::lab
