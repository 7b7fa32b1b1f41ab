// Pings a list of hosts over channels, all at once: a channel to each, then one request after the other. What
// a ping takes is what a program's request would: both libraries and the far program's turn are in it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "channel_tools/histogram.h"
#include "channel_tools/matrix.h"
#include "channel_tools/plans.h"
#include "channel_tools/session.h"

namespace weft::tools {

// A connection manager that still remembers an earlier connection of a queue pair refuses, as a peer does
// that wants nobody; the next attempt is another queue pair's, and comes later. 0: it is the peer that
// refuses.
std::uint64_t again_after_ns(std::uint32_t refusals);
bool was_refused(const weft_notice& n);

class Prober {
 public:
  Prober(const Session& session, const std::vector<std::string>& hosts, const PingPlan& plan);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;
  // True: it was about one of these channels, and is dealt with.
  bool notice(const weft_notice& n);
  void turn();  // asks whoever is to be asked now
  bool done() const;
  std::vector<Cell> cells() const;  // in the order of the hosts

 private:
  struct Target {
    std::string host;
    weft_channel* channel = nullptr;
    Cell cell;
    Histogram times;
    bool open = false;
    bool over = false;
    bool asking = false;
    std::uint32_t refused = 0;
    std::uint64_t begin_at = 0;  // the next attempt; 0: none is due
    std::uint64_t asked_at = 0;
    std::uint64_t next_at = 0;
  };
  void begin(Target& t);

  const Session& session_;
  PingPlan plan_;
  std::vector<Target> targets_;
  std::map<const weft_channel*, Target*> by_channel_;
};

// What agents say to each other: a job in words, and its result. False: it is none.
std::string write_job(const PingPlan& plan, const std::vector<std::string>& hosts);
bool read_job(std::string_view text, PingPlan& plan, std::vector<std::string>& hosts);
std::string write_result(const std::vector<Cell>& cells);
bool read_result(std::string_view text, std::size_t hosts, std::vector<Cell>& cells);

}  // namespace weft::tools
