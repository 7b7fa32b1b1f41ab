// The masks of ibv_modify_qp for an RC queue pair, row by row of docs/protocol/verbs.md#attributes: what a
// transition requires, what it allows besides, and that anything else is refused and changes nothing.
#include <gtest/gtest.h>

#include <bit>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

struct Row {
  QpState from;
  QpState to;
  std::uint32_t required;
  std::uint32_t optional;
};

// Copied from the reference, not from the code.
constexpr Row kRows[] = {
    {QpState::kReset, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccess, 0},
    {QpState::kInit, QpState::kInit, 0, kAttrPkeyIndex | kAttrPort | kAttrAccess},
    {QpState::kInit, QpState::kRtr,
     kAttrPath | kAttrMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic | kAttrMinRnrTimer,
     kAttrAltPath | kAttrAccess | kAttrPkeyIndex},
    {QpState::kRtr, QpState::kRts,
     kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrSqPsn | kAttrMaxRdAtomic,
     kAttrCurrentState | kAttrAltPath | kAttrAccess | kAttrMinRnrTimer | kAttrPathMigState},
    {QpState::kRts, QpState::kRts, 0,
     kAttrCurrentState | kAttrAccess | kAttrAltPath | kAttrPathMigState | kAttrMinRnrTimer},
    {QpState::kRts, QpState::kSqd, 0, kAttrSqdNotify},
    {QpState::kSqd, QpState::kSqd, 0,
     kAttrPort | kAttrPath | kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrMaxRdAtomic |
         kAttrMaxDestRdAtomic | kAttrAltPath | kAttrAccess | kAttrPkeyIndex | kAttrMinRnrTimer |
         kAttrPathMigState},
    {QpState::kSqd, QpState::kRts, 0,
     kAttrCurrentState | kAttrAltPath | kAttrAccess | kAttrMinRnrTimer | kAttrPathMigState},
};
constexpr std::uint32_t kAllBits = (1U << 21U) - 1U;

class One {
 public:
  One() : side_(1, DeviceConfig{}), qpn_(side_.create()) {
    good_.path = *side_.device.open_path({wire::Address::v4(10, 0, 0, 2)});
    good_.mtu = 1024;
  }
  Outcome<void> modify(QpState to, std::uint32_t mask) {
    QpAttr a = good_;
    a.state = to;
    a.current_state = state();
    return side_.device.modify_qp(qpn_, a, mask | kAttrState, Time{});
  }
  QpState state() const { return side_.device.query_qp(qpn_)->state; }
  // By the shortest way.
  void bring_to(QpState s) {
    ASSERT_TRUE(modify(QpState::kReset, 0));
    for (const Row& r : kRows) {
      if (state() == s) return;
      if (r.from == state() && r.from != r.to) {
        ASSERT_TRUE(modify(r.to, r.required));
      }
    }
    ASSERT_EQ(state(), s);
  }

 private:
  Side side_;
  Qpn qpn_;
  QpAttr good_;
};

TEST(Attributes, ATransitionTakesWhatItRequiresAndWhatItAllows) {
  for (const Row& r : kRows) {
    One q;
    q.bring_to(r.from);
    EXPECT_TRUE(q.modify(r.to, r.required)) << static_cast<int>(r.from) << " to " << static_cast<int>(r.to);
    EXPECT_EQ(q.state(), r.to);
    q.bring_to(r.from);
    EXPECT_TRUE(q.modify(r.to, r.required | r.optional));
    EXPECT_EQ(q.state(), r.to);
  }
}

TEST(Attributes, ATransitionWithoutOneOfThemIsRefused) {
  for (const Row& r : kRows) {
    for (std::uint32_t bit = 1; bit < kAllBits; bit <<= 1U) {
      if ((r.required & bit) == 0) continue;
      One q;
      q.bring_to(r.from);
      EXPECT_FALSE(q.modify(r.to, r.required & ~bit)) << "without bit " << std::countr_zero(bit);
      EXPECT_EQ(q.state(), r.from);
    }
  }
}

TEST(Attributes, ABitThatDoesNotBelongThereIsRefused) {
  for (const Row& r : kRows) {
    for (std::uint32_t bit = 1; bit < kAllBits; bit <<= 1U) {
      if (((r.required | r.optional | kAttrState) & bit) != 0) continue;
      One q;
      q.bring_to(r.from);
      EXPECT_FALSE(q.modify(r.to, r.required | bit))
          << static_cast<int>(r.from) << " to " << static_cast<int>(r.to) << " with bit "
          << std::countr_zero(bit);
      EXPECT_EQ(q.state(), r.from);
    }
  }
}

// Besides these rows: to RESET from anywhere, to ERR from anywhere but RESET.
TEST(Attributes, OtherTransitionsDoNotExist) {
  constexpr QpState kStates[] = {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts,
                                 QpState::kSqd};
  constexpr QpState kTargets[] = {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts,
                                  QpState::kSqd,   QpState::kSqe,  QpState::kErr};
  for (const QpState from : kStates) {
    for (const QpState to : kTargets) {
      std::uint32_t mask = 0;
      bool exists = to == QpState::kReset || (to == QpState::kErr && from != QpState::kReset);
      for (const Row& r : kRows) {
        if (r.from != from || r.to != to) continue;
        exists = true;
        mask = r.required;
      }
      One q;
      q.bring_to(from);
      EXPECT_EQ(q.modify(to, mask).has_value(), exists)
          << static_cast<int>(from) << " to " << static_cast<int>(to);
      EXPECT_EQ(q.state(), exists ? to : from);
    }
  }
}

TEST(Attributes, ToResetAndToErrNothingElseMayBeGiven) {
  for (const QpState from : {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts, QpState::kSqd}) {
    for (const QpState to : {QpState::kReset, QpState::kErr}) {
      for (std::uint32_t bit = 1; bit < kAllBits; bit <<= 1U) {
        if (bit == kAttrState) continue;
        One q;
        q.bring_to(from);
        EXPECT_FALSE(q.modify(to, bit)) << static_cast<int>(from) << " to " << static_cast<int>(to)
                                        << " with bit " << std::countr_zero(bit);
        EXPECT_EQ(q.state(), from);
      }
    }
  }
}

TEST(Attributes, AWrongCurrentStateIsRefused) {
  TwoDevices w(wire::Mode::kIrn);
  QpAttr a;
  a.state = QpState::kRts;
  a.current_state = QpState::kSqd;
  EXPECT_FALSE(w.a.device.modify_qp(w.qa, a, kAttrState | kAttrCurrentState, w.now));
  a.current_state = QpState::kRts;
  EXPECT_TRUE(w.a.device.modify_qp(w.qa, a, kAttrState | kAttrCurrentState, w.now));
}

}  // namespace
}  // namespace weft
