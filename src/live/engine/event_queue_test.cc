// Descriptors and what they announce: readable exactly while an event waits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <thread>

#include "live/engine/sleepers.h"
#include "live/engine/two_ends.h"

namespace weft::live {
namespace {

bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

// A Nic with one context, and queue pairs in the error state: every receive posted to one completes at once.
struct Events : testing::Test {
  Events() {
    Options o;
    o.own.first = host(1);
    nic = *open_nic(o);
    context = *Context::open(nic);
    pd = *context->alloc_pd();
    channel = *context->create_channel();
    fd = context->channel_fd(channel);
  }
  Qp* failed_qp(const Cq* cq) {
    QpInit init;
    init.pd = pd;
    init.send_cq = init.recv_cq = cq->id;
    Qp* const qp = *context->create_qp(init, nullptr);
    QpAttr a;
    a.state = QpState::kInit;
    CHECK(context->modify_qp(qp, a, kAttrState | kAttrPkeyIndex | kAttrPort | kAttrAccess).has_value());
    a.state = QpState::kErr;
    CHECK(context->modify_qp(qp, a, kAttrState).has_value());
    return qp;
  }
  void complete_one(Qp* qp) {
    Posting posting(*context, qp);
    CHECK(posting.receive({}).has_value());
  }
  void armed_and_complete(Cq* cq, Qp* qp) {
    ASSERT_TRUE(context->request_notify(cq, false).has_value());
    complete_one(qp);
  }
  void quick() { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

  std::shared_ptr<Nic> nic;
  std::unique_ptr<Context> context;
  PdId pd{};
  CompletionChannel* channel = nullptr;
  int fd = -1;
};

// poll() said readable, then the queue went with its event: a blocking get would never return.
TEST_F(Events, OfADestroyedQueueLeaveItsChannelQuiet) {
  Cq* const cq = *context->create_cq(16, channel, nullptr);
  Qp* const qp = failed_qp(cq);
  armed_and_complete(cq, qp);
  ASSERT_TRUE(readable(fd));
  ASSERT_TRUE(context->destroy_qp(qp).has_value());
  ASSERT_TRUE(readable(fd));  // the completion is the queue's
  ASSERT_TRUE(context->destroy_cq(cq).has_value());
  EXPECT_FALSE(readable(fd));
  quick();
  EXPECT_EQ(context->get_cq_event(channel), nullptr);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Events, OfOneQueueStayWhenAnotherGoes) {
  Cq* const goes = *context->create_cq(16, channel, nullptr);
  Cq* const stays = *context->create_cq(16, channel, nullptr);
  Qp* const first = failed_qp(goes);
  Qp* const second = failed_qp(stays);
  armed_and_complete(goes, first);
  armed_and_complete(stays, second);
  ASSERT_TRUE(context->destroy_qp(first).has_value());
  ASSERT_TRUE(context->destroy_cq(goes).has_value());
  ASSERT_TRUE(readable(fd));
  EXPECT_EQ(context->get_cq_event(channel), stays);
  EXPECT_FALSE(readable(fd));
  context->ack_cq_events(stays, 1);
}

// Two events, two gets: the descriptor stays readable in between.
TEST_F(Events, KeepTheDescriptorReadableUntilTheLastIsTaken) {
  Cq* const cqs[] = {*context->create_cq(16, channel, nullptr), *context->create_cq(16, channel, nullptr)};
  for (Cq* cq : cqs) armed_and_complete(cq, failed_qp(cq));
  for (Cq* cq : cqs) {
    ASSERT_TRUE(readable(fd));
    ASSERT_EQ(context->get_cq_event(channel), cq);
    context->ack_cq_events(cq, 1);
  }
  EXPECT_FALSE(readable(fd));
}

// The queue overflows: an asynchronous event, which goes with the queue.
TEST_F(Events, OfADestroyedQueueLeaveTheContextQuiet) {
  Cq* const cq = *context->create_cq(1, nullptr, nullptr);
  Qp* const qp = failed_qp(cq);
  for (std::uint32_t i = 0; i < cq->entries + 2; ++i) complete_one(qp);
  ASSERT_TRUE(readable(context->async_fd()));
  ASSERT_TRUE(context->destroy_qp(qp).has_value());
  ASSERT_TRUE(context->destroy_cq(cq).has_value());
  EXPECT_FALSE(readable(context->async_fd()));
}

// Events come and are taken back while a reader waits for them: it takes those it meets in time, sleeps
// through the others, and wakes for the one that stays.
TEST_F(Events, ReachASleeperThoughOthersAreTakenBack) {
  Cq* const stays = *context->create_cq(16, channel, nullptr);
  Qp* const qp = failed_qp(stays);
  std::thread sleeper([&] {
    for (Cq* got = nullptr; got != stays;) {
      got = context->get_cq_event(channel);
      ASSERT_NE(got, nullptr);
      context->ack_cq_events(got, 1);
    }
  });
  for (int i = 0; i < 200; ++i) {
    Cq* const goes = *context->create_cq(16, channel, nullptr);
    Qp* const its = failed_qp(goes);
    armed_and_complete(goes, its);
    ASSERT_TRUE(context->destroy_qp(its).has_value());
    ASSERT_TRUE(context->destroy_cq(goes).has_value());
  }
  armed_and_complete(stays, qp);
  sleeper.join();
  EXPECT_FALSE(readable(fd));
}

// As read() does: a handler installed with SA_RESTART does not end the wait, one without does.
TEST_F(Events, AreWaitedForAsReadWaits) {
  for (const int flags : {SA_RESTART, 0}) {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = flags;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    Cq* const cq = *context->create_cq(16, channel, nullptr);
    Qp* const qp = failed_qp(cq);
    const Cq* got = nullptr;
    int error = 0;
    std::atomic<int> tid{0};
    std::atomic<bool> done{false};
    std::thread sleeper([&] {
      tid = gettid();
      got = context->get_cq_event(channel);
      error = errno;
      done = true;
    });
    while (tid == 0 || (!asleep(tid) && !done)) std::this_thread::yield();
    // It may have slept elsewhere than in read(): the signal is sent until it has been heard there.
    const int signals = flags != 0 ? 5 : INT_MAX;
    for (int i = 0; i < signals && !done; ++i) {
      pthread_kill(sleeper.native_handle(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_EQ(done, flags == 0);
    if (flags != 0) armed_and_complete(cq, qp);
    sleeper.join();
    EXPECT_EQ(got, flags != 0 ? cq : nullptr);
    EXPECT_EQ(error, flags == 0 ? EINTR : error);
    if (got != nullptr) context->ack_cq_events(cq, 1);
    ASSERT_TRUE(context->destroy_qp(qp).has_value());
    ASSERT_TRUE(context->destroy_cq(cq).has_value());
  }
}

}  // namespace
}  // namespace weft::live
