// ATOMIC WRITE, in every mode: a WRITE of eight bytes that tells the peer's program of what came before it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

class AtomicWrites : public ::testing::TestWithParam<wire::Mode> {};

// It says that what was written before is there, in modes too that place WRITEs as they come. Without a READ
// all would leave in one burst.
TEST_P(AtomicWrites, LandAfterAllThatWasPostedBefore) {
  for (int lost = 0; lost < 20; ++lost) {
    for (const bool reads : {false, true}) {
      SCOPED_TRACE("lost packet " + std::to_string(lost));
      TwoDevices w(GetParam());
      w.lose_packet = lost;
      std::fill_n(w.a.bytes().begin(), 600, std::uint8_t{7});
      w.post(w.request(WrOpcode::kWrite, 0, 600, 1024));
      if (reads) w.post(w.request(WrOpcode::kRead, 4096, 600, 0));
      w.post(w.request(WrOpcode::kWrite, 0, 8, 512, kSendSignaled | kSendAtomicWrite));
      for (int turns = 0; turns < 100'000 && w.b.word(w.b.mr.region, 512) == 0; ++turns) {
        if (w.turn()) continue;
        w.now = std::max(w.now, std::min(w.a.device.next_deadline(), w.b.device.next_deadline()));
        w.a.device.on_timer(w.now);
        w.b.device.on_timer(w.now);
      }
      EXPECT_EQ(std::count(w.b.bytes().begin() + 1024, w.b.bytes().begin() + 1624, 7), 600);
      w.run();
      const std::vector<Completion> got = w.a.completions();
      ASSERT_EQ(got.size(), reads ? 3U : 2U);
      EXPECT_EQ(got.back().opcode, WcOpcode::kAtomicWrite);
      EXPECT_EQ(got.back().status, WcStatus::kSuccess);
    }
  }
}

TEST_P(AtomicWrites, AreOfEightAlignedBytes) {
  TwoDevices w(GetParam());
  const auto refused = [&](SendWr r) {
    const auto taken = w.a.device.post_send(w.qa, r);
    ASSERT_FALSE(taken.has_value());
    EXPECT_EQ(taken.error(), Errc::kInvalid);
  };
  refused(w.request(WrOpcode::kWrite, 0, 4, 512, kSendAtomicWrite));
  refused(w.request(WrOpcode::kWrite, 0, 16, 512, kSendAtomicWrite));
  refused(w.request(WrOpcode::kWrite, 0, 8, 516, kSendAtomicWrite));
  refused(w.request(WrOpcode::kSend, 0, 8, 512, kSendAtomicWrite));
}

INSTANTIATE_TEST_SUITE_P(Modes, AtomicWrites,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
