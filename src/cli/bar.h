// How far something is, on standard error: a bar on a terminal, elsewhere a line at every tenth.
#pragma once
#include <cstddef>

namespace weft::cli {

class Bar {
 public:
  Bar();
  // `seconds` were needed for `done` of `all` runs.
  void show(std::size_t done, std::size_t all, double seconds);
  void clear() const;  // before anything else is written

 private:
  bool terminal_;
  int told_ = 0;
};

}  // namespace weft::cli
