// Reads experiments. Every mistake is one sentence that starts with the file and the place in it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>

#include "lab/experiment.h"
#include "lab/live.h"
#include "lab/table.h"
#include "record/reading.h"

namespace weft::lab {
namespace {

constexpr std::uint32_t kMostSeeds = 1000;
constexpr std::size_t kMostPoints = 10'000;

template <class T>
std::vector<std::string> names_of(const std::vector<T>& list) {
  std::vector<std::string> all;
  for (const T& t : list) all.push_back(t.name);
  return all;
}

std::vector<std::string> all_sizes() { return {std::begin(kSizes), std::end(kSizes)}; }

std::vector<std::string> labels_of(const Axis& axis) {
  std::vector<std::string> all;
  for (const Point& p : axis.points) all.push_back(p.label);
  return all;
}

template <class Names>
std::size_t index_in(const Table& t, const char* field, const std::string& word, const Names& names) {
  const auto it = std::find(names.begin(), names.end(), word);
  if (it == names.end())
    t.wrong(std::string(field) + ": there is no '" + word + "'; there are " + list_text(names));
  return static_cast<std::size_t>(it - names.begin());
}

template <class T>
std::vector<std::size_t> indices(const Table& t, const char* field, const std::vector<std::string>& words,
                                 const std::vector<T>& list) {
  std::vector<std::size_t> all;
  const auto names = names_of(list);
  for (const std::string& w : words) all.push_back(index_in(t, field, w, names));
  return all;
}

// [low, high], or "> 1", ">= 1", "< 1", "<= 1".
std::optional<Band> read_band(Table& t, const char* name) {
  const toml::node* n = t.node(name);
  if (n == nullptr) return std::nullopt;
  Band band;
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (const toml::array* a = n->as_array()) {
    if (a->size() == 2 && (*a)[0].is_number() && (*a)[1].is_number()) {
      band.low = (*a)[0].value<double>().value_or(0);
      band.high = (*a)[1].value<double>().value_or(0);
      std::ostringstream text;
      text << band.low << " to " << band.high;
      band.text = text.str();
      if (band.low <= band.high) return band;
    }
  } else if (const auto* s = n->as_string()) {
    band.text = s->get();
    const std::string& text = band.text;
    const bool equal = text.size() > 1 && text[1] == '=';
    char* end = nullptr;
    const char* digits = text.c_str() + std::min<std::size_t>(text.size(), equal ? 2 : 1);
    const double limit = std::strtod(digits, &end);
    if (end != digits && *end == '\0' && std::isfinite(limit)) {
      band.low = -kFar;
      band.high = kFar;
      if (text[0] == '>') band.low = limit, band.low_open = !equal;
      if (text[0] == '<') band.high = limit, band.high_open = !equal;
      if (text[0] == '>' || text[0] == '<') return band;
    }
  }
  t.wrong(std::string(name) + ": neither two rising numbers, such as [2.8, 3.7], nor a side such as \"> 1\"");
}

template <class T, std::size_t N>
T choice(Table& t, const char* name, T otherwise, const std::pair<const char*, T> (&words)[N]) {
  const std::string word = t.text(name);
  if (word.empty()) return otherwise;
  std::vector<std::string> all;
  for (const auto& [text, value] : words) {
    if (word == text) return value;
    all.emplace_back(text);
  }
  t.wrong(std::string(name) + ": '" + word + "' is not one of " + list_text(all));
}

class Reader {
 public:
  Reader(std::string folder, const std::string& name, std::string size)
      : folder_(std::move(folder)), size_(std::move(size)) {
    e_.name = name;
  }

  Experiment read() {
    e_.file = folder_ + "/" + e_.name + ".toml";
    const toml::table root = parse_file(e_.file);
    Table t(root, e_.file);
    e_.title = t.needed("title");
    e_.caveats = t.text("caveats");
    e_.groups = t.texts("group");
    if (const std::string family = t.text("family"); !family.empty()) read_family(t, family);
    read_shared(t);
    const auto chosen = t.texts("variants");
    if (t.has("variants")) {
      const auto keep = indices(t, "variants", chosen, family_variants_);
      for (const std::size_t i : keep) e_.variants.push_back(family_variants_[i]);
    }
    read_variants(t, e_.variants);
    t.tables("axis", [&](Table& a) { read_axis(a); });
    if (e_.points() > kMostPoints) t.wrong("the axes have more than 10000 points together");
    t.tables("claim", [&](Table& c) { read_claim(c); });
    t.tables("plot", [&](Table& p) { read_plot(p); });
    if (t.has("metrics")) e_.shown = indices(t, "metrics", t.texts("metrics"), e_.metrics);
    t.finish();
    finish(t);
    return std::move(e_);
  }

 private:
  void read_family(Table& t, const std::string& family) {
    const std::string file = folder_ + "/families/" + family + ".toml";
    if (!std::filesystem::exists(file)) t.wrong("family: there is no file '" + file + "'");
    const toml::table root = parse_file(file);
    Table shared(root, file);
    read_shared(shared);
    read_variants(shared, family_variants_);
    shared.finish();
    if (e_.groups.empty()) e_.groups = {family};
  }

  // What families and experiments may both say.
  void read_shared(Table& t) {
    if (const std::string base = t.text("base"); !base.empty()) e_.base = scenario_path(t, base);
    if (const std::string live = t.text("live"); !live.empty()) {
      if (!e_.base.empty()) t.wrong("'base' and 'live': an experiment simulates or measures, not both");
      index_in(t, "live", live, std::vector<std::string>(kBenchmarks.begin(), kBenchmarks.end()));
      e_.base = live_base(live);
    }
    if (const toml::node* sizes = t.node("size")) {
      if (sizes->as_table() == nullptr) t.wrong("'size' must be tables such as [size.quick]");
      for (const auto& [key, value] : *sizes->as_table()) {
        const std::string name(key.str());
        if (std::find(std::begin(kSizes), std::end(kSizes), name) == std::end(kSizes))
          t.wrong("there is no size '" + name + "'; there are quick, decide, full");
        if (value.as_table() == nullptr) t.wrong("'size' must be tables such as [size.quick]");
        Table s(*value.as_table(), t.place() + ", size " + name);
        read_size(s, name);
        s.finish();
      }
    }
    t.tables("metric", [&](Table& m) {
      Metric metric{m.needed("name"), m.text("text"), m.needed("value"), m.text("unit"), m.flag("grows")};
      if (metric.text.empty()) metric.text = metric.name;
      if (const auto ok = record::check_expression(metric.expression); !ok) m.wrong(ok.error().message);
      add(m, e_.metrics, std::move(metric));
    });
  }

  void read_size(Table& s, const std::string& name) {
    auto it = std::find_if(e_.sizes.begin(), e_.sizes.end(), [&](const Size& z) { return z.name == name; });
    if (it == e_.sizes.end()) it = e_.sizes.insert(e_.sizes.end(), Size{name, 0, {}});
    if (const auto seeds = read_seeds(s); seeds != 0) it->seeds = seeds;
    if (s.has("set")) it->changes = s.changes();
  }

  // 0 where nothing is said of them.
  std::uint32_t read_seeds(Table& s) const {
    const toml::node* n = s.node("seeds");
    if (n == nullptr) return 0;
    const auto* count = n->as_integer();
    if (count == nullptr || count->get() < 1 || count->get() > kMostSeeds)
      s.wrong("'seeds' must be a number from 1 to 1000");
    return static_cast<std::uint32_t>(count->get());
  }

  void read_variants(Table& t, std::vector<Variant>& out) {
    t.tables("variant", [&](Table& v) {
      Variant variant{v.needed("name"), v.text("base"), v.changes()};
      if (!variant.base.empty()) variant.base = scenario_path(v, variant.base);
      add(v, out, std::move(variant));
    });
  }

  void read_axis(Table& a) {
    Axis axis{a.needed("name"), {}};
    std::set<std::string> labels;
    auto& others = other_labels_.emplace_back();
    a.tables("point", [&](Table& p) {
      Point point{p.needed("label"), p.changes()};
      read_point_sizes(p, point);
      if (!labels.insert(point.label).second) p.wrong("label '" + point.label + "' is there twice");
      const auto sizes = p.texts("sizes");
      for (const std::string& s : sizes) index_in(p, "sizes", s, all_sizes());
      if (sizes.empty() || std::find(sizes.begin(), sizes.end(), size_) != sizes.end()) {
        axis.points.push_back(std::move(point));
      } else {
        others.insert(point.label);
      }
    });
    if (labels.empty()) a.wrong("'point' is missing: write [[axis.point]] tables");
    if (axis.points.empty()) a.wrong("size " + size_ + " has no point");
    add(a, e_.axes, std::move(axis));
  }

  // [axis.point.size.quick]: what else this point changes at that size, and how many seeds are enough for it.
  void read_point_sizes(Table& p, Point& point) const {
    const toml::node* sizes = p.node("size");
    if (sizes == nullptr) return;
    if (sizes->as_table() == nullptr) p.wrong("'size' must be tables such as [axis.point.size.quick]");
    for (const auto& [key, value] : *sizes->as_table()) {
      const std::string name(key.str());
      index_in(p, "size", name, all_sizes());
      if (value.as_table() == nullptr) p.wrong("'size' must be tables such as [axis.point.size.quick]");
      Table s(*value.as_table(), p.place() + ", size " + name);
      const auto changes = s.changes();
      const auto seeds = read_seeds(s);
      s.finish();
      if (name != size_) continue;
      point.changes.insert(point.changes.end(), changes.begin(), changes.end());
      point.seeds = seeds;
    }
  }

  void read_claim(Table& c) {
    const auto sizes = c.texts("sizes");
    for (const std::string& s : sizes) index_in(c, "sizes", s, all_sizes());
    if (!sizes.empty() && std::find(sizes.begin(), sizes.end(), size_) == sizes.end()) return c.skip();
    Claim claim{c.needed("id"), c.needed("statement"), c.needed("paper"),
                c.text("why"),  c.text("caveats"),     {}};
    const auto reproduced = read_band(c, "reproduced");
    const auto trend = read_band(c, "trend");
    c.tables("measure", [&](Table& m) {
      Measure measure;
      measure.reproduced = reproduced;
      measure.trend = trend;
      if (const auto own = read_band(m, "reproduced")) measure.reproduced = own;
      if (const auto own = read_band(m, "trend")) measure.trend = own;
      if (!measure.reproduced && !measure.trend)
        m.wrong("'reproduced' or 'trend' is missing, here and in the claim");
      measure.account = m.text("account");
      if (!measure.account.empty()) {
        claim.measures.push_back(std::move(measure));
        return;
      }
      read_measure(m, measure);
      const auto metrics = m.texts("metric");
      if (metrics.empty()) m.wrong("'metric' is missing, or 'account'");
      for (const std::size_t i : indices(m, "metric", metrics, e_.metrics)) {
        measure.metric = i;
        claim.measures.push_back(measure);
      }
      measure.aside = true;
      for (const std::size_t i : indices(m, "beside", m.texts("beside"), e_.metrics)) {
        measure.metric = i;
        claim.measures.push_back(measure);
      }
    });
    if (claim.measures.empty()) c.wrong("'measure' is missing: write [[claim.measure]] tables");
    for (const Claim& other : e_.claims) {
      if (other.id == claim.id) c.wrong("id '" + claim.id + "' is there twice");
    }
    e_.claims.push_back(std::move(claim));
  }

  void read_measure(Table& m, Measure& out) {
    const auto variants = names_of(e_.variants);
    out.of = index_in(m, "of", m.needed("of"), variants);
    const std::string over = m.text("over");
    if (!over.empty()) out.over = index_in(m, "over", over, variants);
    out.as = choice<As>(m, "as", over.empty() ? As::kValue : As::kRatio,
                        {{"value", As::kValue},
                         {"ratio", As::kRatio},
                         {"percent-less", As::kPercentLess},
                         {"percent-more", As::kPercentMore}});
    if (out.as != As::kValue && over.empty()) m.wrong("'over' is missing: the variant to compare with");
    if (out.as == As::kValue && !over.empty()) m.wrong("as 'value' of one variant needs no 'over'");
    read_over_at(m, out);
    if (!over.empty() && out.over == out.of && !m.has("over_at"))
      m.wrong("'of' and 'over' are the same variant, and no 'over_at' sets them apart");
    out.reduce = choice<Reduce>(m, "reduce", Reduce::kEach,
                                {{"each", Reduce::kEach},
                                 {"always", Reduce::kAlways},
                                 {"up-to", Reduce::kUpTo},
                                 {"mean", Reduce::kMean},
                                 {"increasing", Reduce::kIncreasing},
                                 {"decreasing", Reduce::kDecreasing}});
    out.points = read_at(m, "at");
    const bool order = out.reduce == Reduce::kIncreasing || out.reduce == Reduce::kDecreasing;
    const std::string along = m.text("along");
    if (order != !along.empty()) m.wrong("'along' names an axis if 'reduce' is increasing or decreasing");
    if (!order) return;
    out.along = index_in(m, "along", along, names_of(e_.axes));
    if (out.points[out.along].size() < 2) m.wrong("along: axis '" + along + "' has only one point here");
  }

  // Where `over` is measured, if not where `of` is: one point of some axes.
  void read_over_at(Table& m, Measure& out) {
    out.over_points.assign(e_.axes.size(), kSamePoint);
    if (!m.has("over_at")) return;
    if (out.as == As::kValue) m.wrong("'over_at' needs an 'over'");
    const auto chosen = read_at(m, "over_at");
    for (std::size_t i = 0; i < e_.axes.size(); ++i) {
      if (!m.node("over_at")->as_table()->contains(e_.axes[i].name)) continue;
      if (chosen[i].size() != 1) m.wrong("over_at: choose one point of axis '" + e_.axes[i].name + "'");
      out.over_points[i] = chosen[i][0];
    }
  }

  // at = { load = "70%", cc = ["none", "dcqcn"] }
  std::vector<std::vector<std::size_t>> read_at(Table& m, const char* field) {
    std::vector<std::vector<std::size_t>> points;
    for (const Axis& axis : e_.axes) {
      auto& all = points.emplace_back();
      for (std::size_t i = 0; i < axis.points.size(); ++i) all.push_back(i);
    }
    const toml::node* n = m.node(field);
    if (n == nullptr) return points;
    if (n->as_table() == nullptr)
      m.wrong(std::string("'") + field + "' must be a table such as { load = \"70%\" }");
    Table at(*n->as_table(), m.place() + ", " + field);
    for (const auto& [key, value] : *n->as_table()) {
      const std::string name(key.str());
      const std::size_t axis = index_in(m, field, name, names_of(e_.axes));
      points[axis].clear();
      for (const std::string& label : at.texts(name.c_str())) {
        if (other_labels_[axis].contains(label)) continue;
        points[axis].push_back(index_in(at, name.c_str(), label, labels_of(e_.axes[axis])));
      }
      if (points[axis].empty()) at.wrong("'" + name + "' names no point of size " + size_);
    }
    return points;
  }

  void read_plot(Table& p) {
    Plot plot;
    plot.name = p.needed("name");
    for (const char c : plot.name) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_')
        p.wrong("name: '" + plot.name + "' becomes a file: letters, digits, '-' and '_' only");
    }
    plot.title = p.text("title");
    if (plot.title.empty()) plot.title = e_.title;
    plot.logarithmic = p.flag("logarithmic");
    plot.band = read_band(p, "band");
    if (const std::string over = p.text("over"); !over.empty())
      plot.over = index_in(p, "over", over, names_of(e_.variants));
    plot.metrics = indices(p, "metrics", p.texts("metrics"), e_.metrics);
    if (plot.metrics.empty()) p.wrong("'metrics' is missing");
    plot.variants = indices(p, "variants", p.texts("variants"), e_.variants);
    for (std::size_t i = 0; !p.has("variants") && i < e_.variants.size(); ++i) {
      if (plot.over != i) plot.variants.push_back(i);
    }
    plot.points = read_at(p, "at");
    const std::string along = p.text("along");
    plot.kind = along.empty() ? PlotKind::kBars : PlotKind::kLines;
    if (!along.empty()) plot.along = index_in(p, "along", along, names_of(e_.axes));
    for (std::size_t i = 0; i < e_.axes.size(); ++i) {
      const bool open = plot.kind == PlotKind::kLines && i == plot.along;
      if (!open && plot.points[i].size() != 1)
        p.wrong("'at' must choose one point of axis '" + e_.axes[i].name + "'");
    }
    p.tables("paper", [&](Table& said) { read_paper(said, plot); });
    add(p, e_.plots, std::move(plot));
  }

  // [[plot.paper]]: what the paper states of a variant, at points of the plot's axis.
  void read_paper(Table& t, Plot& plot) const {
    PaperPoint said;
    said.variant = index_in(t, "variant", t.needed("variant"), names_of(e_.variants));
    said.metric = index_in(t, "metric", t.needed("metric"), names_of(e_.metrics));
    const auto shown = [](const std::vector<std::size_t>& list, std::size_t i) {
      return std::find(list.begin(), list.end(), i) != list.end();
    };
    if (!shown(plot.variants, said.variant)) t.wrong("variant: the plot does not show it");
    if (!shown(plot.metrics, said.metric)) t.wrong("metric: the plot does not show it");
    const toml::node* value = t.node("value");
    if (value == nullptr || !value->is_number()) t.wrong("'value' must be a number");
    said.value = value->value<double>().value_or(0);
    const auto labels = t.texts("at");
    if (plot.kind == PlotKind::kBars) {
      if (!labels.empty()) t.wrong("at: a plot of bars has no axis");
      return plot.paper.push_back(said);
    }
    if (labels.empty()) t.wrong("'at' is missing: points of axis '" + e_.axes[plot.along].name + "'");
    for (const std::string& label : labels) {
      if (other_labels_[plot.along].contains(label)) continue;
      said.point = index_in(t, "at", label, labels_of(e_.axes[plot.along]));
      plot.paper.push_back(said);
    }
  }

  template <class T>
  static void add(Table& t, std::vector<T>& list, T item) {
    for (const T& other : list) {
      if (other.name == item.name) t.wrong("name '" + item.name + "' is there twice");
    }
    list.push_back(std::move(item));
  }

  void finish(Table& t) {
    if (e_.groups.empty()) t.wrong("'group' is missing");
    if (e_.claims.empty()) t.wrong("'claim' is missing: write [[claim]] tables");
    if (e_.variants.empty()) {
      e_.base.clear();
      e_.sizes.clear();
      if (!e_.axes.empty()) t.wrong("an axis needs variants");
      return;
    }
    for (const Variant& v : e_.variants) {
      if (e_.base.empty() && v.base.empty())
        t.wrong("'base' is missing: the scenario that variants change; or 'live'");
    }
    for (const char* name : kSizes) {
      if (e_.size(name).seeds == 0) t.wrong(std::string("size ") + name + " is missing, or its 'seeds'");
    }
    if (!e_.shown.empty()) return;
    for (const Claim& c : e_.claims) {
      for (const Measure& m : c.measures) {
        if (m.account.empty() && std::find(e_.shown.begin(), e_.shown.end(), m.metric) == e_.shown.end())
          e_.shown.push_back(m.metric);
      }
    }
  }

  // Scenarios that only experiments use are in scenarios/, beside the files of experiments. The others are in
  // examples/, beside their folder.
  std::string scenario_path(const Table& t, const std::string& base) const {
    for (const std::string& path : {folder_ + "/scenarios/" + base, folder_ + "/../examples/" + base}) {
      if (std::filesystem::is_regular_file(path)) return std::filesystem::path(path).lexically_normal();
    }
    t.wrong("base: there is no scenario '" + base + "' in experiments/scenarios or examples");
  }

  std::string folder_;
  std::string size_;
  std::vector<std::set<std::string>> other_labels_;  // of each axis: points that this size has not
  Experiment e_;
  std::vector<Variant> family_variants_;
};

}  // namespace

Result<Experiment> read_experiment(const std::string& folder, const std::string& name,
                                   const std::string& size) {
  try {
    return Reader(folder, name, size).read();
  } catch (const Mistake& m) {
    return fail(m.sentence);
  }
}

}  // namespace weft::lab
