// What is allocated, and what if it cannot be. Memory runs out: each call that creates something fails with
// NULL and ENOMEM, whichever of its allocations fails, leaves nothing behind, and succeeds when there is
// memory again. No exception reaches a program.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>

#include "live/abi/program.h"
#include "live/abi/scarce_memory.h"

// The sanitizers have a pthread_create of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFT_OWN_THREADS 0
#elif defined(__has_feature)
#define WEFT_OWN_THREADS !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define WEFT_OWN_THREADS 1
#endif
#if WEFT_OWN_THREADS
static bool no_threads = false;
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return no_threads ? EAGAIN : create(thread, attributes, start, argument);
}
#endif

namespace weft::live::abi {
namespace {

#if WEFT_OWN_THREADS
TEST(NoThread, MakesOpeningFail) {
  choose_address();
  ibv_device** const list = ibv_get_device_list(nullptr);
  for (int i = 0; i < 2; ++i) {
    no_threads = true;
    errno = 0;
    EXPECT_EQ(ibv_open_device(list[0]), nullptr);
    EXPECT_EQ(errno, EAGAIN);
    no_threads = false;
    ibv_context* const context = ibv_open_device(list[0]);
    ASSERT_NE(context, nullptr);
    EXPECT_EQ(ibv_close_device(context), 0);
  }
  ibv_free_device_list(list);
}
#endif

// Calls it with the first allocation failing, then the second, and so on until none fails any more.
template <class Call>
auto exhaust(const Call& call) {
  for (int n = 0;; ++n) {
    left = n;
    failed = false;
    errno = 0;
    const auto answer = call();
    left = -1;
    if (!failed) return answer;
    EXPECT_EQ(answer, nullptr) << "allocation " << n << " failed";
    EXPECT_EQ(errno, ENOMEM) << "allocation " << n << " failed";
  }
}

TEST(NoMemory, MakesEveryCreatingCallFailAndLeaveNothingBehind) {
  Program p;
  for (int round = 0; round < 3; ++round) {
    ibv_context* const context = exhaust([&] { return ibv_open_device(p.context->device); });
    ASSERT_NE(context, nullptr);
    ibv_pd* const pd = exhaust([&] { return ibv_alloc_pd(context); });
    ASSERT_NE(pd, nullptr);
    ibv_comp_channel* const channel = exhaust([&] { return ibv_create_comp_channel(context); });
    ASSERT_NE(channel, nullptr);
    ibv_cq* const cq = exhaust([&] { return ibv_create_cq(context, 100, nullptr, channel, 0); });
    ASSERT_NE(cq, nullptr);
    ibv_cq_init_attr_ex extended{};
    extended.cqe = 100;
    ibv_cq_ex* const cq_ex = exhaust([&] { return ibv_create_cq_ex(context, &extended); });
    ASSERT_NE(cq_ex, nullptr);
    ibv_mr* const mr =
        exhaust([&] { return ibv_reg_mr(pd, p.memory.data(), 4096, int{IBV_ACCESS_LOCAL_WRITE}); });
    ASSERT_NE(mr, nullptr);
    ibv_mw* const mw = exhaust([&] { return ibv_alloc_mw(pd, IBV_MW_TYPE_2); });
    ASSERT_NE(mw, nullptr);
    ibv_srq* const srq = exhaust([&] {
      ibv_srq_init_attr shared{};
      shared.attr = {100, 2, 0};
      return ibv_create_srq(pd, &shared);
    });
    ASSERT_NE(srq, nullptr);
    ibv_ah* const ah = exhaust([&] {
      ibv_ah_attr to = p.address();
      return ibv_create_ah(pd, &to);
    });
    ASSERT_NE(ah, nullptr);
    ibv_qp* const qp = exhaust([&] {
      ibv_qp_init_attr init{};
      init.send_cq = init.recv_cq = cq;
      init.cap = {100, 100, 2, 2, 64};
      init.qp_type = IBV_QPT_RC;
      return ibv_create_qp(pd, &init);
    });
    ASSERT_NE(qp, nullptr);
    ibv_qp* const qp_ex = exhaust([&] {
      ibv_qp_init_attr_ex init{};
      init.send_cq = init.recv_cq = cq;
      init.srq = srq;
      init.cap = {100, 0, 2, 0, 64};
      init.qp_type = IBV_QPT_RC;
      init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      init.pd = pd;
      init.send_ops_flags = IBV_QP_EX_WITH_SEND;
      return ibv_create_qp_ex(context, &init);
    });
    ASSERT_NE(qp_ex, nullptr);
    ibv_td* const td = exhaust([&] {
      ibv_td_init_attr init{};
      return ibv_alloc_td(context, &init);
    });
    ASSERT_NE(td, nullptr);
    ibv_pd* const parent = exhaust([&] {
      ibv_parent_domain_init_attr init{};
      init.pd = pd;
      init.td = td;
      return ibv_alloc_parent_domain(context, &init);
    });
    ASSERT_NE(parent, nullptr);
    ibv_qp* const member = exhaust([&] {
      ibv_qp_init_attr init{};
      init.send_cq = init.recv_cq = cq;
      init.cap = {4, 4, 1, 1, 0};
      init.qp_type = IBV_QPT_UD;
      return ibv_create_qp(parent, &init);
    });
    ASSERT_NE(member, nullptr);
    ibv_gid group{};
    group.raw[10] = group.raw[11] = 0xFF;
    group.raw[12] = 239;
    group.raw[15] = static_cast<std::uint8_t>(round);
    EXPECT_NE(exhaust([&] { return ibv_attach_mcast(member, &group, 0) == 0 ? member : nullptr; }), nullptr);
    ibv_alloc_dm_attr device_memory{64, 0, 0};
    ibv_dm* const dm = exhaust([&] { return ibv_alloc_dm(context, &device_memory); });
    ASSERT_NE(dm, nullptr);
    ibv_mr* const in_dm = exhaust([&] { return ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED); });
    ASSERT_NE(in_dm, nullptr);
    const int file = dup(context->cmd_fd);
    ibv_context* const second = exhaust([&] { return ibv_import_device(file); });
    ASSERT_NE(second, nullptr);
    ibv_pd* const imported = exhaust([&] { return ibv_import_pd(second, pd->handle); });
    ASSERT_NE(imported, nullptr);
    ibv_mr* const region = exhaust([&] { return ibv_import_mr(imported, mr->handle); });
    ASSERT_NE(region, nullptr);
    ibv_dm* const same_dm = exhaust([&] { return ibv_import_dm(second, dm->handle); });
    ASSERT_NE(same_dm, nullptr);
    ibv_device** const list = exhaust([] { return ibv_get_device_list(nullptr); });
    ASSERT_NE(list, nullptr);
    ibv_free_device_list(list);

    // No failed call has left a user of these behind, so they can be destroyed.
    ibv_unimport_dm(same_dm);
    ibv_unimport_mr(region);
    ibv_unimport_pd(imported);
    EXPECT_EQ(ibv_close_device(second), 0);
    EXPECT_EQ(ibv_dereg_mr(in_dm), 0);
    EXPECT_EQ(ibv_free_dm(dm), 0);
    EXPECT_EQ(ibv_detach_mcast(member, &group, 0), 0);
    EXPECT_EQ(ibv_destroy_qp(member), 0);
    EXPECT_EQ(ibv_dealloc_pd(parent), 0);
    EXPECT_EQ(ibv_dealloc_td(td), 0);
    EXPECT_EQ(ibv_destroy_qp(qp_ex), 0);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
  }
}

// What fails while a batch of requests is built is the answer of ibv_wr_complete, and nothing of it is
// posted.
TEST(NoMemory, FailsABatchAsAWhole) {
  Program p;
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = p.cq;
  init.cap = {8, 8, 2, 2, 64};
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.pd = p.pd;
  init.send_ops_flags = IBV_QP_EX_WITH_SEND;
  ibv_qp* const qp = ibv_create_qp_ex(p.context, &init);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  attr.qp_state = IBV_QPS_ERR;  // what is posted is flushed at once
  ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
  ibv_qp_ex* const batch = ibv_qp_to_qp_ex(qp);
  ibv_wc done[8];
  for (int n = 0;; ++n) {
    left = n;
    failed = false;
    ibv_wr_start(batch);
    for (int i = 0; i < 3; ++i) {
      ibv_wr_send(batch);
      ibv_wr_set_inline_data(batch, p.memory.data(), 32);
    }
    const int answer = ibv_wr_complete(batch);
    left = -1;
    if (!failed) {
      EXPECT_EQ(answer, 0);
      EXPECT_EQ(ibv_poll_cq(p.cq, 8, done), 3);
      break;
    }
    EXPECT_EQ(answer, ENOMEM);
    EXPECT_EQ(ibv_poll_cq(p.cq, 8, done), 0);
  }
  // Pieces of a request that was never begun.
  ibv_wr_start(batch);
  ibv_wr_set_sge(batch, 0, 0, 8);
  EXPECT_EQ(ibv_wr_complete(batch), EINVAL);
  EXPECT_EQ(ibv_poll_cq(p.cq, 8, done), 0);
}

// A listener that could not be remembered does not keep its port, and a request that could not be is not
// asked.
TEST(NoMemory, LeavesNoListenerAndNoRequestBehind) {
  device_stays_open() = true;
  choose_address();
  rdma_event_channel* const channel = rdma_create_event_channel();
  ASSERT_NE(channel, nullptr);
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  const auto next = [&](int milliseconds) {
    pollfd p{channel->fd, POLLIN, 0};
    rdma_cm_event* e = nullptr;
    return poll(&p, 1, milliseconds) == 1 && rdma_get_cm_event(channel, &e) == 0 ? e : nullptr;
  };
  const auto done = [&](rdma_cm_event_type type) {
    rdma_cm_event* const e = next(10'000);
    ASSERT_NE(e, nullptr);
    EXPECT_EQ(e->event, type);
    rdma_ack_cm_event(e);
  };
  const auto starved = [](rdma_cm_id* id, const auto& call) {
    return exhaust([&] { return call() == 0 ? id : nullptr; });
  };
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(7301);
  inet_pton(AF_INET, getenv("WEFT_ADDR"), &at.sin_addr);
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  rdma_cm_id* listener = nullptr;
  ASSERT_EQ(rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP), 0);
  ASSERT_EQ(rdma_bind_addr(listener, address), 0);
  ASSERT_NE(starved(listener, [&] { return rdma_listen(listener, 8); }), nullptr);

  rdma_cm_id* active = nullptr;
  ASSERT_EQ(rdma_create_id(channel, &active, nullptr, RDMA_PS_TCP), 0);
  ASSERT_EQ(rdma_resolve_addr(active, nullptr, address, 1000), 0);
  done(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_resolve_route(active, 1000), 0);
  done(RDMA_CM_EVENT_ROUTE_RESOLVED);
  rdma_conn_param ask{};
  ask.qp_num = 0x4711;
  ASSERT_NE(starved(active, [&] { return rdma_connect(active, &ask); }), nullptr);
  rdma_cm_event* const request = next(10'000);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  rdma_cm_id* const passive = request->id;
  rdma_ack_cm_event(request);
  EXPECT_EQ(next(100), nullptr) << "one request";
  for (rdma_cm_id* const id : {passive, active, listener}) EXPECT_EQ(rdma_destroy_id(id), 0);
  rdma_destroy_event_channel(channel);
}

// A list that is freed leaves nothing behind. Its device may be opened afterwards all the same.
TEST(Lists, AreFreedAndTheirDevicesStay) {
  choose_address();
  ibv_device** const first = ibv_get_device_list(nullptr);
  ASSERT_NE(first, nullptr);
  ibv_device* const device = first[0];
  ibv_free_device_list(first);
  const long before = alive;
  for (int i = 0; i < 1000; ++i) {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    ASSERT_EQ(count, 1);
    ASSERT_EQ(list[0], device);
    ASSERT_EQ(list[1], nullptr);
    ibv_free_device_list(list);
  }
  EXPECT_EQ(alive, before);
  ibv_context* const context = ibv_open_device(device);
  ASSERT_NE(context, nullptr);
  EXPECT_STREQ(ibv_get_device_name(device), "weft0");
  EXPECT_EQ(ibv_close_device(context), 0);
}

}  // namespace
}  // namespace weft::live::abi
