// The statistics pages of a host (page/reader.h), added up by program: the name that the kernel has of a
// process. Processes come and go, and so do their channels; counters of a program only grow, because what
// each page gained since it was seen last is added. What happened between the last look and the end of a
// process, or in a channel that came and went between two looks, is not in them.
//
// Labels are bounded: kMostPrograms names, further ones are together "other"; no addresses and no process
// numbers.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/metrics.h"
#include "page/reader.h"

namespace weft::monitor {

inline constexpr std::size_t kMostPrograms = 64;

class Programs {
 public:
  // `now` of the machine's steady clock, as pages have it.
  void look(const page::Found& found, std::uint64_t now);
  void tell(Metrics& metrics) const;

 private:
  using Row = std::vector<std::uint64_t>;
  struct Seen {
    std::map<std::string, Row> rows;  // by table and what names the row there
    bool here = false;
  };
  struct Program {
    std::map<std::string, double> gauges;
    std::map<std::string, std::uint64_t> counters;
  };

  std::string name_of(const page::ReadPage& page);
  void count(Seen& seen, Program& program, const page::ReadTable& table);

  std::map<std::string, Seen> pages_;  // by path and process
  std::map<std::string, Program> programs_;
  std::uint32_t unreadable_ = 0;
};

}  // namespace weft::monitor
