// The table against a map that does the same, over random keys that collide.
#include "core/cm/peer_table.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/prng.h"

namespace weft::cm {
namespace {

TEST(PeerTable, DoesWhatAMapDoesWithOneKeyARowAndOneRowAKey) {
  constexpr std::uint32_t kRows = 13;
  PeerTable table(kRows);
  std::map<std::uint32_t, std::uint32_t> model;  // number -> row
  Prng prng(4);
  const auto key = [](std::uint32_t n) {
    return PeerKey{wire::Address::v4(10, 0, 0, n % 3 == 0 ? 1 : 2), n};
  };
  for (int i = 0; i < 20'000; ++i) {
    const auto n = static_cast<std::uint32_t>(prng.below(20));
    const auto row = static_cast<std::uint32_t>(prng.below(kRows));
    if (prng.below(3) == 0) {
      table.erase(row);
      std::erase_if(model, [&](const auto& e) { return e.second == row; });
    } else {
      table.set(key(n), row);
      std::erase_if(model, [&](const auto& e) { return e.second == row; });
      model[n] = row;
    }
    ASSERT_EQ(table.size(), model.size());
    for (std::uint32_t k = 0; k < 20; ++k) {
      const auto it = model.find(k);
      ASSERT_EQ(table.find(key(k)), it == model.end() ? PeerTable::kNoRow : it->second);
    }
    ASSERT_EQ(table.find({wire::Address::v4(9, 9, 9, 9), n}), PeerTable::kNoRow);
  }
}

}  // namespace
}  // namespace weft::cm
