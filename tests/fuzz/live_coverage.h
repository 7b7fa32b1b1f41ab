// What libFuzzer is told of an input: what the input itself did. Bringing up two NICs and taking them down
// again runs the same three thousand places each time; counting them took libFuzzer half of its time, and hid
// how often the input came there. So the counters begin anew once the world stands, and go back to what they
// were before it is taken down.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace weft::fuzz {

// The section in which clang counts (-fsanitize-coverage=inline-8bit-counters).
std::uint8_t* first_counter();
std::uint8_t* behind_counters();

class Coverage {
 public:
  static void begin() { std::fill(first_counter(), behind_counters(), std::uint8_t{0}); }
  void keep() { kept_.assign(first_counter(), behind_counters()); }
  void put_back() const { std::copy(kept_.begin(), kept_.end(), first_counter()); }

 private:
  std::vector<std::uint8_t> kept_;
};

}  // namespace weft::fuzz
