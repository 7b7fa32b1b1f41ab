// A program unmaps, protects or truncates memory that it has registered: the request that needs it fails, and
// neither end's process does.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "live/engine/two_ends.h"

namespace weft::live {
namespace {

constexpr std::size_t kSize = 8192;

enum class Loss { kUnmapped, kReadOnly, kTruncated };

// A region of a file of its own at one end, under every right.
struct Lost {
  explicit Lost(End& e) : end(e), fd(memfd_create("lost", 0)) {
    CHECK(ftruncate(fd, kSize) == 0);
    at = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED);
    mr = *end.context->register_mr(end.pd, at, kSize, address(),
                                   kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
  }
  ~Lost() {
    munmap(at, kSize);
    close(fd);
  }
  Lost(const Lost&) = delete;
  Lost& operator=(const Lost&) = delete;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(at); }
  void lose(Loss how) const {
    // The range stays reserved, without any right, so that nothing else is mapped there meanwhile.
    if (how == Loss::kUnmapped) {
      CHECK(mmap(at, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    }
    if (how == Loss::kReadOnly) CHECK(mprotect(at, kSize, PROT_READ) == 0);
    if (how == Loss::kTruncated) CHECK(ftruncate(fd, 0) == 0);
  }

  End& end;
  int fd;
  void* at = nullptr;
  Mr mr;
};

struct LostMemory : testing::TestWithParam<wire::Mode> {
  LostMemory() {
    Options o;
    o.mode = GetParam();
    a = std::make_unique<End>(std::uint8_t{1}, o);
    b = std::make_unique<End>(std::uint8_t{2}, o);
    a->connect(*b, kRemoteWrite | kRemoteRead | kRemoteAtomic);
    b->connect(*a, kRemoteWrite | kRemoteRead | kRemoteAtomic);
  }
  // One request of a's that needs `local` of a's memory and `remote` of b's.
  WcStatus outcome(WrOpcode opcode, Sge local, std::uint64_t remote, Key rkey) {
    SendWr wr;
    wr.opcode = opcode;
    wr.flags = kSendSignaled;
    wr.sges = {&local, 1};
    wr.remote_address = remote;
    wr.rkey = rkey;
    {
      Posting posting(*a->context, a->qp);
      CHECK(posting.send(wr).has_value());
    }
    const auto done = a->wait(1);
    CHECK_OP(done.size(), ==, 1U);
    return done[0].status;
  }
  std::unique_ptr<End> a;
  std::unique_ptr<End> b;
};

TEST_P(LostMemory, OfASenderFailsItsRequest) {
  const Lost lost(*a);
  lost.lose(Loss::kUnmapped);
  EXPECT_EQ(outcome(WrOpcode::kWrite, {lost.address(), 5000, lost.mr.lkey}, b->address(0), b->mr.rkey),
            WcStatus::kLocalProtection);
}

TEST_P(LostMemory, OfASenderMayBeBeyondAFilesEnd) {
  const Lost lost(*a);
  lost.lose(Loss::kTruncated);
  EXPECT_EQ(outcome(WrOpcode::kWrite, {lost.address(), 5000, lost.mr.lkey}, b->address(0), b->mr.rkey),
            WcStatus::kLocalProtection);
}

TEST_P(LostMemory, OfATargetRefusesTheWrite) {
  const Lost lost(*b);
  lost.lose(Loss::kReadOnly);
  EXPECT_EQ(outcome(WrOpcode::kWrite, a->piece(0, 5000), lost.address(), lost.mr.rkey),
            WcStatus::kRemoteOperation);
}

TEST_P(LostMemory, OfATargetRefusesTheRead) {
  const Lost lost(*b);
  lost.lose(Loss::kUnmapped);
  EXPECT_EQ(outcome(WrOpcode::kRead, a->piece(0, 5000), lost.address(), lost.mr.rkey),
            WcStatus::kRemoteOperation);
}

TEST_P(LostMemory, OfATargetRefusesTheAtomic) {
  const Lost lost(*b);
  lost.lose(Loss::kReadOnly);
  EXPECT_EQ(outcome(WrOpcode::kFetchAdd, a->piece(0, 8), lost.address(), lost.mr.rkey),
            WcStatus::kRemoteOperation);
}

TEST_P(LostMemory, ForWhatWasReadFailsTheRequest) {
  const Lost lost(*a);
  lost.lose(Loss::kUnmapped);
  EXPECT_EQ(outcome(WrOpcode::kRead, {lost.address(), 5000, lost.mr.lkey}, b->address(0), b->mr.rkey),
            WcStatus::kLocalProtection);
}

TEST_P(LostMemory, ForAnAtomicsAnswerFailsTheRequest) {
  const Lost lost(*a);
  b->mr = *b->context->register_mr(b->pd, b->memory.data(), 4096, b->address(0), kLocalWrite | kRemoteAtomic);
  lost.lose(Loss::kUnmapped);
  EXPECT_EQ(outcome(WrOpcode::kCompareSwap, {lost.address(), 8, lost.mr.lkey}, b->address(0), b->mr.rkey),
            WcStatus::kLocalProtection);
}

TEST_P(LostMemory, OfAReceiveFailsBothEnds) {
  const Lost lost(*b);
  {
    const Sge into{lost.address(), 5000, lost.mr.lkey};
    Posting posting(*b->context, b->qp);
    ASSERT_TRUE(posting.receive({7, {&into, 1}}).has_value());
  }
  lost.lose(Loss::kUnmapped);
  EXPECT_EQ(outcome(WrOpcode::kSend, a->piece(0, 5000), 0, {}), WcStatus::kRemoteOperation);
  const auto failed = b->wait(1);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_NE(failed[0].status, WcStatus::kSuccess);
}

INSTANTIATE_TEST_SUITE_P(Modes, LostMemory, testing::Values(wire::Mode::kRoce, wire::Mode::kIrn),
                         [](const auto& m) { return m.param == wire::Mode::kRoce ? "roce" : "irn"; });

TEST(Registering, WantsMemoryThatIsThere) {
  Options o;
  o.own.first = host(1);
  const auto context = *Context::open(*open_nic(o));
  const PdId pd = *context->alloc_pd();
  const auto outcome = [&](const void* at, std::uint64_t length, std::uint8_t access) {
    return context->register_mr(pd, const_cast<void*>(at), length, 0, access);
  };
  EXPECT_EQ(outcome(nullptr, 4096, kLocalWrite).error(), Errc::kFault);
  EXPECT_EQ(outcome(reinterpret_cast<void*>(0xFFFF'8000'0000'0000), 4096, 0).error(), Errc::kFault);
  void* const at = mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(outcome(at, kSize, kLocalWrite).error(), Errc::kFault);
  EXPECT_EQ(outcome(at, kSize, kMwBind).error(), Errc::kFault);
  EXPECT_TRUE(outcome(at, kSize, kRemoteRead).has_value());
  munmap(at, kSize);
  EXPECT_EQ(outcome(at, kSize, 0).error(), Errc::kFault);
}

// Right and memory may come together from different calls.
TEST(Registering, AnewWantsMemoryThatMayBeWrittenWhereItWillBe) {
  Options o;
  o.own.first = host(1);
  const auto context = *Context::open(*open_nic(o));
  const PdId pd = *context->alloc_pd();
  const auto map = [](int rights) {
    return mmap(nullptr, kSize, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  void* const readable = map(PROT_READ);
  void* const both = map(PROT_READ | PROT_WRITE);
  const auto anew = [&](Key key, std::uint8_t changes, void* at, std::uint8_t access) {
    return context->reregister_mr(key, changes, pd, at, kSize, access);
  };
  const Key reads = context->register_mr(pd, readable, kSize, 0, kRemoteRead)->lkey;
  EXPECT_EQ(anew(reads, kChangeAccess, nullptr, kLocalWrite).error(), Errc::kFault);
  EXPECT_TRUE(anew(reads, kChangeAccess, nullptr, 0).has_value());
  const Key writes = context->register_mr(pd, both, kSize, 0, kLocalWrite)->lkey;
  EXPECT_EQ(anew(writes, kChangeRange, readable, 0).error(), Errc::kFault);
  EXPECT_TRUE(anew(writes, kChangeRange | kChangeAccess, readable, kRemoteRead).has_value());
  EXPECT_EQ(anew(writes, kChangeAccess, nullptr, kLocalWrite).error(), Errc::kFault)
      << "what it is now counts";
  munmap(readable, kSize);
  munmap(both, kSize);
}

}  // namespace
}  // namespace weft::live
