// What the monitor tells at one moment: families of metrics, each with a line for each set of labels. Printed
// as Prometheus reads it (text format 0.0.4), and as rows for the history.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::monitor {

enum class Kind : std::uint8_t { kGauge, kCounter };
using Labels = std::vector<std::pair<std::string, std::string>>;

struct Value {
  Labels labels;
  double value = 0;
};
struct Family {
  std::string name;
  std::string help;
  Kind kind = Kind::kGauge;
  std::vector<Value> values;
};

class Metrics {
 public:
  // `name` has its unit at the end, and _total if it only grows.
  void add(std::string_view name, std::string_view help, Kind kind, Labels labels, double value);

  const std::vector<Family>& families() const { return families_; }
  std::string text() const;

 private:
  std::vector<Family> families_;
};

// "weft_channels{program=\"a\"}", as Prometheus writes a series.
std::string series_of(const Family& family, const Value& value);

}  // namespace weft::monitor
