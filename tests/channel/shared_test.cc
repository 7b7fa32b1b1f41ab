// One receive queue for all channels of a context (src/channel/shared.h). That channels work over it at all
// is said by worlds_test.cc, which runs every one of its tests over it, too.
#include "channel/report.h"
#include "tests/channel/null_port.h"
#include "tests/channel/worlds.h"

namespace weft::channel_test {
namespace {

constexpr std::uint32_t kChannels = 4;
constexpr std::uint32_t kDepth = 8;
constexpr std::uint32_t kEach = kDepth + 8;  // receives that one channel's peer may fill

class SharedReceives : public ::testing::Test {
 protected:
  void start(std::uint32_t entries, std::uint64_t memory = 16U << 20U, std::uint32_t small = 4096) {
    Config config = small_config();
    config.small = small;
    config.channels = kChannels;
    config.depth = kDepth;
    config.queue = 0;
    config.use_srq = true;
    config.srq_size = entries;
    config.memory = Bytes{memory};
    world = std::make_unique<NicWorld>(config);
    ASSERT_EQ(world->a().error, "");
    ASSERT_TRUE(b().listen(kService).has_value());
    for (std::uint32_t i = 0; i < kChannels; ++i)
      ASSERT_TRUE(a().connect(world->address_b(), kService, i).has_value());
    world->run(microseconds(100));
    while (!world->b().notices.empty()) b().accept(*world->b().take().channel, 0);
    world->run(microseconds(100));
    while (!world->a().notices.empty()) {
      const Notice n = world->a().take();
      if (n.kind == Notice::Kind::kOpened) at_a.push_back(n.channel);
    }
    while (!world->b().notices.empty()) {
      const Notice n = world->b().take();
      if (n.kind == Notice::Kind::kOpened) at_b.push_back(n.channel);
    }
  }
  // Each channel of a has as much on its way as its window lets.
  void fill_windows(std::uint32_t length) {
    for (Channel* const c : at_a) {
      for (std::uint32_t i = 0; i < kDepth; ++i) {
        Message* const m = world->a().make(length, i);
        ASSERT_NE(m, nullptr);
        ASSERT_TRUE(a().send(*c, m, i, true).has_value());
      }
    }
  }
  // What b has been told, and a.
  std::size_t messages_at_b() const {
    return static_cast<std::size_t>(
        std::count_if(world->b().notices.begin(), world->b().notices.end(),
                      [](const Notice& n) { return n.kind == Notice::Kind::kMessage; }));
  }
  void release_all_at_b() {
    while (!world->b().notices.empty()) b().release(world->b().take().message);
  }
  Context& a() { return *world->a().context; }
  Context& b() { return *world->b().context; }
  const channel::SharedQueue& queue() { return b().shared_receives(); }

  std::unique_ptr<NicWorld> world;
  std::vector<Channel*> at_a;
  std::vector<Channel*> at_b;
};

// b's program is elsewhere while every peer sends what its window lets. Each frame finds a receive.
TEST_F(SharedReceives, OfAsManyEntriesAsPeersMayFillLackNone) {
  start(kChannels * kEach);
  ASSERT_EQ(at_b.size(), kChannels);
  EXPECT_EQ(queue().posted(), kChannels * kEach);
  fill_windows(100);
  world->pass(milliseconds(1));
  world->run(microseconds(200));
  EXPECT_EQ(messages_at_b(), kChannels * kDepth);
  EXPECT_EQ(world->not_ready(), 0U);
  // What the program holds needs no receive until it is given back: the memory is that of the windows.
  EXPECT_EQ(queue().posted(), kChannels * (kEach - kDepth));
  EXPECT_EQ(b().own_memory().in_use, kChannels * kEach * (queue().bytes() / queue().posted()));
  release_all_at_b();
  EXPECT_EQ(queue().posted(), kChannels * kEach);
  world->run(microseconds(200));
  EXPECT_EQ(world->a().notices.size(), kChannels * kDepth);  // all are told delivered
}

// The queue is as long as one channel needs. Blocks that messages take are replaced, so all that the windows
// let arrives although the program gives nothing back; idle channels cost nothing.
TEST_F(SharedReceives, AreReplacedWhileTheProgramHoldsWhatItGot) {
  start(kEach);
  ASSERT_EQ(at_b.size(), kChannels);
  const std::uint64_t idle = b().own_memory().in_use;
  EXPECT_EQ(idle, queue().bytes());
  EXPECT_EQ(queue().posted(), kEach);
  fill_windows(100);
  world->run(microseconds(500));
  EXPECT_EQ(messages_at_b(), kChannels * kDepth);
  EXPECT_EQ(queue().posted(), kEach);
  EXPECT_EQ(b().own_memory().in_use, idle / kEach * (kEach + kChannels * kDepth));
  release_all_at_b();
  EXPECT_EQ(b().own_memory().in_use, idle);  // what the queue does not need goes back
  world->run(microseconds(200));
  EXPECT_EQ(world->a().notices.size(), kChannels * kDepth);
}

// The same, and b's program is elsewhere: frames find no receive and are sent again. Nothing is lost, and it
// is counted here, too.
TEST_F(SharedReceives, ThatAreUsedUpAreCountedAndNothingIsLost) {
  start(kEach);
  fill_windows(100);
  world->pass(microseconds(100));
  EXPECT_GT(world->not_ready(), 0U);
  EXPECT_EQ(queue().counts().used_up, 0U);
  world->run(milliseconds(2));
  EXPECT_GT(queue().counts().used_up, 0U);
  EXPECT_EQ(queue().counts().most_due, kChannels * kEach);
  EXPECT_EQ(messages_at_b(), kChannels * kDepth);
  EXPECT_NE(report(b()).find("used up"), std::string::npos) << report(b());
}

// Three channels bring long messages that b holds, until they wait for memory. The fourth brings small ones:
// the memory for their frames was set aside.
TEST_F(SharedReceives, HaveTheirMemorySetAside) {
  start(kEach, 1536U << 10U, 16'000);  // 15 frames in a region, of which there are six
  ASSERT_EQ(at_b.size(), kChannels);
  std::vector<Message*> small;
  for (std::uint32_t k = 0; k < kDepth; ++k) small.push_back(world->a().make(10, k));
  for (std::uint32_t i = 0; i < 3; ++i) {
    for (std::uint32_t k = 0; k < kDepth; ++k) {
      Message* const m = world->a().make(50'000, k);
      if (m == nullptr) break;  // a's own memory is as little
      ASSERT_TRUE(a().send(*at_a[i], m, k, true).has_value());
    }
    world->run(microseconds(500));
  }
  for (Message* const m : small) ASSERT_TRUE(a().send(*at_a[3], m, 0, true).has_value());
  world->run(microseconds(500));
  EXPECT_GT(b().counts().starved, 0U);
  EXPECT_EQ(queue().counts().short_of, 0U);
  EXPECT_EQ(queue().posted(), kEach);
  std::uint32_t told = 0;
  for (const Notice& n : world->b().notices) told += n.message->length == 10 ? 1U : 0U;
  EXPECT_EQ(told, kDepth);
}

// A channel that could not have what its peer may send is refused, and the others do not notice.
TEST(SharedReceivesWithoutMemory, RefuseTheChannelThatWouldBeOneTooMany) {
  NullPort port;
  Config config = small_config();
  config.depth = 24;  // 32 receives of 4.4 KB each: a region of 256 KB has 59
  config.use_srq = true;
  config.srq_size = 32;
  config.memory = config.region;
  NullPort peer;
  port.meet(peer);
  const auto context = std::move(*Context::open(port, config, 1));
  ASSERT_TRUE(context->connect(wire::Address::v4(10, 0, 0, 2), kService, 0).has_value());
  EXPECT_EQ(context->connect(wire::Address::v4(10, 0, 0, 2), kService, 0).error(), Errc::kNoMemory);
  EXPECT_EQ(context->shared_receives().users(), 1U);
  context->poll(Time{} + seconds(1));
  context->check_invariants();
}

TEST(Limits, OfAConnectionAndOfMessagesAreSaid) {
  Config config = small_config();
  config.terms.timeout = 32;
  EXPECT_EQ(config.validate().error().message, "timeout = 32: it must lie between 0 and 31");
  config = small_config();
  config.terms.mtu = 8192;
  EXPECT_EQ(config.validate().error().message, "mtu = 8192: it must lie between 256 and 4096");
  config = small_config();
  config.small = config.largest = 1U << 20U;
  config.region = config.memory = Bytes{1U << 20U};
  EXPECT_EQ(config.validate().error().message,
            "memory = 1048576: half of it is the longest message, which must not be shorter than "
            "small_msg_size, 1048576");
}

TEST(QueueSizes, AreFixedAndSaidWhenTheyAreTooSmall) {
  NullPort port;
  Config config = small_config();
  config.srq_size = 39;
  EXPECT_EQ(config.validate().error().message, "srq_size = 39: it must lie between 40 and 1048576");
  config.srq_size = 40;
  config.use_srq = true;
  config.cq_size = 50;
  EXPECT_EQ(Context::open(port, config, 1).error().message,
            "cq_size = 50: one channel of depth 32 needs 104");
  config.cq_size = 40 + 2 * 64;
  NullPort peer;
  port.meet(peer);
  const auto context = std::move(*Context::open(port, config, 1));
  for (const char* name : {"use_srq", "srq_size", "cq_size"})
    EXPECT_EQ(
        context->set(name, 1).error().message,
        std::string(name) + " is fixed when a context is made; it cannot change while the context is in use");
  // The completion queue has room for two of the four channels.
  for (const bool room : {true, true, false})
    EXPECT_EQ(context->connect(wire::Address::v4(10, 0, 0, 2), kService, 0).has_value(), room);
}

}  // namespace
}  // namespace weft::channel_test
