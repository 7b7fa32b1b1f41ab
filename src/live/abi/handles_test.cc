// What a program may hand us: handles that it destroyed or altered, objects of another context, numbers that
// are no enumerator. Each is refused with the errno that a driver over the kernel gives, in the answer and in
// errno.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "live/abi/program.h"

namespace weft::live::abi {
namespace {

// The field reads as another number while this lives.
struct Altered {
  explicit Altered(std::uint32_t& f) : field(f) { field += 7; }
  ~Altered() { field -= 7; }
  Altered(const Altered&) = delete;
  Altered& operator=(const Altered&) = delete;
  std::uint32_t& field;
};

template <class Enum>
void set_raw(Enum& to, std::uint32_t number) {
  static_assert(sizeof to == sizeof number);
  std::memcpy(&to, &number, sizeof number);
}

// As C passes a number that is none: here, reading it would be undefined.
__attribute__((no_sanitize("undefined"))) ibv_mw* alloc_mw(ibv_pd* pd, std::uint32_t number) {
  ibv_mw_type type{};
  set_raw(type, number);
  return pd->context->ops.alloc_mw(pd, type);
}
__attribute__((no_sanitize("undefined"))) const char* status_text(std::uint32_t number) {
  ibv_wc_status status{};
  set_raw(status, number);
  return ibv_wc_status_str(status);
}
__attribute__((no_sanitize("undefined"))) int mbps_of(std::uint32_t number) {
  ibv_rate rate{};
  set_raw(rate, number);
  return ibv_rate_to_mbps(rate);
}

// The error number is the answer, and errno says the same.
void expect_error(int answer, int wanted) {
  EXPECT_EQ(answer, wanted);
  EXPECT_EQ(errno, wanted);
}
void expect_null(const void* answer, int wanted) {
  EXPECT_EQ(answer, nullptr);
  EXPECT_EQ(errno, wanted);
}

TEST(Handles, WithAnotherNumberAreNotDestroyed) {
  Program p;
  const auto refused = [](std::uint32_t& handle, auto call) {
    const Altered altered(handle);
    errno = 0;
    expect_error(call(), ENOENT);
  };
  refused(p.ah->handle, [&] { return ibv_destroy_ah(p.ah); });
  refused(p.qp->handle, [&] { return ibv_destroy_qp(p.qp); });
  refused(p.srq->handle, [&] { return ibv_destroy_srq(p.srq); });
  refused(p.mw->handle, [&] { return ibv_dealloc_mw(p.mw); });
  refused(p.mr->handle, [&] { return ibv_dereg_mr(p.mr); });
  refused(p.cq->handle, [&] { return ibv_destroy_cq(p.cq); });
  refused(p.pd->handle, [&] { return ibv_dealloc_pd(p.pd); });
  // With their own numbers back they are destroyed.
  EXPECT_EQ(ibv_destroy_ah(p.ah), 0);
  EXPECT_EQ(ibv_destroy_qp(p.qp), 0);
  EXPECT_EQ(ibv_destroy_srq(p.srq), 0);
  EXPECT_EQ(ibv_dealloc_mw(p.mw), 0);
  EXPECT_EQ(ibv_dereg_mr(p.mr), 0);
  EXPECT_EQ(ibv_destroy_cq(p.cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(p.channel), 0);
  EXPECT_EQ(ibv_dealloc_pd(p.pd), 0);
}

// A region and a window are found by their handle's number, so they are destroyed even if the program has
// changed their keys.
TEST(Handles, AreKnownByTheirNumberAlone) {
  Program p;
  p.mr->lkey += 1000;
  p.mw->rkey += 1000;
  EXPECT_EQ(ibv_dereg_mr(p.mr), 0);
  EXPECT_EQ(ibv_dealloc_mw(p.mw), 0);
}

TEST(Handles, ThatWereDestroyedAreGone) {
  Program p;
  const auto twice = [](auto call) {
    EXPECT_EQ(call(), 0);
    errno = 0;
    expect_error(call(), ENOENT);
  };
  twice([&] { return ibv_destroy_ah(p.ah); });
  twice([&] { return ibv_destroy_qp(p.qp); });
  twice([&] { return ibv_destroy_srq(p.srq); });
  twice([&] { return ibv_dereg_mr(p.mr); });
  twice([&] { return ibv_destroy_cq(p.cq); });
  ibv_mw* const mw = p.mw;
  const auto dealloc_mw = p.context->ops.dealloc_mw;  // ibv_dealloc_mw() would read the context from it
  twice([&] { return dealloc_mw(mw); });
  twice([&] { return ibv_destroy_comp_channel(p.channel); });
  twice([&] { return ibv_dealloc_pd(p.pd); });
  ibv_context* const context = std::exchange(p.context, nullptr);
  EXPECT_EQ(ibv_close_device(context), 0);
  expect_error(ibv_close_device(context), EINVAL);
}

// A context takes its objects with it.
TEST(Handles, OfAClosedContextAreGone) {
  Program p;
  EXPECT_EQ(ibv_close_device(std::exchange(p.context, nullptr)), 0);
  expect_error(ibv_destroy_qp(p.qp), ENOENT);
  expect_error(ibv_destroy_cq(p.cq), ENOENT);
  expect_error(ibv_destroy_comp_channel(p.channel), ENOENT);
  expect_error(ibv_dereg_mr(p.mr), ENOENT);
  expect_error(ibv_dealloc_pd(p.pd), ENOENT);
}

// Two threads destroy the same objects: each goes once.
TEST(Handles, GoOnceWhenTwoThreadsDestroyThem) {
  for (int i = 0; i < 50; ++i) {
    Program p;
    std::atomic<int> gone{0};
    const auto destroy = [&] {
      gone += ibv_destroy_qp(p.qp) == 0 ? 1 : 0;
      gone += ibv_destroy_ah(p.ah) == 0 ? 1 : 0;
    };
    std::thread other(destroy);
    destroy();
    other.join();
    EXPECT_EQ(gone, 2);
  }
}

TEST(Handles, WithAnotherNumberAreNotUsed) {
  Program p;
  {
    const Altered altered(p.pd->handle);
    ibv_qp_init_attr init = p.plain();
    expect_null(ibv_create_qp(p.pd, &init), EINVAL);
    expect_null(ibv_reg_mr(p.pd, p.memory.data(), 100, 0), EINVAL);
    expect_null(ibv_alloc_mw(p.pd, IBV_MW_TYPE_1), EINVAL);
    ibv_ah_attr to = p.address();
    expect_null(ibv_create_ah(p.pd, &to), EINVAL);
    ibv_srq_init_attr shared{};
    shared.attr = {16, 1, 0};
    expect_null(ibv_create_srq(p.pd, &shared), EINVAL);
  }
  {
    const Altered altered(p.cq->handle);
    ibv_qp_init_attr init = p.plain();
    expect_null(ibv_create_qp(p.pd, &init), EINVAL);
    expect_error(ibv_resize_cq(p.cq, 100), EINVAL);
  }
  {
    const Altered altered(p.srq->handle);
    ibv_qp_init_attr init = p.plain();
    init.srq = p.srq;
    expect_null(ibv_create_qp(p.pd, &init), EINVAL);
    ibv_srq_attr attr{};
    expect_error(ibv_query_srq(p.srq, &attr), EINVAL);
    expect_error(ibv_modify_srq(p.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
  }
  const Altered altered(p.qp->handle);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  expect_error(ibv_query_qp(p.qp, &attr, 0, &init), EINVAL);
  attr.qp_state = IBV_QPS_ERR;
  expect_error(ibv_modify_qp(p.qp, &attr, IBV_QP_STATE), EINVAL);
}

TEST(Handles, OfAnotherContextAreRefused) {
  Program ours;
  Program theirs;
  const auto refused = [&](auto change) {
    ibv_qp_init_attr init = ours.plain();
    change(init);
    errno = 0;
    expect_null(ibv_create_qp(ours.pd, &init), EINVAL);
  };
  refused([&](ibv_qp_init_attr& a) { a.send_cq = theirs.cq; });
  refused([&](ibv_qp_init_attr& a) { a.recv_cq = theirs.cq; });
  refused([&](ibv_qp_init_attr& a) { a.srq = theirs.srq; });
  refused([&](ibv_qp_init_attr& a) { a.send_cq = nullptr; });
  expect_null(ibv_create_cq(ours.context, 16, nullptr, theirs.channel, 0), EINVAL);
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = ours.cq;
  init.cap = {4, 4, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = theirs.pd;
  expect_null(ibv_create_qp_ex(ours.context, &init), EINVAL);
  init.pd = ours.pd;
  EXPECT_NE(ibv_create_qp_ex(ours.context, &init), nullptr);
}

// The undefined-behaviour sanitizer watches how they are read.
TEST(Numbers, ThatAreNoEnumeratorAreRefused) {
  Program p;
  for (const std::uint32_t number : {7U, 8U, 255U, 0xFFFF'FFFFU}) {
    ibv_qp_attr attr{};
    set_raw(attr.qp_state, number);
    expect_error(ibv_modify_qp(p.qp, &attr, IBV_QP_STATE), EINVAL);
    attr = {};
    attr.qp_state = IBV_QPS_INIT;
    set_raw(attr.cur_qp_state, number);
    expect_error(ibv_modify_qp(p.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
    set_raw(attr.path_mtu, number);
    expect_error(ibv_modify_qp(p.qp, &attr, IBV_QP_PATH_MTU), EINVAL);
    // What the mask does not name may be anything.
    attr.port_num = 1;
    EXPECT_EQ(
        ibv_modify_qp(p.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    attr = {};
    attr.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(p.qp, &attr, IBV_QP_STATE), 0);

    ibv_qp_init_attr init = p.plain();
    set_raw(init.qp_type, number);
    expect_null(ibv_create_qp(p.pd, &init), EOPNOTSUPP);
    expect_null(alloc_mw(p.pd, number), EINVAL);
    ibv_srq_init_attr_ex shared{};
    shared.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    shared.attr = {16, 1, 0};
    shared.pd = p.pd;
    set_raw(shared.srq_type, number);
    // The header's inline function would read it.
    expect_null(verbs_get_ctx(p.context)->create_srq_ex(p.context, &shared), EOPNOTSUPP);
    ibv_async_event event{};
    set_raw(event.event_type, 1000 + number % 1000);
    ibv_ack_async_event(&event);
    EXPECT_STREQ(status_text(1000 + number % 1000), "unknown");
    EXPECT_EQ(mbps_of(1000 + number % 1000), -1);
  }
  EXPECT_EQ(mult_to_ibv_rate(INT32_MAX), IBV_RATE_MAX);
}

TEST(Numbers, OfARequestThatAreNoneAreRefused) {
  Program p;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(p.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  attr.qp_state = IBV_QPS_ERR;  // where requests are taken, and flushed
  ASSERT_EQ(ibv_modify_qp(p.qp, &attr, IBV_QP_STATE), 0);
  ibv_send_wr* bad = nullptr;
  for (const std::uint32_t number : {10U, 100U, 0xFFFF'FFFFU}) {
    ibv_send_wr wr{};
    set_raw(wr.opcode, number);
    expect_error(ibv_post_send(p.qp, &wr, &bad), EINVAL);
    EXPECT_EQ(bad, &wr);
  }
  ibv_sge sge{};
  ibv_recv_wr receive{};
  receive.sg_list = &sge;
  ibv_recv_wr* bad_receive = nullptr;
  for (const int count : {-1, 2, 33, 1'000'000}) {
    receive.num_sge = count;
    expect_error(ibv_post_recv(p.qp, &receive, &bad_receive), EINVAL);
    EXPECT_EQ(bad_receive, &receive);
  }
}

TEST(Answers, AreInErrnoToo) {
  Program p;
  errno = 0;
  expect_error(ibv_dealloc_pd(p.pd), EBUSY);
  errno = 0;
  expect_error(ibv_destroy_cq(p.cq), EBUSY);
  errno = 0;
  expect_error(ibv_destroy_comp_channel(p.channel), EBUSY);
  errno = 0;
  ibv_port_attr port{};
  expect_error(ibv_query_port(p.context, 2, &port), EINVAL);
  errno = 0;
  expect_null(ibv_reg_mr(p.pd, nullptr, 100, 0), EFAULT);
  errno = 0;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  expect_error(ibv_modify_qp(p.qp, &attr, IBV_QP_STATE), EINVAL);
  errno = 0;
  EXPECT_EQ(ibv_req_notify_cq(p.cq, 0), 0);
  EXPECT_EQ(errno, 0);
}

TEST(Answers, OfPostingsAreInErrnoToo) {
  Program p;
  ibv_srq_init_attr init{};
  init.attr = {1, 1, 0};
  ibv_srq* const srq = ibv_create_srq(p.pd, &init);
  ASSERT_NE(srq, nullptr);
  ibv_sge pieces[64]{};
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  ibv_send_wr* bad_send = nullptr;
  errno = 0;
  expect_error(ibv_post_send(p.qp, &send, &bad_send), EINVAL);  // it is in RESET
  EXPECT_EQ(bad_send, &send);
  ibv_recv_wr receive{};
  receive.sg_list = pieces;
  receive.num_sge = 64;  // more than was granted
  ibv_recv_wr* bad = nullptr;
  errno = 0;
  expect_error(ibv_post_recv(p.qp, &receive, &bad), EINVAL);
  EXPECT_EQ(bad, &receive);
  bad = nullptr;
  errno = 0;
  expect_error(ibv_post_srq_recv(srq, &receive, &bad), EINVAL);
  EXPECT_EQ(bad, &receive);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

// A process knows at most 4096 peers at a time, and any number one after another.
TEST(Peers, AreLimitedAtATimeAndNotInAll) {
  Program p;
  ibv_ah_attr to = p.address();
  for (int i = 0; i < 10'000; ++i) {
    to.grh.dgid.raw[14] = static_cast<std::uint8_t>(i / 200);
    to.grh.dgid.raw[15] = static_cast<std::uint8_t>(1 + i % 200);
    ibv_ah* const ah = ibv_create_ah(p.pd, &to);
    ASSERT_NE(ah, nullptr) << i;
    ASSERT_EQ(ibv_destroy_ah(ah), 0);
  }
}

// Another setting is another device; one that is opened already keeps its own.
TEST(Lists, NameTheDeviceOfTheSettingsThereAre) {
  choose_address();
  ibv_device** const first = ibv_get_device_list(nullptr);
  setenv("WEFT_ADDR", "127.0.0.9", 1);
  ibv_device** const second = ibv_get_device_list(nullptr);
  EXPECT_NE(first[0], second[0]);
  EXPECT_NE(ibv_get_device_guid(first[0]), ibv_get_device_guid(second[0]));
  ibv_free_device_list(first);
  ibv_free_device_list(second);
}

}  // namespace
}  // namespace weft::live::abi
