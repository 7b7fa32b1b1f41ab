// Requests that break two rules at once: the responder's checks have an order, and the first failure is the
// answer (docs/protocol/reliable.md#checks-of-the-responder). By number there:
//
//   2 opcode sequence   3 rights of the queue pair   4 receive   5 READs allowed   6 key   7 length   8
//   alignment
#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

constexpr std::uint8_t kInvalid = wire::kSyndromeNakInvalid;
constexpr std::uint8_t kAccess = wire::kSyndromeNakAccess;
constexpr std::uint8_t kNotReady = wire::kSyndromeRnr | 12;

// Forges requests to b, one after the other at the expected number.
struct Forger : Hand {
  using Hand::Hand;

  wire::Header request(std::uint8_t opcode, std::uint32_t bytes) {
    wire::Header h;
    h.opcode = opcode;
    h.mode = mode;
    h.dest_qp = qb;
    h.psn = {psn++ & kPsnMask};
    h.bits = wire::kAckReq;
    h.va = Side::kBase;
    h.rkey = b.mr.rkey;
    h.dma_len = bytes;
    return h;
  }
  wire::Header with_wrong_key(wire::Header h) {
    h.rkey.v ^= 1U;
    return h;
  }
  // What b says to it.
  std::uint8_t answer(const wire::Header& h, std::uint32_t payload) {
    Side::Frame f;
    f.packet.header = h;
    f.packet.source = a.address;
    f.packet.payload = payload;
    f.payload.resize(payload);
    to(b, {f});
    const Frames out = from(b);
    return out.empty() ? 0xFF : out.back().packet.header.syndrome;
  }
  void modify(QpState state, std::uint32_t mask, std::uint8_t max_reads = 0) {
    QpAttr t;
    t.access = 0;
    t.max_dest_rd_atomic = max_reads;
    ASSERT_TRUE(b.step(qb, t, state, mask));
  }
  void receive() { ASSERT_TRUE(b.device.post_recv(qb, TwoDevices::receive(b, 4096, 1024, 1))); }

 private:
  std::uint32_t psn = 0xFFFFFE;
};

class ChecksTest : public ::testing::TestWithParam<wire::Mode> {};

TEST(Checks, OpcodeSequenceBeforeTheKey) {
  Forger w(wire::Mode::kRoce);
  w.receive();
  w.answer(w.request(wire::kSendFirst, 0), 256);
  EXPECT_EQ(w.answer(w.with_wrong_key(w.request(wire::kReadRequest, 8)), 0), kInvalid);
}

TEST_P(ChecksTest, RightsBeforeTheReceive) {
  Forger w(GetParam());
  w.modify(QpState::kRts, kAttrAccess);
  EXPECT_EQ(w.answer(w.request(wire::kWriteOnlyImm, 8), 8), kInvalid);
}

TEST_P(ChecksTest, RightsBeforeTheKey) {
  for (const std::uint8_t op : {wire::kWriteOnly, wire::kReadRequest, wire::kFetchAdd}) {
    Forger w(GetParam());
    w.modify(QpState::kRts, kAttrAccess);
    EXPECT_EQ(w.answer(w.with_wrong_key(w.request(op, 8)), op == wire::kWriteOnly ? 8 : 0), kInvalid);
  }
}

TEST_P(ChecksTest, TheReceiveBeforeTheKey) {
  Forger w(GetParam());
  EXPECT_EQ(w.answer(w.with_wrong_key(w.request(wire::kWriteOnlyImm, 8)), 8), kNotReady);
}

TEST_P(ChecksTest, TheReceiveBeforeTheLength) {
  Forger w(GetParam());
  EXPECT_EQ(w.answer(w.request(wire::kSendFirst, 0), 252), kNotReady);
}

TEST_P(ChecksTest, ReadsAllowedBeforeTheKey) {
  Forger w(GetParam());
  w.modify(QpState::kSqd, 0);
  w.modify(QpState::kSqd, kAttrMaxDestRdAtomic | kAttrAccess);
  QpAttr t;
  t.access = kRemoteRead;
  ASSERT_TRUE(w.b.step(w.qb, t, QpState::kRts, kAttrAccess));
  EXPECT_EQ(w.answer(w.with_wrong_key(w.request(wire::kReadRequest, 8)), 0), kInvalid);
}

// srnic's WRITEs do not tell how long they are.
TEST_P(ChecksTest, NoMessageIsLongerThanMessagesMayBe) {
  for (const std::uint8_t op : {wire::kWriteFirst, wire::kReadRequest}) {
    if (op == wire::kWriteFirst && GetParam() == wire::Mode::kSrnic) continue;
    Forger w(GetParam());
    EXPECT_EQ(w.answer(w.request(op, (1U << 31U) + 1), op == wire::kWriteFirst ? 256 : 0), kInvalid);
    Forger longest(GetParam());
    EXPECT_EQ(longest.answer(longest.request(op, 1U << 31U), op == wire::kWriteFirst ? 256 : 0), kAccess)
        << "bounds";
  }
}

TEST_P(ChecksTest, TheKeyBeforeTheLength) {
  Forger first(GetParam());
  EXPECT_EQ(first.answer(first.with_wrong_key(first.request(wire::kWriteFirst, 512)), 252), kAccess);
  Forger only(GetParam());
  EXPECT_EQ(only.answer(only.with_wrong_key(only.request(wire::kWriteOnly, 12)), 8), kAccess);
}

TEST_P(ChecksTest, TheKeyBeforeTheAlignment) {
  Forger w(GetParam());
  wire::Header h = w.with_wrong_key(w.request(wire::kFetchAdd, 0));
  h.va += 4;
  EXPECT_EQ(w.answer(h, 0), kAccess);
}

// Check 7: the receive of the message tells its user, whichever packet of it is wrong.
TEST_P(ChecksTest, AReceiveThatWasTakenReportsAWrongLength) {
  for (const std::uint32_t wrong : {0U, 260U}) {
    Forger w(GetParam());
    w.receive();
    w.answer(w.request(wire::kSendFirst, 0), 256);
    wire::Header last = w.request(wire::kSendLast, 0);
    last.psn_offset = 1;
    EXPECT_EQ(w.answer(last, wrong), kInvalid);
    EXPECT_EQ(statuses(w.b), Statuses{WcStatus::kLocalLength});
  }
  Forger w(GetParam());
  w.receive();
  EXPECT_EQ(w.answer(w.request(wire::kWriteOnlyImm, 512), 260), kInvalid);
  EXPECT_EQ(statuses(w.b), Statuses{WcStatus::kLocalLength});
}

// Check 5: as many as were said, not as many as there happens to be room for.
TEST_P(ChecksTest, NoMoreReadsThanWereAllowed) {
  Forger w(GetParam());
  w.modify(QpState::kSqd, 0);
  QpAttr t;
  t.max_dest_rd_atomic = 3;
  ASSERT_TRUE(w.b.step(w.qb, t, QpState::kSqd, kAttrMaxDestRdAtomic));
  for (int i = 0; i < 4; ++i) w.post(w.TwoDevices::request(WrOpcode::kRead, 0, 8, 0));
  const Frames asked = w.from(w.a);
  ASSERT_EQ(asked.size(), 4U);
  w.to(w.b, asked);
  const Frames answers = w.from(w.b);
  EXPECT_EQ(only(answers, wire::kReadResponseOnly).size(), 3U);
  w.to(w.a, answers);
  w.play();
  const WcStatus ok = WcStatus::kSuccess;
  EXPECT_EQ(statuses(w.a), (Statuses{ok, ok, ok, WcStatus::kRemoteInvalidRequest}));
}

INSTANTIATE_TEST_SUITE_P(Modes, ChecksTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
