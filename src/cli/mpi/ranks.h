// Work in the ranks of an MPI program: rank 0 hands out pieces and gathers what became of them, the others
// compute. A rank computes in a child process, as `weft lab` does, so a run that crashes takes nothing with
// it.
//
// Nobody spins: ranks that wait look for messages 200 times a second and sleep in between.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "lab/pool.h"

namespace weft::cli {

class Ranks {
 public:
  Ranks(int* argc, char*** argv);
  ~Ranks();  // of rank 0: sends the others home
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Of rank 0. With no other rank it computes by itself.
  lab::PoolEnd run(const std::vector<std::string>& pieces, const lab::PoolCalls& calls);
  // Of the others: computes until rank 0 sends it home.
  void serve(const std::function<std::string(const std::string&)>& work);

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace weft::cli
