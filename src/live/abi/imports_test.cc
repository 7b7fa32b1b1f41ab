// Contexts of one opening share what is imported by its number; no other context reaches it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "live/abi/program.h"

namespace weft::live::abi {
namespace {

void expect_refused(const void* answer, int why) {
  EXPECT_EQ(answer, nullptr);
  EXPECT_EQ(errno, why);
  errno = 0;
}

ibv_context* import_from(const ibv_context* context) { return ibv_import_device(dup(context->cmd_fd)); }

TEST(Imports, ShareADomainAndARegion) {
  Program p;
  ibv_context* const second = import_from(p.context);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second, p.context);
  EXPECT_EQ(second->device, p.context->device);
  EXPECT_EQ(second->async_fd, p.context->async_fd);
  ibv_pd* const pd = ibv_import_pd(second, p.pd->handle);
  ASSERT_NE(pd, nullptr);
  EXPECT_EQ(pd->context, second);
  ibv_mr* const host = ibv_reg_mr(p.pd, p.memory.data(), p.memory.size(),
                                  int{IBV_ACCESS_LOCAL_WRITE} | int{IBV_ACCESS_REMOTE_WRITE});
  ibv_mr* const mr = ibv_import_mr(pd, host->handle);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->rkey, host->rkey);
  EXPECT_EQ(mr->addr, nullptr);

  // A queue pair of the second context uses the first one's region.
  ibv_cq* const cq = ibv_create_cq(second, 4, nullptr, nullptr, 0);
  ibv_qp* const qp = p.talking_to_itself(pd, cq);
  std::memcpy(p.memory.data(), "shared", 6);
  ibv_sge piece{reinterpret_cast<std::uint64_t>(p.memory.data()), 6, mr->lkey};
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.wr.rdma = {piece.addr + 100, mr->rkey};
  EXPECT_EQ(p.complete(qp, wr).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(p.memory.data() + 100, "shared", 6), 0);

  // A handle goes without the region, and the domain's while a queue pair is left in it.
  ibv_unimport_mr(mr);
  ibv_unimport_pd(pd);
  EXPECT_EQ(p.complete(qp, wr).status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_dereg_mr(host), 0);
  EXPECT_EQ(ibv_close_device(second), 0);
}

TEST(Imports, HoldADomainUntilTheyGo) {
  Program p;
  ibv_pd* const own = ibv_alloc_pd(p.context);
  ibv_context* const second = import_from(p.context);
  ibv_pd* const pd = ibv_import_pd(second, own->handle);
  ASSERT_NE(pd, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(own), EBUSY);
  ibv_unimport_pd(pd);
  EXPECT_EQ(ibv_dealloc_pd(own), 0);
  EXPECT_EQ(ibv_close_device(second), 0);
}

TEST(Imports, ShareDeviceMemoryUntilTheLastHandleGoes) {
  Program p;
  ibv_alloc_dm_attr attr{64, 0, 0};
  ibv_dm* const dm = ibv_alloc_dm(p.context, &attr);
  ibv_context* const second = import_from(p.context);
  ASSERT_TRUE(dm != nullptr && second != nullptr);
  ASSERT_NE(dm->comp_mask & IBV_DM_MASK_HANDLE, 0U);
  ibv_dm* const imported = ibv_import_dm(second, dm->handle);
  ASSERT_NE(imported, nullptr);
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 0, "word", 4), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
  char seen[4];
  ASSERT_EQ(ibv_memcpy_from_dm(seen, imported, 0, 4), 0);
  EXPECT_EQ(std::memcmp(seen, "word", 4), 0);
  ibv_unimport_dm(imported);
  EXPECT_EQ(ibv_close_device(second), 0);
}

// The context that was opened closes first; what it made lasts until the other one closes.
TEST(Imports, OutliveTheContextThatTheyCameFrom) {
  Program p;
  ibv_context* const second = import_from(p.context);
  ASSERT_NE(second, nullptr);
  ibv_pd* const pd = ibv_import_pd(second, p.pd->handle);
  ASSERT_EQ(ibv_close_device(p.context), 0);
  EXPECT_EQ(ibv_close_device(p.context), EINVAL);
  p.context = nullptr;
  ibv_mr* const mr = ibv_reg_mr(pd, p.memory.data(), 64, int{IBV_ACCESS_LOCAL_WRITE});
  EXPECT_NE(mr, nullptr);
  EXPECT_EQ(ibv_close_device(second), 0);
}

TEST(Imports, AreRefusedWhereNothingIsShared) {
  Program p;
  Program other;
  errno = 0;
  expect_refused(ibv_import_device(-1), EBADF);
  const int nobodys = open("/dev/null", O_RDWR | O_CLOEXEC);
  expect_refused(ibv_import_device(nobodys), EOPNOTSUPP);
  close(nobodys);
  ibv_context* const second = import_from(other.context);
  ASSERT_NE(second, nullptr);
  expect_refused(ibv_import_pd(second, UINT32_MAX), ENOENT);
  expect_refused(ibv_import_dm(second, UINT32_MAX), ENOENT);
  ibv_alloc_dm_attr attr{64, 0, 0};
  const ibv_dm* const dm = ibv_alloc_dm(p.context, &attr);
  expect_refused(ibv_import_dm(second, dm->handle), ENOENT);
  expect_refused(ibv_import_mr(other.pd, UINT32_MAX), ENOENT);
  expect_refused(ibv_import_mr(other.pd, p.mr->handle), ENOENT);
  EXPECT_EQ(ibv_close_device(second), 0);
}

}  // namespace
}  // namespace weft::live::abi
