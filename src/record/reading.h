// A run's record read back: numbers by their place, such as traffic.0.fct_us_mean, and what is computed from
// several of them, such as `100 * totals.queue_drops / totals.packets_sent`.
//
//   sum      product { (+|-) product }
//   product  factor { (*|/) factor }
//   factor   number | place | place? | ( sum ) | - factor
//
// A place is a path of names and positions in lists. `place?` is 0 where the record has none: counters of
// what never happened are not written. true counts as 1.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace weft::record {

class Reading {
 public:
  static Result<Reading> parse(std::string_view json);
  ~Reading();
  Reading(Reading&&) noexcept;
  Reading& operator=(Reading&&) noexcept;

  // The number at a place; the error says what there is instead.
  Result<double> number(std::string_view place) const;
  bool has(std::string_view place) const;
  // Division by zero is an error, never an infinity.
  Result<double> evaluate(std::string_view expression) const;

 private:
  struct Tree;
  explicit Reading(std::unique_ptr<Tree> tree);
  std::unique_ptr<Tree> tree_;
};

// Whether `expression` can be read at all, before there is a record.
Result<void> check_expression(std::string_view expression);

}  // namespace weft::record
