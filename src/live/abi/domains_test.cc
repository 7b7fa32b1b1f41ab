// Thread domains and parent domains: other handles of what there is, which go in their order. That a queue
// pair in a parent domain uses keys of its protection domain is in tests/interop/rules.cc.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "live/abi/program.h"

namespace weft::live::abi {
namespace {

ibv_td* thread_domain(ibv_context* context) {
  ibv_td_init_attr init{};
  return ibv_alloc_td(context, &init);
}
ibv_pd* parent_of(ibv_pd* pd, ibv_td* td) {
  ibv_parent_domain_init_attr init{};
  init.pd = pd;
  init.td = td;
  return ibv_alloc_parent_domain(pd->context, &init);
}

TEST(Domains, GoAfterWhatIsMadeInThem) {
  Program p;
  ibv_pd* const pd = ibv_alloc_pd(p.context);
  ibv_td* const td = thread_domain(p.context);
  ASSERT_NE(td, nullptr);
  ibv_pd* const parent = parent_of(pd, td);
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(parent->context, p.context);

  ibv_qp_init_attr init = p.plain();
  ibv_qp* const qp = ibv_create_qp(parent, &init);
  ibv_mr* const mr = ibv_reg_mr(parent, p.memory.data(), 64, int{IBV_ACCESS_LOCAL_WRITE});
  ibv_mw* const mw = ibv_alloc_mw(parent, IBV_MW_TYPE_2);
  ibv_ah_attr to = p.address();
  ibv_ah* const ah = ibv_create_ah(parent, &to);
  ibv_srq_init_attr shared{};
  shared.attr = {4, 1, 0};
  ibv_srq* const srq = ibv_create_srq(parent, &shared);
  ASSERT_TRUE(qp != nullptr && mr != nullptr && mw != nullptr && ah != nullptr && srq != nullptr);
  EXPECT_EQ(qp->pd, parent);

  const auto busy = [&] {
    EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);
    EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
  };
  busy();
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  busy();
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  busy();
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
  busy();
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  busy();
  // The region moves to the domain itself, and holds the parent no longer.
  EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, nullptr, 0, 0), 0);
  EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_dealloc_td(td), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST(Domains, MayBeNamedByACompletionQueue) {
  Program p;
  ibv_pd* const parent = parent_of(p.pd, nullptr);
  ibv_cq_init_attr_ex init{};
  init.cqe = 4;
  init.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  init.parent_domain = p.pd;
  errno = 0;
  EXPECT_EQ(ibv_create_cq_ex(p.context, &init), nullptr);  // it is no parent domain
  EXPECT_EQ(errno, EINVAL);
  init.parent_domain = parent;
  ibv_cq_ex* const cq = ibv_create_cq_ex(p.context, &init);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
}

// A program's memory for handles: one buffer, of which each allocation takes the next part.
struct Arena {
  enum class Answer { kMemory, kDefault, kNone, kCrooked };
  alignas(64) unsigned char bytes[1U << 16U] = {};
  std::size_t used = 0;
  int given = 0;
  int taken_back = 0;
  ibv_pd* domain = nullptr;
  Answer answer = Answer::kMemory;

  bool has(const void* at) const { return at >= bytes && at < bytes + sizeof bytes; }
  static void* allocate(ibv_pd* pd, void* context, std::size_t size, std::size_t alignment,
                        std::uint64_t type) {
    auto& a = *static_cast<Arena*>(context);
    EXPECT_NE(type, 0U);
    if (a.answer == Answer::kDefault) return IBV_ALLOCATOR_USE_DEFAULT;
    if (a.answer == Answer::kNone) return nullptr;
    a.domain = pd;
    ++a.given;
    a.used = (a.used + alignment - 1) / alignment * alignment;
    unsigned char* const at = a.bytes + a.used + (a.answer == Answer::kCrooked ? 1 : 0);
    a.used += size + 1;
    return at;
  }
  static void take_back(ibv_pd* pd, void* context, void* at, std::uint64_t) {
    auto& a = *static_cast<Arena*>(context);
    EXPECT_EQ(pd, a.domain);
    EXPECT_TRUE(a.has(at));
    ++a.taken_back;
  }
  ibv_pd* parent(ibv_pd* pd) {
    ibv_parent_domain_init_attr init{};
    init.pd = pd;
    init.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    init.alloc = allocate;
    init.free = take_back;
    init.pd_context = this;
    return ibv_alloc_parent_domain(pd->context, &init);
  }
};

ibv_cq* queue_in(ibv_pd* parent) {
  ibv_cq_init_attr_ex init{};
  init.cqe = 4;
  init.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  init.parent_domain = parent;
  ibv_cq_ex* const cq = ibv_create_cq_ex(parent->context, &init);
  return cq != nullptr ? ibv_cq_ex_to_cq(cq) : nullptr;
}

TEST(Domains, MayBringMemoryForTheHandlesOfQueues) {
  Program p;
  Arena arena;
  ibv_pd* const parent = arena.parent(p.pd);
  ASSERT_NE(parent, nullptr);
  ibv_cq* const cq = queue_in(parent);
  ibv_srq_init_attr shared{};
  shared.attr = {4, 1, 0};
  ibv_srq* const srq = ibv_create_srq(parent, &shared);
  ibv_qp* const qp = p.talking_to_itself(parent, cq);
  ASSERT_TRUE(cq != nullptr && srq != nullptr);
  EXPECT_EQ(arena.given, 3);
  EXPECT_EQ(arena.domain, parent);
  for (const void* const handle : {static_cast<void*>(cq), static_cast<void*>(srq), static_cast<void*>(qp)})
    EXPECT_TRUE(arena.has(handle));

  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  EXPECT_EQ(p.complete(qp, wr).status, IBV_WC_SUCCESS);

  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(arena.taken_back, 3);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
}

TEST(Domains, WithoutMemoryOfTheirOwnUseOursOrRefuse) {
  Program p;
  Arena arena;
  ibv_pd* const parent = arena.parent(p.pd);
  arena.answer = Arena::Answer::kNone;
  errno = 0;
  EXPECT_EQ(queue_in(parent), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  arena.answer = Arena::Answer::kCrooked;
  EXPECT_EQ(queue_in(parent), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(arena.taken_back, 1);
  arena.answer = Arena::Answer::kDefault;
  ibv_cq* const cq = queue_in(parent);
  ASSERT_NE(cq, nullptr);
  EXPECT_FALSE(arena.has(cq));
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(arena.taken_back, 1);
}

// The buffer belongs to the program, which may have given it up by then.
TEST(Domains, LeaveTheirMemoryAloneWhenTheContextCloses) {
  Program p;
  Arena arena;
  ASSERT_NE(queue_in(arena.parent(p.pd)), nullptr);
  std::memset(arena.bytes, 0xFF, sizeof arena.bytes);
  EXPECT_EQ(ibv_close_device(p.context), 0);
  p.context = nullptr;
  EXPECT_EQ(arena.taken_back, 0);
}

TEST(Domains, AreRefusedWhereTheyMeanNothing) {
  Program p;
  Program other;
  const auto refused = [&](int why, auto change) {
    ibv_parent_domain_init_attr init{};
    init.pd = p.pd;
    change(init);
    errno = 0;
    EXPECT_EQ(ibv_alloc_parent_domain(p.context, &init), nullptr);
    EXPECT_EQ(errno, why);
  };
  ibv_pd* const parent = parent_of(p.pd, nullptr);
  ibv_td* const theirs = thread_domain(other.context);
  refused(EINVAL, [](auto& i) { i.pd = nullptr; });
  refused(EINVAL, [&](auto& i) { i.pd = other.pd; });
  refused(EINVAL, [&](auto& i) { i.pd = parent; });
  refused(EINVAL, [&](auto& i) { i.td = theirs; });
  refused(EOPNOTSUPP, [](auto& i) { i.comp_mask = 4; });
  refused(EINVAL, [](auto& i) { i.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS; });
  ibv_td_init_attr init{};
  init.comp_mask = 1;
  errno = 0;
  EXPECT_EQ(ibv_alloc_td(p.context, &init), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_dealloc_td(theirs), 0);
  EXPECT_EQ(verbs_get_ctx(other.context)->dealloc_td(theirs), ENOENT);
}

}  // namespace
}  // namespace weft::live::abi
