// Queue pairs that wait in RESET for the next channel. The oldest one is taken first: for a while after a
// connection its two ends refuse another one that has its queue pair's number.
#pragma once
#include <cstddef>
#include <vector>

#include "core/base/ids.h"

namespace weft::channel {

class IdleQps {
 public:
  void reserve(std::size_t most) { all_.reserve(most); }
  std::size_t size() const { return all_.size() - first_; }
  // While they are no more than were reserved nothing is allocated.
  void put(Qpn q) {
    if (all_.size() == all_.capacity()) {
      all_.erase(all_.begin(), begin());
      first_ = 0;
    }
    all_.push_back(q);
  }
  bool take(Qpn& oldest) {
    if (size() == 0) return false;
    oldest = all_[first_++];
    return true;
  }
  std::vector<Qpn>::const_iterator begin() const {
    return all_.begin() + static_cast<std::ptrdiff_t>(first_);
  }
  std::vector<Qpn>::const_iterator end() const { return all_.end(); }

 private:
  std::vector<Qpn> all_;
  std::size_t first_ = 0;
};

}  // namespace weft::channel
