// What every sender does, whether it sends requests or answers to READs (sender.h).
#include "core/transport/sender.h"

#include <gtest/gtest.h>

#include "core/transport/by_hand.h"
#include "core/transport/engine.h"

namespace weft {
namespace {

// Four packets of either sender, on a path of 64 kB: those of a's WRITE, or b's answers to a's READ.
struct EitherSender : Hand {
  EitherSender(wire::Mode m, bool answers_) : Hand(m, credit()), answers(answers_) {
    post(request(answers ? WrOpcode::kRead : WrOpcode::kWrite, 0, 1024, 0));
    if (answers) to(b, from(a));
  }
  static DeviceConfig credit() {
    DeviceConfig c;
    c.path_credit = Bytes{kCredit};
    return c;
  }
  Side& sender() { return answers ? b : a; }
  Side& receiver() { return answers ? a : b; }
  Engine& engine() { return sender().device.engine(); }
  static constexpr std::uint64_t kCredit = 65536;
  bool answers;
};

constexpr wire::Mode kWithStreams[] = {wire::Mode::kIrn, wire::Mode::kSrnic};

// Nothing is acknowledged: a time-out takes the path for overfull.
TEST(Sender, ShrinksItsPathAtATimeOut) {
  for (const wire::Mode mode : kWithStreams) {
    for (const bool answers : {false, true}) {
      EitherSender w(mode, answers);
      EXPECT_EQ(w.from(w.sender()).size(), answers ? 5U : 4U) << "with the ACK of the READ's request";
      EXPECT_EQ(w.engine().paths[0].cap, w.kCredit);
      const auto struck = [&] {
        return w.engine().counters.get(Counter::timeout_low) + w.engine().counters.get(Counter::timeout_high);
      };
      while (struck() == 0) {  // an entry may be early
        w.now = w.sender().device.next_deadline();
        w.sender().device.on_timer(w.now);
      }
      EXPECT_EQ(w.engine().paths[0].cap, w.kCredit / 2) << answers;
    }
  }
}

// Once everything is acknowledged nothing is awaited: its entry among the deadlines is void.
TEST(Sender, LeavesNoTimerBehind) {
  for (const wire::Mode mode : kWithStreams) {
    for (const bool answers : {false, true}) {
      EitherSender w(mode, answers);
      w.to(w.receiver(), w.from(w.sender()));
      const std::uint32_t index = w.engine().index_of(*w.engine().find(answers ? w.qb : w.qa));
      EXPECT_FALSE(w.engine().deadlines.forgotten(index));
      w.to(w.sender(), w.from(w.receiver()));
      EXPECT_TRUE(w.engine().deadlines.forgotten(index)) << answers;
    }
  }
}

}  // namespace
}  // namespace weft
