// Thread domains and parent domains: other handles of what there is, which go in their order. That a queue
// pair in a parent domain uses keys of its protection domain is in tests/interop/rules.cc.
#include <gtest/gtest.h>

#include <cerrno>

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
  refused(EOPNOTSUPP, [](auto& i) { i.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS; });
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
