#include "lab/experiment.h"

#include <algorithm>
#include <filesystem>

namespace weft::lab {

const Size& Experiment::size(std::string_view which) const {
  static const Size kNone{};
  for (const Size& s : sizes) {
    if (s.name == which) return s;
  }
  return kNone;
}

std::size_t Experiment::points() const {
  std::size_t n = 1;
  for (const Axis& a : axes) n *= a.points.size();
  return n;
}

std::uint32_t Experiment::seeds_at(std::size_t point, std::uint32_t seeds) const {
  const auto at = point_of(*this, point);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::uint32_t enough = axes[i].points[at[i]].seeds;
    if (enough != 0) seeds = std::min(seeds, enough);
  }
  return seeds;
}

void Experiment::same_seeds_everywhere() {
  for (Axis& a : axes) {
    for (Point& p : a.points) p.seeds = 0;
  }
}

std::uint64_t Experiment::runs(std::uint32_t seeds) const {
  std::uint64_t n = 0;
  for (std::size_t p = 0; p < points(); ++p) n += variants.size() * seeds_at(p, seeds);
  return n;
}

Result<std::vector<Experiment>> read_experiments(const std::string& folder, const std::string& size) {
  std::vector<std::string> names;
  std::error_code wrong;
  for (const auto& entry : std::filesystem::directory_iterator(folder, wrong)) {
    if (entry.is_regular_file() && entry.path().extension() == ".toml") names.push_back(entry.path().stem());
  }
  if (names.empty()) return fail("folder '" + folder + "' holds no experiments");
  std::sort(names.begin(), names.end());
  std::vector<Experiment> all;
  for (const std::string& name : names) {
    auto one = read_experiment(folder, name, size);
    if (!one) return tl::unexpected(one.error());
    all.push_back(std::move(*one));
  }
  return all;
}

std::string find_experiments(const std::string& program) {
  namespace fs = std::filesystem;
  for (fs::path at = fs::path(program).parent_path(); !at.empty(); at = at.parent_path()) {
    for (const char* folder : {"experiments", "share/weft/experiments"}) {
      if (fs::is_directory(at / folder / "families")) return at / folder;
    }
    if (at == at.root_path()) break;
  }
  return {};
}

std::vector<std::size_t> point_of(const Experiment& e, std::size_t number) {
  std::vector<std::size_t> at(e.axes.size());
  for (std::size_t i = e.axes.size(); i-- > 0;) {
    at[i] = number % e.axes[i].points.size();
    number /= e.axes[i].points.size();
  }
  return at;
}

std::size_t number_of(const Experiment& e, const std::vector<std::size_t>& at) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < at.size(); ++i) number = number * e.axes[i].points.size() + at[i];
  return number;
}

std::string point_text(const Experiment& e, std::size_t number) {
  std::string text;
  const auto at = point_of(e, number);
  for (std::size_t i = 0; i < at.size(); ++i)
    text += (i == 0 ? "" : ", ") + e.axes[i].name + "=" + e.axes[i].points[at[i]].label;
  return text;
}

}  // namespace weft::lab
