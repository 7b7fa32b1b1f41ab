// Channels that a pair's near end asks for, any number at a time.
//
// A queue pair's number is remembered for a while after its connection. A channel that is refused for that is
// asked for again 5 ms later, and counted.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "channel_bench/bench.h"

namespace weft::bench {

class Opening {
 public:
  Opening(FarEnd& far, const Pair& pair) : far_(far), pair_(pair) {}

  void ask(std::uint32_t count);
  // Every notice of the context comes here while channels open; others' notices change nothing.
  void see(const weft_notice& n);
  // A channel of these is gone; false: it is none of them.
  bool lose(const weft_channel* c) { return std::erase(open_, c) != 0; }
  // Asks again for what was refused. The caller calls it in every turn.
  void step();
  std::size_t missing() const { return asked_.size() + again_.size(); }
  const std::string& why() const { return why_; }  // not empty: a channel cannot be opened

  // Asks for so many, and turns until they are open.
  Result<void> wait_for(std::uint32_t count, double seconds);

  const std::vector<weft_channel*>& open() const { return open_; }
  const std::vector<double>& us() const { return us_; }  // from the first time it was asked for, of each
  std::uint64_t refused() const { return refused_; }

 private:
  void ask_since(std::uint64_t since);

  FarEnd& far_;
  const Pair& pair_;
  std::map<const weft_channel*, std::uint64_t> asked_;          // since when each is wanted
  std::vector<std::pair<std::uint64_t, std::uint64_t>> again_;  // when, and since when it is wanted
  std::vector<weft_channel*> open_;
  std::vector<double> us_;
  std::uint64_t refused_ = 0;
  std::string why_;
};

// Closes them, and turns until they are closed and their queue pairs are kept or destroyed at both ends.
Result<void> close_all(const tools::Session& session, const std::vector<weft_channel*>& channels,
                       double seconds);

}  // namespace weft::bench
