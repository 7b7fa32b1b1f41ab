// The run record: one SQLite file of runs, each with its resolved configuration, seed, versions, cost and
// result, and of the names by which experiments know them.
//
//   run   key (of configuration, seed and simulator), simulator, version, seed, configuration, result (both
//         JSON), fault (empty, or why the result is not to be used), wall_seconds, memory_bytes, recorded
//   cell  experiment, size, variant, point, seed, simulator -> key
//
// `simulator` names the version of the code that runs depend on; `version` is what `weft --version` said.
// Several processes may use one file. Each write is a transaction of its own, so a process that is killed
// loses at most the run that it is writing.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace weft::record {

struct Run {
  std::string key;
  std::string simulator;
  std::string version;
  std::uint64_t seed = 0;
  std::string configuration;
  std::string result;
  std::string fault;
  double wall_seconds = 0;
  std::uint64_t memory_bytes = 0;
};

struct Cell {
  std::string experiment;
  std::string size;
  std::string variant;
  std::string point;
  std::uint64_t seed = 0;
  std::string simulator;
  std::string key;
};

class Store {
 public:
  static Result<Store> open(const std::string& file);  // created if it does not exist
  static Result<Store> open_existing(const std::string& file);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  Result<void> add(const Run& run);  // in place of one with this key
  Result<std::optional<Run>> find(const std::string& key) const;
  Result<void> add(const std::vector<Cell>& cells);  // all of them or none
  // Cells of one experiment, the simulator used last first, then in the order in which they were added.
  Result<std::vector<Cell>> cells(const std::string& experiment) const;
  Result<std::uint64_t> runs() const;

 private:
  struct Database;
  explicit Store(std::unique_ptr<Database> database);
  static Result<Store> open(const std::string& file, bool create);
  std::unique_ptr<Database> database_;
};

// 128 bits of FNV-1a, in hexadecimal: what names a run.
std::string digest(std::string_view text);

}  // namespace weft::record
