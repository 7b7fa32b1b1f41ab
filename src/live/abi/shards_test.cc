// Several shards as a program sees them through libibverbs: which calls choose one, and what a device with
// several says of itself. What happens behind them is in live/engine/shards_test.cc.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "live/abi/program.h"

namespace weft::live::abi {
namespace {

class ShardsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_stays_open()) GTEST_SKIP() << "an earlier test of this process has opened it with one shard";
    setenv("WEFT_SHARDS", "2", 1);
    context = open_first();
    unsetenv("WEFT_SHARDS");
    ASSERT_NE(context, nullptr);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
    ASSERT_TRUE(pd != nullptr && cq != nullptr);
  }
  void TearDown() override {
    if (context != nullptr) ibv_close_device(context);
  }
  // A domain of a thread of its own.
  ibv_pd* for_thread() const {
    ibv_td_init_attr thread{};
    ibv_parent_domain_init_attr init{};
    init.pd = pd;
    init.td = ibv_alloc_td(context, &thread);
    return init.td == nullptr ? nullptr : ibv_alloc_parent_domain(context, &init);
  }
  // The top byte of its number, by which packets find its shard.
  std::uint32_t shard_of_new_qp(ibv_pd* in, ibv_srq* srq = nullptr) const {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.srq = srq;
    init.cap = {4, 4, 1, 1, 16};
    init.qp_type = IBV_QPT_RC;
    const ibv_qp* const qp = ibv_create_qp(in, &init);
    return qp == nullptr ? 0 : qp->qp_num >> 16U;
  }

  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
};

TEST_F(ShardsTest, AThreadDomainHasOneShardAndTheNextHasAnother) {
  ibv_pd* const one = for_thread();
  ibv_pd* const two = for_thread();
  ASSERT_TRUE(one != nullptr && two != nullptr);
  const std::uint32_t first = shard_of_new_qp(one);
  const std::uint32_t second = shard_of_new_qp(two);
  ASSERT_TRUE(first != 0 && second != 0);
  EXPECT_NE(first, second);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(shard_of_new_qp(one), first);
    EXPECT_EQ(shard_of_new_qp(two), second);
  }
  // Without a thread, turns.
  EXPECT_NE(shard_of_new_qp(pd), shard_of_new_qp(pd));
}

TEST_F(ShardsTest, QueuePairsFollowTheirSharedReceiveQueue) {
  ibv_pd* const one = for_thread();
  ibv_pd* const two = for_thread();
  ASSERT_TRUE(one != nullptr && two != nullptr);
  ibv_srq_init_attr shared{};
  shared.attr = {16, 1, 0};
  ibv_srq* const srq = ibv_create_srq(one, &shared);
  ASSERT_NE(srq, nullptr);
  const std::uint32_t there = shard_of_new_qp(one);
  for (ibv_pd* const in : {one, two, pd, pd}) EXPECT_EQ(shard_of_new_qp(in, srq), there);
}

TEST_F(ShardsTest, ADeviceOfSeveralClaimsNoWindows) {
  ibv_device_attr attr{};
  ASSERT_EQ(ibv_query_device(context, &attr), 0);
  EXPECT_EQ(attr.max_mw, 0);
  EXPECT_EQ(
      attr.device_cap_flags & (unsigned{IBV_DEVICE_MEM_WINDOW} | unsigned{IBV_DEVICE_MEM_WINDOW_TYPE_2B}),
      0U);
  for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
    errno = 0;
    EXPECT_EQ(ibv_alloc_mw(pd, type), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
}

// The child has no use of the device, and may close it; the parent goes on in both shards.
TEST_F(ShardsTest, AChildLeavesEveryShardToItsParent) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    ibv_close_device(context);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_NE(shard_of_new_qp(pd), shard_of_new_qp(pd));
}

}  // namespace
}  // namespace weft::live::abi
