// Contexts that close with everything still open, and resources that go while others come: in one thread and
// in several. The sanitizer builds run the same tests and see what a lucky run does not.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/wire/codec.h"
#include "live/engine/two_ends.h"
#include "trace/tshark.h"

namespace {
bool in_forked_child = false;
}  // namespace

// The leak sanitizer asks this at exit. A forked child has its parent's memory without its parent's threads,
// so what only their stacks pointed at would count as leaked.
extern "C" int __lsan_is_turned_off() { return in_forked_child ? 1 : 0; }

namespace weft::live {
namespace {

std::shared_ptr<Nic> nic() {
  Options o;
  o.own.first = host(1);
  return *open_nic(o);
}

// Every kind of resource twice, none destroyed: closing takes them all, so the next context finds an empty
// Nic.
TEST(Closing, TakesEveryResourceWithIt) {
  const auto shared = nic();
  std::vector<std::uint8_t> memory(4096);
  for (int round = 0; round < 3; ++round) {
    const auto context = *Context::open(shared);
    for (int i = 0; i < 2; ++i) {
      const PdId pd = *context->alloc_pd();
      const auto mr = context->register_mr(pd, memory.data(), memory.size(), 0, kLocalWrite);
      ASSERT_TRUE(mr.has_value());
      ASSERT_TRUE(context->alloc_window(pd, WindowType::k1).has_value());
      CompletionChannel* const channel = *context->create_channel();
      Cq* const cq = *context->create_cq(16, channel, nullptr);
      Srq* const srq = *context->create_srq(pd, {}, nullptr);
      ASSERT_TRUE(context->create_ah(pd, {host(2)}).has_value());
      QpInit init;
      init.pd = pd;
      init.send_cq = init.recv_cq = cq->id;
      init.srq = srq->id;
      ASSERT_TRUE(context->create_qp(init, nullptr).has_value());
    }
  }
}

// Two threads use the context that stays, two open and close others meanwhile.
TEST(Closing, DoesNotDisturbOtherContextsAtWork) {
  const auto shared = nic();
  const auto stays = *Context::open(shared);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  const auto use = [](Context& c) {
    const PdId pd = *c.alloc_pd();
    CompletionChannel* const channel = *c.create_channel();
    Cq* const cq = *c.create_cq(16, channel, nullptr);
    QpInit init;
    init.pd = pd;
    init.send_cq = init.recv_cq = cq->id;
    Qp* const qp = *c.create_qp(init, nullptr);
    const AhId ah = *c.create_ah(pd, {host(2)});
    return std::tuple(pd, channel, cq, qp, ah);
  };
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!done) {
        const auto [pd, channel, cq, qp, ah] = use(*stays);
        EXPECT_TRUE(stays->destroy_ah(ah).has_value());
        EXPECT_TRUE(stays->destroy_qp(qp).has_value());
        EXPECT_TRUE(stays->destroy_cq(cq).has_value());
        EXPECT_TRUE(stays->destroy_channel(channel).has_value());
        EXPECT_TRUE(stays->dealloc_pd(pd).has_value());
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const auto passing = *Context::open(shared);
        use(*passing);
        use(*passing);
      }
      done = true;
    });
  }
  for (std::thread& t : threads) t.join();
}

// One thread destroys the last queue of a channel, another the channel as soon as it may.
TEST(Closing, AChannelOutlivesTheEndOfItsQueues) {
  const auto shared = nic();
  const auto context = *Context::open(shared);
  for (int i = 0; i < 300; ++i) {
    CompletionChannel* const channel = *context->create_channel();
    Cq* const cq = *context->create_cq(16, channel, nullptr);
    std::thread other([&] {
      while (!context->destroy_channel(channel)) std::this_thread::yield();
    });
    EXPECT_TRUE(context->destroy_cq(cq).has_value());
    other.join();
  }
}

// A queue pair that used another context's queues would dangle when that one closes.
TEST(Closing, NoObjectUsesAnotherContexts) {
  const auto shared = nic();
  const auto ours = *Context::open(shared);
  const auto theirs = *Context::open(shared);
  const PdId pd = *ours->alloc_pd();
  const PdId their_pd = *theirs->alloc_pd();
  Cq* const cq = *ours->create_cq(16, nullptr, nullptr);
  Cq* const their_cq = *theirs->create_cq(16, nullptr, nullptr);
  QpInit good;
  good.pd = pd;
  good.send_cq = good.recv_cq = cq->id;
  std::vector<QpInit> bad(4, good);
  bad[0].pd = their_pd;
  bad[1].send_cq = their_cq->id;
  bad[2].recv_cq = their_cq->id;
  bad[3].srq = (*theirs->create_srq(their_pd, {}, nullptr))->id;
  for (const QpInit& init : bad) EXPECT_EQ(ours->create_qp(init, nullptr).error(), Errc::kInvalid);
  EXPECT_TRUE(ours->create_qp(good, nullptr).has_value());

  CompletionChannel* const their_channel = *theirs->create_channel();
  EXPECT_EQ(ours->create_cq(16, their_channel, nullptr).error(), Errc::kInvalid);
  std::vector<std::uint8_t> memory(4096);
  EXPECT_EQ(ours->register_mr(their_pd, memory.data(), 4096, 0, 0).error(), Errc::kInvalid);
  EXPECT_EQ(ours->alloc_window(their_pd, WindowType::k1).error(), Errc::kInvalid);
  EXPECT_EQ(ours->create_srq(their_pd, {}, nullptr).error(), Errc::kInvalid);
  EXPECT_EQ(ours->create_ah(their_pd, {host(2)}).error(), Errc::kInvalid);
  EXPECT_EQ(ours->dealloc_pd(their_pd).error(), Errc::kNotFound);
  EXPECT_EQ(ours->destroy_ah(*theirs->create_ah(their_pd, {host(2)})).error(), Errc::kNotFound);
  const Mr their_mr = *theirs->register_mr(their_pd, memory.data(), 4096, 0, 0);
  EXPECT_EQ(ours->deregister_mr(their_mr.lkey).error(), Errc::kNotFound);
  EXPECT_EQ(ours->dealloc_window(*theirs->alloc_window(their_pd, WindowType::k1)).error(), Errc::kNotFound);
}

// A child that closes what its parent opened ends, and neither the parent nor the peer notices: the queue
// pairs are the parent's. The child's threads are gone, and one of them may have been inside the Nic.
TEST(Closing, InAForkedChildEndsAndConcernsNobody) {
  End a(1);
  End b(2);
  a.connect(b);
  b.connect(a);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 8; ++i) a.post(WrOpcode::kWrite, 0, 0, 65536, b, 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(10);
      a.post(WrOpcode::kWrite, 0, 0, 4096, b, 0);
      Completion c;
      a.context->poll_cq(a.cq, {&c, 1});
      static_cast<void>(a.context->destroy_qp(a.qp));
      for (End* end : {&a, &b}) {
        end->context.reset();
        end->nic.reset();
      }
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    for (const Completion& c : a.wait(8)) EXPECT_EQ(c.status, WcStatus::kSuccess);
  }
}

// A program that sends and ends, with its device open: what --delay out holds leaves before the process is
// gone.
TEST(Closing, ByExitSendsWhatIsHeldBack) {
  const wire::Address to = host(9);
  const int peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(wire::kUdpPort);
  std::memcpy(&at.sin_addr, &to.bytes[12], 4);
  ASSERT_EQ(bind(peer, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    Options o;
    o.mode = wire::Mode::kRoce;
    o.line.impairments.delay = seconds(60);
    auto* const a = new End(1, o);  // and it stays open
    QpAttr attr;
    attr.mtu = 4096;
    attr.dest_qpn = {5};
    a->to_rts(attr, to);
    a->post(WrOpcode::kSend, 0, 0, 100, *a, 0);
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  char bytes[4096];
  EXPECT_GT(recv(peer, bytes, sizeof bytes, MSG_DONTWAIT), 100);
  close(peer);
}

// Parent and child trace under one name, as WEFT_TRACE in the environment has it: the child's own device gets
// a file of its own, whole when it ends by exit(), and the parent's goes on as if there were no child.
TEST(Closing, OfAForkedChildWithADeviceOfItsOwnLeavesTwoWholeTraces) {
  if (!trace::has_tshark()) GTEST_SKIP() << "no tshark; ./dev setup installs it";
  std::string folder = "/tmp/weft-fork-trace-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  Options o;
  o.mode = wire::Mode::kRoce;
  o.trace = folder + "/t.pcapng";
  const auto write_each_way = [](End& a, End& b) {
    a.connect(b);
    b.connect(a);
    a.post(WrOpcode::kWrite, 0, 0, 10'000, b, 0);
    const auto done = a.wait(1);
    return done.size() == 1 && done[0].status == WcStatus::kSuccess;
  };
  pid_t child = -1;
  {
    End a(1, o);
    End b(2);
    ASSERT_TRUE(write_each_way(a, b));
    child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      in_forked_child = true;
      alarm(60);
      auto* const own = new End(3, o);  // both stay open
      auto* const other = new End(4);
      std::exit(write_each_way(*own, *other) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    for (int i = 0; i < 8; ++i) a.post(WrOpcode::kWrite, 0, 0, 10'000, b, 0);
    for (const Completion& c : a.wait(8)) EXPECT_EQ(c.status, WcStatus::kSuccess);
  }
  // Three packets of 4096 bytes and less for each WRITE, and at least one answer.
  const std::string childs = folder + "/t." + std::to_string(child) + ".pcapng";
  for (const auto& [name, requests] : {std::pair{o.trace, 27U}, std::pair{childs, 3U}}) {
    std::size_t writes = 0;
    const auto rows = trace::dissect(name, {"infiniband.bth.opcode"});
    for (const auto& row : rows) writes += std::stoi(row.at(0)) >= 6 && std::stoi(row.at(0)) <= 11 ? 1 : 0;
    EXPECT_GE(writes, requests) << name;
    EXPECT_GT(rows.size(), writes) << name;
    EXPECT_EQ(unlink(name.c_str()), 0) << name;
  }
  EXPECT_EQ(rmdir(folder.c_str()), 0);
}

}  // namespace
}  // namespace weft::live
