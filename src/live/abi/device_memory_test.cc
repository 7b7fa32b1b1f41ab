// Device memory as programs see it: scarce, reached in whole words, or by regions that count from zero.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "live/abi/program.h"

namespace weft::live::abi {
namespace {

std::uint64_t most(ibv_context* context) {
  ibv_device_attr_ex device{};
  return ibv_query_device_ex(context, nullptr, &device) == 0 ? device.max_dm_size : 0;
}

ibv_dm* allocate(ibv_context* context, std::size_t length, std::uint32_t log_alignment = 0,
                 std::uint32_t mask = 0) {
  ibv_alloc_dm_attr attr{length, log_alignment, mask};
  errno = 0;
  return ibv_alloc_dm(context, &attr);
}

ibv_send_wr request(ibv_wr_opcode opcode, ibv_sge& piece, const ibv_mr* remote, std::uint64_t at) {
  ibv_send_wr wr{};
  wr.opcode = opcode;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.wr.rdma = {at, remote->rkey};
  return wr;
}

constexpr unsigned kZeroBased = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
constexpr unsigned kRemote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

TEST(DeviceMemory, IsSharedByAllContextsOfTheDevice) {
  Program p;
  Program other;
  const std::uint64_t all = most(p.context);
  ASSERT_GT(all, 0U);
  ibv_dm* const half = allocate(p.context, all / 2);
  ibv_dm* const rest = allocate(other.context, all - all / 2);
  ASSERT_TRUE(half != nullptr && rest != nullptr);
  EXPECT_EQ(allocate(p.context, 4), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(ibv_free_dm(rest), 0);
  EXPECT_NE(allocate(p.context, all - all / 2), nullptr);
}

TEST(DeviceMemory, ThatCannotBeIsRefused) {
  Program p;
  const auto refused = [](const void* answer) {
    EXPECT_EQ(answer, nullptr);
    EXPECT_EQ(errno, EINVAL);
  };
  refused(allocate(p.context, 0));
  refused(allocate(p.context, most(p.context) + 1));
  refused(allocate(p.context, 64, 13));
  refused(allocate(p.context, 64, 0, 1));
  ibv_dm* const dm = allocate(p.context, 100);
  ASSERT_NE(dm, nullptr);
  refused(ibv_reg_dm_mr(p.pd, dm, 0, 104, kZeroBased));
  refused(ibv_reg_dm_mr(p.pd, dm, 4, 100, kZeroBased));
  refused(ibv_reg_dm_mr(p.pd, dm, UINT64_MAX, 4, kZeroBased));
  refused(ibv_reg_dm_mr(p.pd, dm, 0, 100, IBV_ACCESS_LOCAL_WRITE));
  Program other;
  refused(ibv_reg_dm_mr(other.pd, dm, 0, 100, kZeroBased));
}

TEST(DeviceMemory, IsCopiedInWholeWords) {
  Program p;
  ibv_dm* const dm = allocate(p.context, 100, 6);
  ASSERT_NE(dm, nullptr);
  char out[100] = {};
  ASSERT_EQ(ibv_memcpy_from_dm(out, dm, 0, 100), 0);
  EXPECT_EQ(std::string(out, 100), std::string(100, '\0'));  // nobody else's bytes
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 8, "twelve bytes", 12), 0);
  ASSERT_EQ(ibv_memcpy_from_dm(out, dm, 8, 12), 0);
  EXPECT_EQ(std::string(out, 12), "twelve bytes");
  const std::pair<std::uint64_t, std::size_t> wrong[] = {
      {3, 4}, {4, 3}, {104, 4}, {0, 104}, {UINT64_MAX - 3, 4}};
  for (const auto& [offset, length] : wrong) {
    EXPECT_EQ(ibv_memcpy_to_dm(dm, offset, out, length), EINVAL) << offset << ' ' << length;
    EXPECT_EQ(ibv_memcpy_from_dm(out, dm, offset, length), EINVAL) << offset << ' ' << length;
  }
}

TEST(DeviceMemory, GoesAfterItsRegions) {
  Program p;
  ibv_dm* const dm = allocate(p.context, 64);
  ibv_mr* const mr = ibv_reg_dm_mr(p.pd, dm, 0, 64, kZeroBased);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, nullptr);
  EXPECT_EQ(mr->length, 64U);
  EXPECT_EQ(ibv_free_dm(dm), EBUSY);
  // The domain changes, the memory stays.
  ibv_pd* const another = ibv_alloc_pd(p.context);
  EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, another, nullptr, 0, 0), 0);
  EXPECT_EQ(ibv_free_dm(dm), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
  EXPECT_EQ(verbs_get_ctx(p.context)->free_dm(dm), ENOENT);
}

// Offsets count from the region's beginning, which lies 16 bytes into the block.
TEST(DeviceMemory, IsReadAndWrittenByPeersAndLocally) {
  Program p;
  ibv_mr* const host = ibv_reg_mr(p.pd, p.memory.data(), p.memory.size(), int{IBV_ACCESS_LOCAL_WRITE});
  ibv_dm* const dm = allocate(p.context, 256, 3);
  ibv_mr* const mr = ibv_reg_dm_mr(p.pd, dm, 16, 128, kZeroBased | kRemote);
  ASSERT_TRUE(host != nullptr && mr != nullptr);
  ibv_qp* const qp = p.talking_to_itself(p.pd, p.cq);
  std::memcpy(p.memory.data(), "from the host", 13);

  ibv_sge from_host{reinterpret_cast<std::uint64_t>(p.memory.data()), 13, host->lkey};
  EXPECT_EQ(p.complete(qp, request(IBV_WR_RDMA_WRITE, from_host, mr, 32)).status, IBV_WC_SUCCESS);
  char seen[16] = {};
  ASSERT_EQ(ibv_memcpy_from_dm(seen, dm, 16 + 32, 16), 0);
  EXPECT_STREQ(seen, "from the host");

  ibv_sge within{32, 13, mr->lkey};  // device memory at both ends
  EXPECT_EQ(p.complete(qp, request(IBV_WR_RDMA_WRITE, within, mr, 64)).status, IBV_WC_SUCCESS);
  ibv_sge back{reinterpret_cast<std::uint64_t>(p.memory.data() + 100), 13, host->lkey};
  EXPECT_EQ(p.complete(qp, request(IBV_WR_RDMA_READ, back, mr, 64)).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::string(p.memory.data() + 100, 13), "from the host");

  ibv_sge before{reinterpret_cast<std::uint64_t>(p.memory.data() + 200), 8, host->lkey};
  ibv_send_wr add = request(IBV_WR_ATOMIC_FETCH_AND_ADD, before, mr, 0);
  add.wr.atomic = {0, 7, 0, mr->rkey};
  EXPECT_EQ(p.complete(qp, add).status, IBV_WC_SUCCESS);
  std::uint64_t sum = 0;
  ASSERT_EQ(ibv_memcpy_from_dm(&sum, dm, 16, 8), 0);
  EXPECT_EQ(sum, 7U);

  // Beyond the region is refused, even within the block; a queue pair that refuses its own request flushes
  // it.
  EXPECT_NE(p.complete(qp, request(IBV_WR_RDMA_WRITE, from_host, mr, 120)).status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace weft::live::abi
