// Channels over a simulated NIC and over a pair world under its referee.
#include "tests/channel/worlds.h"

namespace weft::channel_test {
namespace {

template <class W>
class Channels : public ::testing::Test {
 protected:
  void TearDown() override {
    if (world) {
      EXPECT_EQ(world->findings(), "");
    }
  }
  void start(const Config& config) {
    world = std::make_unique<W>(config);
    ASSERT_EQ(world->a().error, "");
    ASSERT_EQ(world->b().error, "");
    world->connect(at_a, at_b);
  }
  // Everything of both ends has been given back.
  void expect_nothing_left() {
    for (User* u : {&world->a(), &world->b()}) {
      EXPECT_EQ(u->context->own_memory().in_use, u->context->shared_receives().bytes());
      EXPECT_EQ(u->context->lent_memory().in_use, 0U);
      EXPECT_EQ(u->context->open_channels(), 0U);
      EXPECT_EQ(u->context->outstanding(), 0U);
    }
    EXPECT_EQ(world->not_ready(), 0U);
  }
  std::unique_ptr<World> world;
  Channel* at_a = nullptr;
  Channel* at_b = nullptr;
};
// The same with one receive queue for all channels: of as many entries as peers may fill, or of so few that
// they may find none.
template <class W, bool promises>
class Sharing final : public W {
 public:
  explicit Sharing(const Config& config) : W(shared(config)) {}

 private:
  static Config shared(Config c) {
    c.use_srq = true;
    c.srq_size = promises ? 256 : c.depth + 8;
    return c;
  }
};
using Worlds = ::testing::Types<NicWorld, PairWorld, Sharing<NicWorld, true>, Sharing<PairWorld, true>,
                                Sharing<NicWorld, false>, Sharing<PairWorld, false>>;
TYPED_TEST_SUITE(Channels, Worlds);

TYPED_TEST(Channels, CarryASmallMessageAndSayWhenItIsTaken) {
  this->start(small_config());
  User& a = this->world->a();
  User& b = this->world->b();
  ASSERT_TRUE(a.context->send(*this->at_a, a.make(100, 3), 77, true));
  this->world->run(milliseconds(1));
  const Notice came = b.take();
  ASSERT_EQ(came.kind, Notice::Kind::kMessage);
  EXPECT_TRUE(User::filled(*came.message, 100, 3));
  this->world->run(milliseconds(3));
  EXPECT_TRUE(a.notices.empty());  // nobody has taken it yet
  b.context->release(came.message);
  this->world->run(milliseconds(3));
  const Notice taken = a.take();
  ASSERT_EQ(taken.kind, Notice::Kind::kOutcome);
  EXPECT_EQ(taken.fate, Fate::kDelivered);
  EXPECT_EQ(taken.cookie, 77U);
}

// Sends as fast as it may; the other end takes in bursts, sometimes nothing for a while.
TYPED_TEST(Channels, CarryEveryMessageOnceAndInOrder) {
  Config config = small_config();
  config.depth = 8;
  config.queue = 4;
  this->start(config);
  User& a = this->world->a();
  User& b = this->world->b();
  constexpr std::uint32_t kMessages = 600;
  std::uint32_t sent = 0;
  std::uint32_t taken = 0;
  std::uint32_t delivered = 0;
  std::uint32_t busy = 0;
  Prng random(5);
  std::vector<Message*> held;
  for (int turn = 0; turn < 20'000 && delivered < kMessages; ++turn) {
    while (sent < kMessages) {
      Message* const m = a.make(sent % 7 == 0 ? 9'000 : sent % 300, sent);
      ASSERT_NE(m, nullptr);
      if (!a.context->send(*this->at_a, m, sent, true)) {
        a.context->release(m);
        ++busy;
        break;
      }
      ++sent;
    }
    this->world->run(microseconds(20));
    while (!b.notices.empty()) {
      const Notice n = b.take();
      ASSERT_EQ(n.kind, Notice::Kind::kMessage);
      ASSERT_TRUE(User::filled(*n.message, taken % 7 == 0 ? 9'000 : taken % 300, taken)) << taken;
      ++taken;
      held.push_back(n.message);
    }
    while (!held.empty() && random.chance(700'000)) {
      const std::size_t at = random.below(held.size());  // in any order
      b.context->release(held[at]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    }
    while (!a.notices.empty()) {
      const Notice n = a.take();
      ASSERT_EQ(n.kind, Notice::Kind::kOutcome);
      ASSERT_EQ(n.fate, Fate::kDelivered);
      ASSERT_EQ(n.cookie, delivered);
      ++delivered;
    }
  }
  EXPECT_EQ(taken, kMessages);
  EXPECT_EQ(delivered, kMessages);
  EXPECT_GT(busy, 0U);
  a.context->close(*this->at_a);
  this->world->run(milliseconds(2));
  EXPECT_EQ(a.take().reason, Reason::kHere);
  EXPECT_EQ(b.take().reason, Reason::kThere);
  this->expect_nothing_left();
}

// A message of many fragments and small ones behind it: whole, and before them.
TYPED_TEST(Channels, FetchWhatIsTooLongForAFrame) {
  Config config = small_config();
  config.fragment = 8192;
  config.outstanding = 3;
  this->start(config);
  User& a = this->world->a();
  User& b = this->world->b();
  ASSERT_TRUE(a.context->send(*this->at_a, a.make(100'000, 1), 1, false));
  ASSERT_TRUE(a.context->send(*this->at_a, a.make(10, 2), 2, false));
  ASSERT_TRUE(a.context->send(*this->at_a, a.make(700'000, 3), 3, false));  // a region of its own
  for (int i = 0; i < 1000; ++i) {
    this->world->run(microseconds(10));
    EXPECT_LE(b.context->outstanding(), 3U);
  }
  const std::uint32_t lengths[] = {100'000, 10, 700'000};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Notice n = b.take();
    ASSERT_EQ(n.kind, Notice::Kind::kMessage);
    EXPECT_TRUE(User::filled(*n.message, lengths[i], i + 1));
    b.context->release(n.message);
  }
  EXPECT_EQ(this->at_b->counts().fragments, 13U + 86U);
  a.context->close(*this->at_a);
  this->world->run(milliseconds(2));
  this->expect_nothing_left();
}

TYPED_TEST(Channels, AnswerRequests) {
  this->start(small_config());
  User& a = this->world->a();
  User& b = this->world->b();
  const std::uint32_t lengths[] = {10, 5'000, 0};
  for (std::uint32_t i = 0; i < 3; ++i)
    ASSERT_TRUE(a.context->call(*this->at_a, a.make(64, i), 100 + i, kNever));
  this->world->run(milliseconds(1));
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Notice n = b.take();
    ASSERT_EQ(n.kind, Notice::Kind::kRequest);
    Message* const answer = i == 2 ? nullptr : b.make(lengths[i], 50 + i);
    ASSERT_TRUE(b.context->answer(*n.message, answer, i == 2 ? 5 : 0, 0));
    b.context->release(n.message);
  }
  this->world->run(milliseconds(1));
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Notice n = a.take();
    ASSERT_EQ(n.kind, Notice::Kind::kResponse);
    EXPECT_EQ(n.cookie, 100U + i);
    EXPECT_EQ(n.message->status, i == 2 ? 5U : 0U);
    EXPECT_TRUE(User::filled(*n.message, lengths[i], 50 + i));
    a.context->release(n.message);
  }
  a.context->close(*this->at_a);
  this->world->run(milliseconds(10));
  this->expect_nothing_left();
}

// One request is answered too late, one is cancelled, one is lost with the channel: each is told once, and
// late answers reach nobody.
TYPED_TEST(Channels, TellEveryRequestThatFails) {
  this->start(small_config());
  User& a = this->world->a();
  User& b = this->world->b();
  const Time now{};
  ASSERT_TRUE(a.context->call(*this->at_a, a.make(64, 0), 1, now + milliseconds(5)));
  const auto second = a.context->call(*this->at_a, a.make(64, 1), 2, kNever);
  ASSERT_TRUE(second);
  ASSERT_TRUE(a.context->call(*this->at_a, a.make(64, 2), 3, kNever));
  this->world->run(milliseconds(6));
  Notice n = a.take();
  EXPECT_EQ(n.kind, Notice::Kind::kOutcome);
  EXPECT_EQ(n.cookie, 1U);
  EXPECT_EQ(n.fate, Fate::kTooLate);
  EXPECT_TRUE(a.context->cancel(*second));
  EXPECT_FALSE(a.context->cancel(*second));
  for (int i = 0; i < 2; ++i) {
    const Notice request = b.take();
    ASSERT_EQ(request.kind, Notice::Kind::kRequest);
    ASSERT_TRUE(b.context->answer(*request.message, nullptr, 0, 0));
    b.context->release(request.message);
  }
  this->world->run(milliseconds(1));
  n = a.take();
  EXPECT_EQ(n.cookie, 2U);
  EXPECT_EQ(n.fate, Fate::kCancelled);
  EXPECT_TRUE(a.notices.empty());
  EXPECT_EQ(a.context->counts().late, 2U);
  const Notice held = b.take();
  ASSERT_EQ(held.kind, Notice::Kind::kRequest);
  b.context->abort(*this->at_b);
  this->world->run(milliseconds(1));
  n = a.take();
  EXPECT_EQ(n.cookie, 3U);
  EXPECT_EQ(n.fate, Fate::kUnknown);
  EXPECT_EQ(a.take().kind, Notice::Kind::kClosed);
  EXPECT_EQ(b.take().kind, Notice::Kind::kClosed);
  b.context->release(held.message);  // after its channel
  this->world->run(milliseconds(1));
  this->expect_nothing_left();
}

// Traffic one way: an ACK of its own for every quarter of the window, and no more.
TYPED_TEST(Channels, AcknowledgeByThemselvesAQuarterOfTheWindowAtATime) {
  Config config = small_config();
  config.depth = 16;
  this->start(config);
  User& a = this->world->a();
  User& b = this->world->b();
  for (std::uint32_t i = 0; i < 400; ++i) {
    ASSERT_TRUE(a.context->send(*this->at_a, a.make(32, i), i, false));
    if (i % 4 != 3) continue;
    this->world->run(microseconds(15));
    while (!b.notices.empty()) b.context->release(b.take().message);
  }
  this->world->run(milliseconds(1));
  EXPECT_EQ(this->at_b->counts().received, 400U);
  EXPECT_GE(this->at_b->counts().acks, 80U);
  EXPECT_LE(this->at_b->counts().acks, 110U);
  EXPECT_EQ(this->world->not_ready(), 0U);
}

// Both fill their windows before either takes anything. Acknowledgements have receives of their own, so both
// go on; what is told late is told after a NOP.
TYPED_TEST(Channels, GoOnWhenBothWindowsAreFull) {
  Config config = small_config();
  config.depth = 8;
  config.queue = 32;
  this->start(config);
  User* users[2] = {&this->world->a(), &this->world->b()};
  Channel* ends[2] = {this->at_a, this->at_b};
  for (int side = 0; side < 2; ++side) {
    for (std::uint32_t i = 0; i < 40; ++i)
      ASSERT_TRUE(users[side]->context->send(*ends[side], users[side]->make(32, i), i, true));
  }
  this->world->run(milliseconds(3));
  std::uint32_t delivered[2] = {};
  for (int turn = 0; turn < 400; ++turn) {
    for (int side = 0; side < 2; ++side) {
      // One message at a time, so that ACKs are early ones and the permission is used up.
      bool took = false;
      for (std::size_t n = users[side]->notices.size(); n-- > 0;) {
        const Notice notice = users[side]->take();
        if (notice.kind == Notice::Kind::kOutcome) {
          ASSERT_EQ(notice.fate, Fate::kDelivered);
          ++delivered[side];
        } else if (took) {
          users[side]->notices.push_back(notice);
        } else {
          ASSERT_EQ(notice.kind, Notice::Kind::kMessage);
          users[side]->context->release(notice.message);
          took = true;
        }
      }
    }
    this->world->run(microseconds(200));
  }
  EXPECT_EQ(delivered[0], 40U);
  EXPECT_EQ(delivered[1], 40U);
  EXPECT_GT(this->at_a->counts().nops + this->at_b->counts().nops, 0U);
  EXPECT_EQ(this->world->not_ready(), 0U);
}

// Silence is probed without a word to the peer's program.
TYPED_TEST(Channels, AskAPeerThatIsSilent) {
  Config config = small_config();
  config.keepalive = milliseconds(2);
  this->start(config);
  this->world->run(milliseconds(21));
  EXPECT_GE(this->at_a->counts().probes, 9U);
  EXPECT_LE(this->at_a->counts().probes, 11U);
  EXPECT_EQ(this->at_b->counts().received, 0U);
  EXPECT_TRUE(this->world->a().notices.empty() && this->world->b().notices.empty());
}

TYPED_TEST(Channels, AreRefusedByAProgramThatDoesNotWantThem) {
  this->world = std::make_unique<TypeParam>(small_config());
  User& a = this->world->a();
  User& b = this->world->b();
  ASSERT_TRUE(b.context->listen(kService).has_value());
  ASSERT_TRUE(a.context->connect(this->world->address_b(), kService, 9).has_value());
  this->world->run(milliseconds(1));
  b.context->refuse(*b.take().channel);
  this->world->run(milliseconds(1));
  const Notice n = a.take();
  EXPECT_EQ(n.kind, Notice::Kind::kClosed);
  EXPECT_EQ(n.reason, Reason::kRefused);
  EXPECT_EQ(n.cookie, 9U);
  b.take();
  ASSERT_TRUE(a.context->connect(this->world->address_b(), kService + 1, 9).has_value());  // nobody listens
  this->world->run(milliseconds(1));
  EXPECT_EQ(a.take().reason, Reason::kRefused);
  this->expect_nothing_left();
}

// Queue pairs of channels that closed serve the next ones.
TYPED_TEST(Channels, ReuseQueuePairs) {
  this->start(small_config());
  User& a = this->world->a();
  User& b = this->world->b();
  for (std::uint32_t round = 0; round < 6; ++round) {
    ASSERT_TRUE(a.context->send(*this->at_a, a.make(50, round), 0, false));
    this->world->run(milliseconds(1));
    const Notice n = b.take();
    ASSERT_EQ(n.kind, Notice::Kind::kMessage);
    EXPECT_TRUE(User::filled(*n.message, 50, round));
    b.context->release(n.message);
    this->world->run(milliseconds(1));
    a.context->close(*this->at_a);
    this->world->run(milliseconds(1));
    ASSERT_EQ(a.take().kind, Notice::Kind::kClosed);
    ASSERT_EQ(b.take().kind, Notice::Kind::kClosed);
    const auto again = a.context->connect(this->world->address_b(), kService, 1);
    ASSERT_TRUE(again);
    this->world->run(milliseconds(1));
    b.context->accept(*b.take().channel, 2);
    this->world->run(milliseconds(1));
    this->at_b = b.take().channel;
    this->at_a = a.take().channel;
  }
  EXPECT_EQ(a.context->counts().fresh_qps, 1U);
  EXPECT_EQ(a.context->counts().reused_qps, 6U);
  EXPECT_EQ(b.context->counts().fresh_qps, 1U);
}

// Memory follows the load: it grows, and is given back when it has been idle.
TYPED_TEST(Channels, GiveIdleMemoryBack) {
  Config config = small_config();
  config.idle_memory = milliseconds(5);
  config.keepalive = milliseconds(1);
  this->start(config);
  User& a = this->world->a();
  User& b = this->world->b();
  this->world->run(milliseconds(12));
  const std::uint64_t idle = b.context->own_memory().registered;
  for (std::uint32_t i = 0; i < 20; ++i)
    ASSERT_TRUE(a.context->send(*this->at_a, a.make(60'000, i), i, false));
  this->world->run(milliseconds(3));
  EXPECT_GT(b.context->own_memory().registered, idle + 20U * 60'000U);
  while (!b.notices.empty()) b.context->release(b.take().message);
  // What was read stays while its answers may be repeated: sixteen time-outs, 16.8 ms.
  this->world->run(milliseconds(11));
  EXPECT_EQ(b.context->own_memory().registered, idle);
  EXPECT_GT(a.context->lent_memory().registered, 0U);
  this->world->run(milliseconds(14));
  EXPECT_EQ(a.context->lent_memory().registered, 0U);
}

// The network is gone long enough for both ends to give up; the session is kept. Every message arrives once.
TEST(Sessions, GoOnAfterTheirConnectionFailed) {
  Config config = small_config();
  config.reconnect = seconds(1);
  config.keepalive = milliseconds(2);
  config.fragment = 4096;
  config.terms.retry_count = 2;
  NicWorld world(config);
  Channel* at_a = nullptr;
  Channel* at_b = nullptr;
  world.connect(at_a, at_b);
  std::uint32_t sent = 0;
  std::uint32_t came = 0;
  std::uint32_t delivered = 0;
  std::vector<Message*> held;
  const auto length = [](std::uint32_t i) { return i % 3 == 0 ? 50'000U : i % 200U; };
  for (int turn = 0; turn < 6000 && delivered < 500; ++turn) {
    if (turn % 200 == 50) world.cut(true);
    if (turn % 200 == 150) world.cut(false);
    while (sent < 500 && sent < static_cast<std::uint32_t>(turn)) {
      Message* const m = world.a().make(length(sent), sent);
      if (!world.a().context->send(*at_a, m, sent, true)) {
        world.a().context->release(m);
        break;
      }
      ++sent;
    }
    world.run(microseconds(100));
    while (!world.b().notices.empty()) {
      const Notice n = world.b().take();
      ASSERT_EQ(n.kind, Notice::Kind::kMessage);
      ASSERT_TRUE(User::filled(*n.message, length(came), came)) << came;
      ++came;
      held.push_back(n.message);
    }
    if (turn % 3 == 0) {
      for (Message* m : held) world.b().context->release(m);
      held.clear();
    }
    while (!world.a().notices.empty()) {
      const Notice n = world.a().take();
      ASSERT_EQ(n.kind, Notice::Kind::kOutcome);
      ASSERT_EQ(n.fate, Fate::kDelivered);
      ASSERT_EQ(n.cookie, delivered++);
    }
  }
  EXPECT_EQ(delivered, 500U);
  EXPECT_EQ(came, 500U);
  EXPECT_GE(at_a->counts().reconnects, 2U);
  EXPECT_EQ(at_a->counts().reconnects, at_b->counts().reconnects);
  EXPECT_EQ(world.not_ready(), 0U);
}

// Without a session that is kept, a peer that is gone is found by a probe, and everything is given back and
// told.
TEST(Sessions, EndWhenThePeerIsGone) {
  Config config = small_config();
  config.keepalive = milliseconds(2);
  config.terms.retry_count = 2;
  NicWorld world(config);
  Channel* at_a = nullptr;
  Channel* at_b = nullptr;
  world.connect(at_a, at_b);
  world.run(milliseconds(5));
  world.cut(true);
  world.run(milliseconds(20));  // 2 ms of silence, three time-outs of 1 ms that double
  EXPECT_EQ(world.a().take().reason, Reason::kLost);
  EXPECT_EQ(world.b().take().reason, Reason::kLost);
  for (User* u : {&world.a(), &world.b()}) {
    EXPECT_EQ(u->context->own_memory().in_use, 0U);
    EXPECT_EQ(u->context->open_channels(), 0U);
    EXPECT_EQ(u->context->cached_qps(), 1U);
  }
}

// One that has just been given back is the last to be used again, however many came and went.
TEST(IdleQueuePairs, AreUsedAgainOldestFirst) {
  channel::IdleQps idle;
  idle.reserve(4);
  std::uint32_t next = 0;
  std::uint32_t oldest = 0;
  Qpn q{};
  EXPECT_FALSE(idle.take(q));
  for (int round = 0; round < 50; ++round) {
    while (idle.size() < 4) idle.put({next++});
    for (int i = 0; i <= round % 4; ++i) {
      ASSERT_TRUE(idle.take(q));
      EXPECT_EQ(q.v, oldest++);
    }
    EXPECT_EQ(idle.size(), next - oldest);
  }
}

}  // namespace
}  // namespace weft::channel_test
