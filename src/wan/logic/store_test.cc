// Against a map, and its bounds.
#include "wan/logic/store.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "core/base/prng.h"

namespace weft::wan {
namespace {

Frame frame(std::uint32_t payload, std::uint32_t body) {
  Frame f;
  f.payload = payload;
  f.body = {body};
  return f;
}

TEST(Store, FindsWhatWasPutInAndNothingElse) {
  Store s(Bytes{1U << 20U}, 64);  // crowded: many rows share their home
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> model;
  Prng random(3);
  for (int step = 0; step < 200'000; ++step) {
    const auto half = static_cast<std::uint32_t>(random.below(3));
    const std::uint64_t seq = (1U << 24U) + random.below(60);
    const std::pair key{half, seq};
    Kept* row = s.find(half, {seq});
    const auto it = model.find(key);
    ASSERT_EQ(row != nullptr, it != model.end()) << step;
    if (row != nullptr) {
      ASSERT_EQ(row->frame.body.v, it->second);
      s.take_out(row);
      model.erase(it);
    } else if (s.has_room(frame(10, 0), 0)) {
      s.put(half, {seq}, 0, frame(10, static_cast<std::uint32_t>(step)));
      model[key] = static_cast<std::uint32_t>(step);
    }
    ASSERT_EQ(s.frames(), model.size());
    ASSERT_EQ(s.bytes(), model.size() * (10 + kFrameCost));
  }
}

TEST(Store, HasRoomForAsMuchAgainAsIsFree) {
  Store s(Bytes{10'000}, 1000);
  const Frame f = frame(1000 - kFrameCost, 0);
  std::uint64_t held = 0;
  std::uint64_t n = 0;
  for (; s.has_room(f, held); ++n, held += 1000) s.put(0, {n}, 0, f);
  EXPECT_EQ(n, 5U);               // half of it
  EXPECT_TRUE(s.has_room(f, 0));  // for another one
  EXPECT_EQ(s.highest(), 5000U);
}

TEST(Store, AFramesSuccessorNeverTakesItsPlace) {
  Store s(Bytes{2 * kLargest}, 10);
  EXPECT_TRUE(s.has_room_to_spare(frame(4096, 0), 0));
  s.put(0, {1}, 0, frame(4096, 0));
  EXPECT_FALSE(s.has_room_to_spare(frame(1, 0), kLargest));
  EXPECT_TRUE(s.has_room(frame(4096, 0), 0));
}

TEST(Store, HoldsNoMoreFramesThanItsTable) {
  Store s(Bytes{1U << 30U}, 3);
  for (std::uint64_t i = 0; i < 3; ++i) s.put(0, {i}, 0, frame(1, 0));
  EXPECT_FALSE(s.has_room(frame(1, 0), 0));
}

}  // namespace
}  // namespace weft::wan
