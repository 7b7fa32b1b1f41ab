// The statistics pages of a host (page/reader.h), added up by program: the name that the kernel has of a
// process. Processes come and go, and so do their channels; counters of a program only grow, because what
// each page gained since it was seen last is added. What happened between the last look and the end of a
// process, or in a channel that came and went between two looks, is not in them.
//
// A row that is being written, and a page that cannot be read, are missing from one look: both are remembered
// until kLooksWithout looks have passed without them, or what they counted would be added again.
//
// Labels are bounded: kMostPrograms names, further ones are together "other"; no addresses and no process
// numbers. A program that is gone keeps its name and its counters until another one needs the room.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "monitor/metrics.h"
#include "page/reader.h"

namespace weft::monitor {

inline constexpr std::size_t kMostPrograms = 64;
inline constexpr std::uint64_t kLooksWithout = 3;

class Programs {
 public:
  // `now` of the machine's steady clock, as pages have it.
  void look(const page::Found& found, std::uint64_t now);
  void tell(Metrics& metrics) const;

 private:
  // Each knows the look that it was seen in last.
  struct Row {
    std::vector<std::uint64_t> cells;
    std::uint64_t seen = 0;
  };
  struct Seen {
    std::map<std::pair<std::string, std::uint64_t>, Row> rows;  // by table, and what names the row there
    std::uint64_t seen = 0;
  };
  struct Program {
    std::map<std::string, double> gauges;
    std::map<std::string, std::uint64_t> counters;
    std::uint64_t seen = 0;
  };

  std::string name_of(const page::ReadPage& page, const std::set<std::string>& here);
  void count(Seen& seen, Program& program, const page::ReadTable& table);

  std::map<std::string, Seen> pages_;  // by path, process and file
  std::map<std::string, Program> programs_;
  std::uint64_t looks_ = 0;
  std::uint32_t unreadable_ = 0;
};

}  // namespace weft::monitor
