// What a fault tells whom: docs/protocol/verbs.md#faults has the same table. Each row is played in every
// mode. At b two receives are posted, and behind the request that fails a WRITE that would do no harm.
#include <gtest/gtest.h>

#include <optional>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

constexpr WcStatus kOk = WcStatus::kSuccess;
constexpr WcStatus kFlushed = WcStatus::kFlushed;
constexpr QpState kUp = QpState::kRts;
constexpr QpState kDown = QpState::kErr;

using Statuses = std::vector<WcStatus>;

// Keeps the last refusal that crossed the wire, and may change the answer of an atomic into one of a READ.
struct Witness : Onlooker {
  void arrives(wire::Header& h) override {
    if (h.opcode == wire::kAcknowledge && h.syndrome >= wire::kSyndromeRnr &&
        h.syndrome != wire::kSyndromeNakSequence)
      refusal = h.syndrome;
    if (confuse_answers && h.opcode == wire::kAtomicAcknowledge) h.opcode = wire::kReadResponseOnly;
  }
  std::uint8_t refusal = 0;
  bool confuse_answers = false;
};

struct Stage : TwoDevices {
  explicit Stage(wire::Mode m) : TwoDevices(m) {
    onlooker = &witness;
    rnr_retry = 0;
    again(kNoSrq);
  }
  void again(SrqId srq) {
    qa = a.create();
    qb = b.create(srq);
    connect(qa, qb);
  }
  SendWr wrong_key(SendWr w) {
    w.rkey.v ^= 1U;
    return w;
  }
  void modify_b(QpState state, std::uint32_t mask, const QpAttr& t = {}) {
    ASSERT_TRUE(b.step(qb, t, state, mask));
  }
  void bind_or_not(WrOpcode opcode) {
    SendWr w;
    w.wr_id = next_id++;
    w.opcode = opcode;
    w.flags = kSendSignaled;
    w.imm = a.mr.lkey.v;  // a region is not a window
    w.bind = {*a.device.alloc_window(a.pd, WindowType::k2), a.mr.lkey, 0, 8, kRemoteWrite};
    post(w);
  }
  Witness witness;
};

struct Row {
  const char* fault;
  void (*act)(Stage&);
  // The responder: its NAK, the first of its receives, its event, its state.
  std::uint8_t nak;
  std::optional<WcStatus> receive;
  std::optional<DeviceEventKind> event;
  QpState responder;
  // The requester: both of its requests, its state.
  Statuses requests;
  QpState requester;
};

constexpr auto kNakInvalid = wire::kSyndromeNakInvalid;
constexpr auto kNakAccess = wire::kSyndromeNakAccess;
constexpr auto kNakOperation = wire::kSyndromeNakOperation;
constexpr auto kRequestError = DeviceEventKind::kQpRequestError;
constexpr auto kAccessError = DeviceEventKind::kQpAccessError;
const Statuses kInvalidRequest{WcStatus::kRemoteInvalidRequest, kFlushed};
const Statuses kRemoteAccess{WcStatus::kRemoteAccess, kFlushed};
const Statuses kRemoteOperation{WcStatus::kRemoteOperation, kFlushed};
const Statuses kNoAnswer{WcStatus::kRetryExceeded, kFlushed};

void atomic(Stage& w, std::uint64_t at) { w.post(w.request(WrOpcode::kFetchAdd, 0, 8, at)); }

const Row kRows[] = {
    // --- the responder refuses ---
    {"WRITE with a wrong key", [](Stage& w) { w.post(w.wrong_key(w.request(WrOpcode::kWrite, 0, 8, 0))); },
     kNakAccess, kFlushed, kAccessError, kDown, kRemoteAccess, kDown},
    {"WRITE beyond its region", [](Stage& w) { w.post(w.request(WrOpcode::kWrite, 0, 64, 4096 * 16 - 8)); },
     kNakAccess, kFlushed, kAccessError, kDown, kRemoteAccess, kDown},
    {"WRITE into a region that is not for it",
     [](Stage& w) {
       SendWr r = w.request(WrOpcode::kWrite, 0, 8, 0);
       r.rkey = w.b.region(4096, kLocalWrite | kRemoteRead).rkey;
       w.post(r);
     },
     kNakAccess, kFlushed, kAccessError, kDown, kRemoteAccess, kDown},
    {"READ with a wrong key", [](Stage& w) { w.post(w.wrong_key(w.request(WrOpcode::kRead, 0, 8, 0))); },
     kNakAccess, kFlushed, kAccessError, kDown, kRemoteAccess, kDown},
    {"atomic with a wrong key",
     [](Stage& w) { w.post(w.wrong_key(w.request(WrOpcode::kFetchAdd, 0, 8, 0))); }, kNakAccess, kFlushed,
     kAccessError, kDown, kRemoteAccess, kDown},
    {"WRITE with immediate, one packet, wrong key",
     [](Stage& w) { w.post(w.wrong_key(w.request(WrOpcode::kWriteImm, 0, 8, 0))); },
     kNakAccess,
     WcStatus::kLocalAccess,
     {},
     kDown,
     kRemoteAccess,
     kDown},
    {"WRITE with immediate, several packets, wrong key",  // its First packet takes no receive
     [](Stage& w) { w.post(w.wrong_key(w.request(WrOpcode::kWriteImm, 0, 600, 0))); }, kNakAccess, kFlushed,
     kAccessError, kDown, kRemoteAccess, kDown},
    {"WRITE to a queue pair that does not allow it",
     [](Stage& w) {
       w.modify_b(QpState::kRts, kAttrAccess);
       w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
     },
     kNakInvalid, kFlushed, kRequestError, kDown, kInvalidRequest, kDown},
    {"READ from a queue pair that does not allow it",
     [](Stage& w) {
       w.modify_b(QpState::kRts, kAttrAccess);
       w.post(w.request(WrOpcode::kRead, 0, 8, 0));
     },
     kNakInvalid, kFlushed, kRequestError, kDown, kInvalidRequest, kDown},
    {"READ from a queue pair that answers none",
     [](Stage& w) {
       QpAttr t;
       t.max_dest_rd_atomic = 0;
       w.modify_b(QpState::kSqd, 0);
       w.modify_b(QpState::kSqd, kAttrMaxDestRdAtomic, t);
       w.modify_b(QpState::kRts, 0);
       w.post(w.request(WrOpcode::kRead, 0, 8, 0));
     },
     kNakInvalid, kFlushed, kRequestError, kDown, kInvalidRequest, kDown},
    {"atomic that is not aligned", [](Stage& w) { atomic(w, 12); }, kNakInvalid, kFlushed, kRequestError,
     kDown, kInvalidRequest, kDown},
    {"atomic that its memory refuses",
     [](Stage& w) {
       w.b.atomics_fail = true;
       atomic(w, 0);
     },
     kNakOperation, kFlushed, DeviceEventKind::kQpFatal, kDown, kRemoteOperation, kDown},
    {"SEND longer than its receive",
     [](Stage& w) { w.post(w.request(WrOpcode::kSend, 0, 64, 0)); },
     kNakInvalid,
     WcStatus::kLocalLength,
     {},
     kDown,
     kInvalidRequest,
     kDown},
    {"SEND of several packets longer than its receive",
     [](Stage& w) { w.post(w.request(WrOpcode::kSend, 0, 600, 0)); },
     kNakInvalid,
     WcStatus::kLocalLength,
     {},
     kDown,
     kInvalidRequest,
     kDown},
    {"SEND into a receive with a wrong key",
     [](Stage& w) {
       w.again(kNoSrq);
       w.b.receive_nowhere(w.qb, 1);
       w.post(w.request(WrOpcode::kSend, 0, 8, 0));
     },
     kNakOperation,
     WcStatus::kLocalProtection,
     {},
     kDown,
     kRemoteOperation,
     kDown},
    {"SEND that invalidates what it may not",  // it was received; the WRITE behind it finds nobody
     [](Stage& w) {
       SendWr r = w.request(WrOpcode::kSendInvalidate, 0, 8, 0);
       r.imm = w.b.mr.rkey.v;
       w.post(r);
     },
     0,
     WcStatus::kRemoteInvalidRequest,
     {},
     kDown,
     {kOk, WcStatus::kRetryExceeded},
     kDown},
    {"SEND without a receive",
     [](Stage& w) {
       w.again(kNoSrq);
       w.post(w.request(WrOpcode::kSend, 0, 8, 0));
     },
     wire::kSyndromeRnr | 12,
     {},
     {},
     kUp,
     {WcStatus::kRnrRetryExceeded, kFlushed},
     kDown},
    // --- nobody answers ---
    {"a peer in RESET",
     [](Stage& w) {
       w.modify_b(QpState::kReset, 0);
       w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
     },
     0,
     {},
     {},
     QpState::kReset,
     kNoAnswer,
     kDown},
    {"a peer in INIT",
     [](Stage& w) {
       w.modify_b(QpState::kReset, 0);
       w.modify_b(QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccess);
       w.post(w.request(WrOpcode::kSend, 0, 8, 0));
     },
     0,
     {},
     {},
     QpState::kInit,
     kNoAnswer,
     kDown},
    {"a peer in ERR",
     [](Stage& w) {
       w.modify_b(QpState::kErr, 0);
       w.post(w.request(WrOpcode::kRead, 0, 8, 0));
     },
     0,
     kFlushed,
     {},
     kDown,
     kNoAnswer,
     kDown},
    // --- the requester itself ---
    {"a request whose own key is wrong",
     [](Stage& w) {
       SendWr r = w.request(WrOpcode::kSend, 0, 8, 0);
       const Sge wrong{Side::kBase, 8, {w.a.mr.lkey.v ^ 1U}};
       r.sges = {&wrong, 1};
       w.post(r);
     },
     0,
     {},
     {},
     kUp,
     {WcStatus::kLocalProtection, kFlushed},
     kDown},
    {"READ into memory that may not be written",
     [](Stage& w) {
       SendWr r = w.request(WrOpcode::kRead, 0, 8, 0);
       const Sge sink{Side::kBase, 8, w.a.region(4096, 0).lkey};
       r.sges = {&sink, 1};
       w.post(r);
     },
     0,
     {},
     {},
     kUp,
     {WcStatus::kLocalProtection, kFlushed},
     kDown},
    {"an answer of another kind",
     [](Stage& w) {
       w.witness.confuse_answers = true;
       atomic(w, 0);
     },
     0,
     {},
     {},
     kUp,
     {WcStatus::kBadResponse, kFlushed},
     kDown},
    {"a window that may not be bound",
     [](Stage& w) { w.bind_or_not(WrOpcode::kBindWindow); },
     0,
     {},
     {},
     kUp,
     {WcStatus::kBindError, kFlushed},
     kDown},
    {"a local invalidation that is not allowed",
     [](Stage& w) { w.bind_or_not(WrOpcode::kLocalInvalidate); },
     0,
     {},
     {},
     kUp,
     {WcStatus::kBindError, kFlushed},
     kDown},
};

class FaultsTest : public ::testing::TestWithParam<wire::Mode> {};

TEST_P(FaultsTest, EveryFaultTellsWhomItConcerns) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.fault);
    Stage w(GetParam());
    for (std::uint64_t id = 1; id <= 2; ++id)
      ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 32, id)));
    row.act(w);
    w.post(w.request(WrOpcode::kWrite, 0, 8, 8));
    w.run();
    EXPECT_EQ(w.witness.refusal, row.nak);
    const Statuses receives = w.b.statuses();
    ASSERT_EQ(receives.empty(), !row.receive.has_value());
    if (row.receive) {
      EXPECT_EQ(receives[0], *row.receive);
    }
    for (std::size_t i = 1; i < receives.size(); ++i) EXPECT_EQ(receives[i], kFlushed);
    std::vector<DeviceEventKind> events;
    for (const DeviceEvent& e : w.b.events()) events.push_back(e.kind);
    EXPECT_EQ(events, row.event ? std::vector<DeviceEventKind>{*row.event} : std::vector<DeviceEventKind>{});
    EXPECT_EQ(w.b.device.query_qp(w.qb)->state, row.responder);
    EXPECT_EQ(w.a.statuses(), row.requests);
    EXPECT_EQ(w.a.device.query_qp(w.qa)->state, row.requester);
    EXPECT_TRUE(w.a.events().empty());
  }
}

// In roce a message is followed from packet to packet: what breaks into a SEND ends the SEND's receive.
TEST(Faults, ARequestInTheMiddleOfASendEndsItsReceive) {
  for (const std::uint8_t intruder :
       {wire::kReadRequest, wire::kWriteOnly, wire::kSendOnly, wire::kFetchAdd}) {
    Stage w(wire::Mode::kRoce);
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 1024, 1)));
    w.post(w.request(WrOpcode::kSend, 0, 600, 0));
    std::vector<Side::Frame> frames = w.intercept(w.a);
    ASSERT_EQ(frames.size(), 3U);
    frames[1].packet.header.opcode = intruder;
    for (const Side::Frame& f : frames) w.deliver(w.b, f);
    EXPECT_EQ(w.b.statuses(), Statuses{WcStatus::kRemoteInvalidRequest});
    EXPECT_TRUE(w.b.events().empty());
    w.run();
    EXPECT_EQ(w.a.statuses(), Statuses{WcStatus::kRemoteInvalidRequest});
  }
}

// What is behind a refused invalidation was never received, though it may have come ahead of it.
TEST_P(FaultsTest, NothingBehindARefusedInvalidationIsAcknowledged) {
  Stage w(GetParam());
  w.late_packet = 1;
  w.late_by = 1;
  for (std::uint64_t id = 1; id <= 2; ++id)
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 32, id)));
  SendWr r = w.request(WrOpcode::kSendInvalidate, 0, 8, 0);
  r.imm = w.b.mr.rkey.v;
  w.post(r);
  w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  w.run();
  EXPECT_EQ(w.b.statuses(), (Statuses{WcStatus::kRemoteInvalidRequest, kFlushed}));
  EXPECT_EQ(w.a.statuses(), (Statuses{kOk, WcStatus::kRetryExceeded}));
}

// The keys of a shared queue's receives are judged in its protection domain, not in the queue pair's.
TEST_P(FaultsTest, ASharedQueueHasADomainOfItsOwn) {
  Stage w(GetParam());
  const PdId other = *w.b.device.alloc_pd();
  w.again(*w.b.device.create_srq(other, {16, 1, 0}));
  const MrInfo there = *w.b.device.register_mr(other, Side::kBase, 4096, kLocalWrite);
  w.b.memory[there.region.v].resize(4096);
  const SrqId srq = w.b.device.query_qp_init(w.qb)->srq;
  const Sge in_domain{Side::kBase, 32, there.lkey};
  const Sge out_of_domain{Side::kBase, 32, w.b.mr.lkey};
  ASSERT_TRUE(w.b.device.post_srq_recv(srq, {1, {&in_domain, 1}}));
  ASSERT_TRUE(w.b.device.post_srq_recv(srq, {2, {&out_of_domain, 1}}));
  w.post(w.request(WrOpcode::kWrite, 0, 8, 0));  // judged in the queue pair's
  w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  w.run();
  EXPECT_EQ(w.a.statuses(), (Statuses{kOk, kOk, WcStatus::kRemoteOperation}));
  EXPECT_EQ(w.b.statuses(), (Statuses{kOk, WcStatus::kLocalProtection}));
}

INSTANTIATE_TEST_SUITE_P(Modes, FaultsTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
