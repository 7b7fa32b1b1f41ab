// A context whose device, network and peers say what the test says: many peers at one context, clocks that go
// back, and anything that a byte string can say (tests/fuzz/channel_peer.h).
#include <gtest/gtest.h>

#include <new>
#include <string>
#include <utility>

#include "core/base/prng.h"
#include "tests/channel/null_port.h"
#include "tests/channel/scripted_port.h"
#include "tests/channel/users.h"
#include "tests/fuzz/channel_peer.h"

namespace weft::channel_test {
namespace {

using channel::Hello;
using channel::Immediate;
using channel::Kind;
using channel::Refusal;

constexpr wire::Address kHere = wire::Address::v4(10, 0, 0, 2);
constexpr wire::Address kThere = wire::Address::v4(10, 0, 0, 3);

Hello hello(std::uint64_t session) {
  Hello h;
  h.session = session;
  h.depth = 8;
  h.frame = 4096;
  h.largest = 1U << 20U;
  h.reconnect_ms = 1000;
  return h;
}

// A device that has no memory for one call.
struct ScarcePort final : ScriptedPort {
  Posted post_recv(Qpn qpn, std::span<const RecvWr> list) override {
    if (std::exchange(scarce, false)) throw std::bad_alloc();
    return ScriptedPort::post_recv(qpn, list);
  }
  Posted post_shared(SrqId srq, std::span<const RecvWr> list) override {
    if (std::exchange(scarce, false)) throw std::bad_alloc();
    return ScriptedPort::post_shared(srq, list);
  }
  bool scarce = false;
};

// A context that is asked, and accepts whoever asks.
struct Server {
  explicit Server(const Config& config) : user(port, config, 1) { user.poll(now); }
  ~Server() { user.context.reset(); }
  Channel* ask(const wire::Address& peer, const Hello& h) {
    const ConnectionId id = port.ask(peer, kService, write_hello(h));
    user.poll(now);
    const Notice n = user.take();
    if (n.kind != Notice::Kind::kAsked) return nullptr;
    user.context->accept(*n.channel, 1);
    port.confirm(id, {});
    user.poll(now);
    return user.take().kind == Notice::Kind::kOpened ? n.channel : nullptr;
  }
  // Until every completion of a thousand queue pairs that failed was looked at.
  void poll_all() {
    for (int turn = 0; turn < 200; ++turn) user.poll(now);
  }
  Refusal said_last() {
    Hello h;
    return read_hello(port.connections.back().said, h);
  }
  ScriptedPort port;
  Time now = Time{} + seconds(1);
  User user;
};

Config config_of(std::uint32_t channels) {
  Config c;
  c.channels = channels;
  c.small = 256;
  c.region = Bytes{1U << 18U};
  c.memory = Bytes{64U << 20U};
  c.reconnect = seconds(1);
  return c;
}

// A peer draws the name of its session, and draws what it likes.
TEST(Sessions, OfTwoPeersMayHaveOneName) {
  Server s(config_of(4));
  Channel* const one = s.ask(kHere, hello(7));
  Channel* const two = s.ask(kThere, hello(7));
  ASSERT_NE(one, nullptr);
  ASSERT_NE(two, nullptr);
  EXPECT_EQ(one->peer, kHere);
  EXPECT_EQ(two->peer, kThere);
  EXPECT_EQ(s.ask(kThere, hello(7)), nullptr);  // one peer, twice
  EXPECT_EQ(s.said_last(), Refusal::kRange);
  EXPECT_EQ(s.user.context->open_channels(), 2U);
}

// Who has the name of a session and another address does not go on with it.
TEST(Sessions, GoOnWithTheirPeerAlone) {
  Server s(config_of(4));
  Channel* const c = s.ask(kHere, hello(7));
  ASSERT_NE(c, nullptr);
  Hello again = hello(7);
  again.continues = true;
  EXPECT_EQ(s.ask(kThere, again), nullptr);
  EXPECT_EQ(s.said_last(), Refusal::kSession);
  EXPECT_EQ(c->state, Channel::State::kOpen);
  EXPECT_EQ(c->counts().reconnects, 0U);
  const ConnectionId id = s.port.ask(kHere, kService, write_hello(again));
  s.user.poll(s.now);
  s.port.confirm(id, {});
  s.user.poll(s.now);
  EXPECT_EQ(c->state, Channel::State::kOpen);
  EXPECT_EQ(c->counts().reconnects, 1U);
}

// A thousand peers: each is found by its connection and by its name, and none of these stays behind.
TEST(Sessions, AreFoundAmongMany) {
  constexpr std::uint32_t kMany = 1000;
  Server s(config_of(kMany));
  std::vector<Channel*> all;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    all.push_back(s.ask(kHere, hello(i)));
    ASSERT_NE(all.back(), nullptr);
  }
  for (std::uint32_t i = 0; i < kMany; i += 2) s.port.hang_up(all[i]->connection);
  s.poll_all();
  for (std::uint32_t i = 0; i < kMany; ++i)
    EXPECT_EQ(all[i]->state == Channel::State::kBroken, i % 2 == 0) << i;
  for (Channel* c : all) s.user.context->abort(*c);
  s.poll_all();
  s.user.notices.clear();
  for (std::uint32_t i = 0; i < kMany; ++i) ASSERT_NE(s.ask(kHere, hello(i)), nullptr) << i;
}

// Every channel of many takes one message, a microsecond after the one before it; each acknowledges it after
// its own delay, not before and not later.
TEST(Acknowledgements, AreSentInTimeOnEveryChannel) {
  constexpr std::uint32_t kMany = 200;
  Config config = config_of(kMany);
  config.ack_delay = microseconds(50);
  Server s(config);
  std::vector<Channel*> all;
  for (std::uint32_t i = 0; i < kMany; ++i) all.push_back(s.ask(kHere, hello(i)));
  const std::uint8_t bytes[10] = {};
  Immediate message;
  message.kind = Kind::kMessage;
  for (std::uint32_t step = 0; step < kMany + 60; ++step) {
    if (step < kMany) {
      ASSERT_TRUE(s.port.frame(all[step]->qpn, pack(message), bytes));
    }
    s.user.poll(s.now);
    while (!s.user.notices.empty()) s.user.context->release(s.user.take().message);
    EXPECT_EQ(s.user.context->next_wake() <= s.now.after(microseconds(50)), step < kMany + 49) << step;
    for (std::uint32_t i = 0; i < kMany; ++i) ASSERT_EQ(all[i]->counts().acks, step >= i + 50 ? 1U : 0U) << i;
    s.now = s.now + microseconds(1);
  }
}

// Two contexts that talk, and what happens when: steps of ten microseconds at which something is told or
// counted. `back`: in the middle both clocks go back by so much.
std::vector<std::string> diary(Duration back) {
  Config config = config_of(4);
  config.keepalive = milliseconds(3);
  config.idle_memory = milliseconds(4);
  config.connecting = milliseconds(7);
  config.terms.timeout = 1;
  NullPort ports[2];
  ports[0].meet(ports[1]);
  User users[2] = {User(ports[0], config, 1), User(ports[1], config, 2)};
  Time now = Time{} + seconds(7200);
  std::vector<std::string> said;
  std::vector<Message*> held;
  Channel* at = nullptr;
  Channel* late = nullptr;
  for (int step = 0; step < 3000; ++step) {
    for (User& u : users) {
      u.poll(now);
      while (!u.notices.empty()) {
        const Notice n = u.take();
        if (n.kind == Notice::Kind::kAsked && at == nullptr) u.context->accept(*n.channel, 0);
        if (n.kind == Notice::Kind::kOpened && &u == &users[0]) at = n.channel;
        if (n.message != nullptr) held.push_back(n.message);
        said.push_back(std::to_string(step) + " kind " + std::to_string(static_cast<int>(n.kind)) + " fate " +
                       std::to_string(static_cast<int>(n.fate)) + " reason " + channel::sentence(n.reason));
      }
    }
    if (step == 0) (void)users[0].context->connect(kThere, kService, 0);
    if (step == 98) {
      // A request with a deadline, a message whose acknowledgement is owed, an attempt that comes to nothing.
      (void)users[0].context->send(*at, users[0].make(10, 2), 2, true);
      (void)users[0].context->call(*at, users[0].make(10, 1), 1, now + milliseconds(5));
      late = *users[0].context->connect(kThere, kService, 0);
    }
    if (step == 99) {
      users[1].context->release(held.front());
      held.erase(held.begin());
    }
    if (step == 100) {
      for (User& u : users) u.context->rebase(back);
      now = now - back;
    }
    const auto a = at != nullptr ? at->counts() : late != nullptr ? late->counts() : channel::ChannelCounts{};
    said.push_back(std::to_string(step) + " probes " + std::to_string(a.probes) + " lent " +
                   std::to_string(users[0].context->lent_memory().registered) + " frames " +
                   std::to_string(ports[1].sends()));
    now = now + microseconds(10);
  }
  for (Message* m : held) users[1].context->release(m);
  for (User& u : users) u.context.reset();
  return said;
}

TEST(Clocks, GoBackAndNothingElseChanges) {
  const auto straight = diary({});
  const auto text = [&](const char* what) {
    return std::any_of(straight.begin(), straight.end(),
                       [&](const std::string& line) { return line.find(what) != std::string::npos; });
  };
  EXPECT_TRUE(text("fate 3"));              // the request, after its deadline
  EXPECT_TRUE(text("nothing came of it"));  // the attempt
  EXPECT_TRUE(text("probes 9"));
  EXPECT_EQ(diary(seconds(3600)), straight);
  EXPECT_EQ(diary(milliseconds(1)), straight);
}

// Bytes at random through the fuzzer's world: enough of them are right that messages come, and enough are
// wrong.
TEST(Strangers, MaySayWhatAByteStringSays) {
  std::uint64_t messages = 0;
  std::uint64_t violations = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Prng random(seed);
    std::vector<std::uint8_t> bytes(1500);
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random.next());
    fuzz::ChannelPeer peer(bytes);
    peer.run();
    messages += peer.messages();
    violations += peer.violations();
  }
  EXPECT_GT(messages, 1000U);
  EXPECT_GT(violations, 100U);
}

// Three frames come in one batch, and for the first, a NOP, there is no memory. The turn ends there; the two
// messages are told in the next.
TEST(ATurnWithoutMemory, LosesNothingOfWhatCameBehind) {
  ScarcePort port;
  User user(port, Config{}, 1);
  const Time now = Time{} + seconds(1);
  user.poll(now);
  const ConnectionId id = port.ask(kThere, kService, write_hello(hello(7)));
  user.poll(now);
  const Notice asked = user.take();
  ASSERT_EQ(asked.kind, Notice::Kind::kAsked);
  user.context->accept(*asked.channel, 1);
  port.confirm(id, {});
  user.poll(now);
  ASSERT_EQ(user.take().kind, Notice::Kind::kOpened);
  const Qpn qpn = port.connections[id.v].qpn;
  asked.channel->may_early = false;  // so that a NOP may come
  Immediate i;
  i.kind = Kind::kNop;
  i.may = true;
  const std::uint8_t bytes[8] = {};
  ASSERT_TRUE(port.frame(qpn, pack(i), {}));
  i = {};
  for (i.seq = 0; i.seq < 2; ++i.seq) ASSERT_TRUE(port.frame(qpn, pack(i), bytes));
  port.scarce = true;
  EXPECT_THROW(user.context->poll(now), std::bad_alloc);
  user.poll(now);
  EXPECT_EQ(user.notices.size(), 2U);
  while (!user.notices.empty()) user.context->release(user.take().message);
  user.context->abort(*asked.channel);
  user.poll(now);
}

// A receive of the shared queue cannot be replaced: the message that took it is told all the same, and it
// is replaced when something is given back.
TEST(ATurnWithoutMemory, TellsWhatTookASharedReceive) {
  ScarcePort port;
  Config config;
  config.use_srq = true;
  config.srq_size = 2 * config.depth;  // less than two peers may send
  User user(port, config, 1);
  const Time now = Time{} + seconds(1);
  user.poll(now);
  ConnectionId id{};
  for (const wire::Address& peer : {kHere, kThere}) {
    id = port.ask(peer, kService, write_hello(hello(7)));
    user.poll(now);
    const Notice asked = user.take();
    ASSERT_EQ(asked.kind, Notice::Kind::kAsked);
    user.context->accept(*asked.channel, 1);
    port.confirm(id, {});
    user.poll(now);
    ASSERT_EQ(user.take().kind, Notice::Kind::kOpened);
  }
  const Qpn qpn = port.connections[id.v].qpn;
  const auto posted = user.context->shared_receives().posted();
  Immediate i;
  i.kind = Kind::kMessage;
  ASSERT_TRUE(port.frame(qpn, pack(i), {}));
  port.scarce = true;
  EXPECT_THROW(user.context->poll(now), std::bad_alloc);
  Notice n;
  ASSERT_TRUE(user.context->next(n));
  user.poll(now);
  ASSERT_EQ(n.kind, Notice::Kind::kMessage);
  user.context->release(n.message);
  EXPECT_EQ(user.context->shared_receives().posted(), posted);
}

// A frame comes while a program that goes to sleep arms: the answer to its connection is taken out of turn,
// and with it every event before, one of which would have rung. The program looks again before it sleeps.
TEST(Sleep, DoesNotBeginBeforeEventsThatWereTakenEarly) {
  for (const bool another : {false, true}) {
    Server s(Config{});
    const auto made = s.user.context->connect(kThere, kService, 1);
    ASSERT_TRUE(made.has_value());
    Channel* const c = *made;
    s.user.poll(s.now);
    if (another) (void)s.port.ask(kHere, kService, write_hello(hello(8)));
    s.port.confirm(c->connection, write_hello(hello(c->session)));
    ASSERT_TRUE(
        s.port.frame(c->qpn, channel::pack({0, 0, false, false, channel::Role::kPlain, Kind::kMessage}), {}));
    ASSERT_TRUE(s.user.context->arm().has_value());
    ASSERT_EQ(c->state, Channel::State::kOpen);
    EXPECT_LE(s.user.context->next_wake(), s.now);
    s.user.poll(s.now);
    EXPECT_GT(s.user.context->next_wake(), s.now);
    EXPECT_EQ(s.user.take().kind, Notice::Kind::kOpened);
    const Notice message = s.user.take();
    ASSERT_EQ(message.kind, Notice::Kind::kMessage);
    s.user.context->release(message.message);
    EXPECT_EQ(s.user.notices.size(), another ? 1U : 0U);
  }
}

}  // namespace
}  // namespace weft::channel_test
