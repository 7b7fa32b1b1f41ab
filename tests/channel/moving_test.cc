// Channels that change from RDMA to TCP and back (docs/protocol/channel.md#over-tcp, #changing-the-carrier):
// the test is the device, both networks and the peer. That no message is lost or repeated is the swarm's to
// show.
#include "tests/channel/two_carriers.h"

namespace weft::channel_test {
namespace {

// --- who may go on over TCP ---

TEST(Moves, AreForWhoHasTheSession) {
  Host h;
  Channel* const c = h.asked();
  ASSERT_NE(c, nullptr);
  const auto refused = [&](const wire::Address& peer, const Hello& said, Refusal why) {
    const std::uint32_t s = h.say(peer, bytes_of(said));
    EXPECT_EQ(h.refusal_of(s), why);
    EXPECT_TRUE(h.streams.streams[s].closed);
    EXPECT_EQ(c->state, Channel::State::kOpen);
    EXPECT_EQ(c->carrier, Carrier::kRdma);
  };
  refused(kHere, hello(8, true), Refusal::kSession);
  refused(kThere, hello(7, true), Refusal::kSession);  // it has the name, and another address
  refused(kHere, hello(9), Refusal::kRange);           // nothing begins here
  Hello more = hello(7, true);
  more.received = 1;  // of what was never sent
  refused(kHere, more, Refusal::kRange);
  Bytes8 other = bytes_of(hello(7, true));
  other[0] = 'G';
  const std::uint32_t s = h.say(kHere, other);
  EXPECT_EQ(h.refusal_of(s), Refusal::kVersion);
  EXPECT_EQ(c->counts().reconnects, 0U);
  const std::uint32_t right = h.say(kHere, bytes_of(hello(7, true)));
  EXPECT_EQ(c->carrier, Carrier::kTcp);
  EXPECT_EQ(c->state, Channel::State::kOpen);
  EXPECT_EQ(c->counts().moves, 1U);
  EXPECT_FALSE(h.streams.streams[right].closed);
}

TEST(Moves, KeepFewStrangersAndNotForLong) {
  Host h;
  Channel* const c = h.asked();
  ASSERT_NE(c, nullptr);
  for (int i = 0; i < 100; ++i) (void)h.say(kThere, {'w', 'c'});
  const auto open = [&] {
    return std::count_if(h.streams.streams.begin(), h.streams.streams.end(),
                         [](const auto& s) { return !s.closed; });
  };
  EXPECT_EQ(open(), 64);
  EXPECT_LE(h.user.context->next_wake(), h.now + h.user.context->config().connecting);
  h.pass(h.user.context->config().connecting);
  EXPECT_EQ(open(), 0);
  (void)h.say(kHere, bytes_of(hello(7, true)));
  EXPECT_EQ(c->carrier, Carrier::kTcp);
}

// What was announced and is not whole counts as not received: there is no READ over TCP.
TEST(Moves, AskAgainForWhatWasBeingFetched) {
  Host h;
  Channel* const c = h.asked();
  ASSERT_NE(c, nullptr);
  channel::Announcement a;
  a.length = 10'000;
  a.count = 1;
  a.pieces[0] = {4096, 10'000, {5}};
  std::uint8_t bytes[64];
  const std::uint32_t n = write_announcement(a, bytes);
  const Bytes8 small(10);
  ASSERT_TRUE(h.port.frame(c->qpn, pack(said(Kind::kAnnouncement, 0)), {bytes, n}));
  ASSERT_TRUE(h.port.frame(c->qpn, pack(said(Kind::kMessage, 1)), small));
  h.turn();
  ASSERT_EQ(c->rx.wta, 2U);
  const std::uint32_t s = h.say(kHere, bytes_of(hello(7, true)));
  EXPECT_EQ(c->rx.wta, 0U);
  EXPECT_EQ(c->counts().received, 0U);
  ConnectData d;
  d.size = Hello::kBytes;
  std::copy_n(h.streams.streams[s].said.begin(), Hello::kBytes, d.bytes.begin());
  Hello answer;
  ASSERT_EQ(read_hello(d, answer), Refusal::kNone);
  EXPECT_EQ(answer.received, 0U);
  h.streams.feed(s, message(0, 10'000));
  h.streams.feed(s, message(1, 10));
  h.turn();
  EXPECT_EQ(h.user.notices.size(), 2U);
  for (Notice& notice : h.user.notices) h.user.context->release(notice.message);
}

// --- commands ---

TEST(Moves, OfTheEndThatAskedAreADial) {
  Host h;
  Channel* const c = h.asks();
  ASSERT_NE(c, nullptr);
  ASSERT_TRUE(h.user.context->move(*c, Carrier::kTcp).has_value());
  h.turn();
  ASSERT_EQ(h.streams.streams.size(), 1U);
  EXPECT_EQ(h.streams.streams[0].peer, kThere);
  EXPECT_EQ(h.streams.streams[0].port, 99);
  EXPECT_EQ(h.user.context->move(*c, Carrier::kRdma).error(), Errc::kBusy);  // it is under way
  h.answer_stream(*c);
  EXPECT_EQ(c->state, Channel::State::kOpen);
  EXPECT_EQ(c->carrier, Carrier::kTcp);
  ASSERT_TRUE(h.user.context->move(*c, Carrier::kRdma).has_value());
  h.turn();
  h.answer(*c);
  EXPECT_EQ(c->state, Channel::State::kOpen);
  EXPECT_EQ(c->carrier, Carrier::kRdma);
  EXPECT_EQ(c->counts().moves, 2U);
  EXPECT_TRUE(h.streams.streams[0].closed);
}

TEST(Moves, OfTheOtherEndAreAFrame) {
  Host h;
  Channel* const c = h.asked();
  ASSERT_NE(c, nullptr);
  ASSERT_TRUE(h.user.context->move(*c, Carrier::kTcp).has_value());
  ASSERT_TRUE(h.user.context->move(*c, Carrier::kTcp).has_value());  // is under way
  const auto& sends = h.port.qps[c->qpn].sends;
  ASSERT_EQ(sends.size(), 1U);
  Immediate i;
  ASSERT_TRUE(channel::unpack(sends[0].imm, i));
  EXPECT_EQ(i.kind, Kind::kMove);
  EXPECT_EQ(i.role, Role::kRequest);
  Host asker;
  Channel* const there = asker.asks();
  ASSERT_NE(there, nullptr);
  ASSERT_TRUE(asker.port.frame(there->qpn, sends[0].imm, {}));
  asker.turn();
  EXPECT_EQ(there->carrier, Carrier::kTcp);
  EXPECT_EQ(asker.streams.streams.size(), 1U);
}

TEST(Moves, AreRefusedWithoutASessionOrATcpPort) {
  Config without = config_of();
  without.reconnect = {};
  Host a(without);
  Channel* c = a.asks();
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(a.user.context->move(*c, Carrier::kTcp).error(), Errc::kUnsupported);
  without = config_of();
  without.tcp_port = 0;
  Host b(without);
  c = b.asked();
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(b.user.context->move(*c, Carrier::kTcp).error(), Errc::kUnsupported);
  ScriptedPort port;
  EXPECT_EQ(Context::open(port, config_of(), 1).error().message,
            "tcp_port, mock: this platform has no TCP; leave both at 0");
}

// The parameter moves every channel, and those that open later.
TEST(Moves, OfAllChannelsAreAParameter) {
  Host h;
  Channel* const c = h.asks();
  ASSERT_NE(c, nullptr);
  ASSERT_TRUE(h.user.context->set("mock", 1).has_value());
  h.turn();
  h.answer_stream(*c);
  EXPECT_EQ(c->carrier, Carrier::kTcp);
  Channel* const later = h.asks();
  ASSERT_NE(later, nullptr);
  h.turn();
  h.answer_stream(*later);
  EXPECT_EQ(later->carrier, Carrier::kTcp);
  ASSERT_TRUE(h.user.context->set("mock", 0).has_value());
  h.turn();
  EXPECT_EQ(c->carrier, Carrier::kRdma);
  EXPECT_EQ(later->carrier, Carrier::kRdma);
}

// Whoever has the peer's TCP port says what it likes; the session goes on over RDMA.
TEST(Moves, ThatComeToNothingEndOverRdma) {
  const Bytes8 answers[] = {bytes_of(hello(12345, true)),
                            Bytes8(Hello::kBytes, 'H'),
                            [] {
                              Hello no;
                              no.reason = Refusal::kSession;
                              return bytes_of(no);
                            }(),
                            {}};
  for (const Bytes8& answer : answers) {
    Host h;
    Channel* const c = h.asks();
    ASSERT_NE(c, nullptr);
    ASSERT_TRUE(h.user.context->move(*c, Carrier::kTcp).has_value());
    h.turn();
    if (!answer.empty()) {
      h.streams.feed(h.last(), answer);
      h.pass(h.user.context->config().redial);
    }
    h.pass(milliseconds(250));  // a quarter of the time for which the session is kept
    EXPECT_EQ(c->carrier, Carrier::kRdma);
    EXPECT_TRUE(h.streams.streams[h.last()].closed);
    h.answer(*c);
    EXPECT_EQ(c->state, Channel::State::kOpen);
  }
}

// RDMA is dead, and a command sends the channel back to it: one attempt, and the session goes on over TCP.
TEST(Moves, BackToRdmaThatComeToNothingEndOverTcp) {
  using Command = void (*)(Host&, Channel&);
  const Command commands[] = {
      [](Host& h, Channel& c) { ASSERT_TRUE(h.user.context->move(c, Carrier::kRdma).has_value()); },
      [](Host& h, Channel&) { ASSERT_TRUE(h.user.context->set("mock", 0).has_value()); },
      [](Host& h, Channel&) {
        Immediate move = said(Kind::kMove);
        move.role = Role::kRequest;
        h.streams.feed(h.last(), frame(move, 0, 0));
      }};
  for (const Command command : commands) {
    for (const bool silent : {false, true}) {
      Host h;
      Channel* const c = h.asks();
      ASSERT_NE(c, nullptr);
      ASSERT_TRUE(h.user.context->set("mock", 1).has_value());
      h.turn();
      h.answer_stream(*c);
      ASSERT_EQ(c->carrier, Carrier::kTcp);
      ASSERT_EQ(c->state, Channel::State::kOpen);
      command(h, *c);
      h.turn();
      h.turn();
      ASSERT_EQ(c->carrier, Carrier::kRdma);
      ASSERT_TRUE(c->connected);
      if (!silent) h.port.refuse(c->connection, {});
      h.turn();
      h.pass(silent ? milliseconds(250) : h.user.context->config().redial);
      ASSERT_EQ(c->carrier, Carrier::kTcp);
      h.answer_stream(*c);
      EXPECT_EQ(c->state, Channel::State::kOpen);
    }
  }
}

// The parameter is set while a channel cannot be moved: while its session is broken, and while its stream
// takes nothing. It is moved when it can be.
TEST(Moves, OfAllChannelsReachThoseThatAreBusy) {
  Host h;
  Channel* const c = h.asks();
  ASSERT_NE(c, nullptr);
  h.port.hang_up(c->connection);
  h.turn();
  ASSERT_EQ(c->state, Channel::State::kBroken);
  ASSERT_TRUE(h.user.context->set("mock", 1).has_value());
  h.pass(h.user.context->config().redial);
  ASSERT_TRUE(c->connected);
  h.answer(*c);
  EXPECT_EQ(c->carrier, Carrier::kTcp);

  Host other;
  Channel* const there = other.asked();
  ASSERT_NE(there, nullptr);
  const std::uint32_t s = other.say(kHere, bytes_of(hello(7, true)));
  ASSERT_EQ(there->carrier, Carrier::kTcp);
  ASSERT_EQ(there->state, Channel::State::kOpen);
  other.streams.give_room(s, 2);
  ASSERT_TRUE(other.user.context->send(*there, other.user.make(10, 0), 0, false).has_value());
  const std::size_t before = other.streams.streams[s].said.size() - 2;
  ASSERT_TRUE(other.user.context->set("mock", 1).has_value());
  ASSERT_TRUE(other.user.context->set("mock", 0).has_value());
  other.streams.give_room(s, SIZE_MAX);
  other.turn();
  other.pass(other.user.context->config().redial);
  const Bytes8& said = other.streams.streams[s].said;
  ASSERT_EQ(said.size(), before + Prefix::kBytes + 10 + Prefix::kBytes);
  Immediate i;
  ASSERT_TRUE(channel::unpack(channel::read_prefix(said.data() + said.size() - Prefix::kBytes).immediate, i));
  EXPECT_EQ(i.kind, Kind::kMove);
}

// Strangers are heard when the context looks, and cost no turn of their own.
TEST(Moves, ThatAreNotYetNamedCostNoTurn) {
  Config config = config_of();
  config.look = milliseconds(1);
  Host h(config);
  h.pass(milliseconds(1));
  (void)h.streams.come(kThere);
  h.pass(milliseconds(1));
  const std::uint64_t looks = h.streams.looks;
  for (int i = 0; i < 50; ++i) h.pass(microseconds(10));
  EXPECT_EQ(h.streams.looks, looks);
  h.pass(milliseconds(1));
  EXPECT_GT(h.streams.looks, looks);
}

// --- by itself ---

Config policy() {
  Config c = config_of();
  c.mock_slow = microseconds(500);
  c.mock_slow_for = milliseconds(20);
  c.mock_cool = milliseconds(100);
  return c;
}

// A message every millisecond, whose completion takes so long.
void work(Host& h, Channel* c, Duration takes, Duration longest, Duration step = microseconds(100)) {
  const Time end = h.now + longest;
  while (h.now < end && c->carrier == Carrier::kRdma && c->state == Channel::State::kOpen) {
    Message* const m = h.user.make(10, 0);
    if (!h.user.context->send(*c, m, 0, false)) h.user.context->release(m);
    for (Duration d{}; d < takes && c->qpn != kNoQpn; d += step) h.pass(step);
    while (c->qpn != kNoQpn && h.port.complete(c->qpn)) {
    }
    if (c->qpn != kNoQpn && c->tx.posted() != c->tx.taken)
      (void)h.port.frame(c->qpn,
                         pack(said(Kind::kMessage, static_cast<std::uint32_t>(c->rx.wta),
                                   static_cast<std::uint32_t>(c->tx.posted()))),
                         {});
    h.turn();
    for (Notice& n : h.user.notices)
      if (n.message != nullptr) h.user.context->release(n.message);
    h.user.notices.clear();
  }
}

TEST(SlowRdma, IsLeftForTcpAndTriedAgain) {
  Host h(policy());
  Channel* const c = h.asks();
  ASSERT_NE(c, nullptr);
  work(h, c, microseconds(300), milliseconds(50));  // fast enough
  EXPECT_EQ(c->carrier, Carrier::kRdma);
  const Time begin = h.now;
  work(h, c, milliseconds(1), milliseconds(100));
  EXPECT_EQ(c->carrier, Carrier::kTcp);
  EXPECT_GE(h.now - begin, milliseconds(20));
  EXPECT_LE(h.now - begin, milliseconds(23));
  h.turn();
  h.answer_stream(*c);
  ASSERT_EQ(c->state, Channel::State::kOpen);
  h.pass(milliseconds(95));
  EXPECT_EQ(c->carrier, Carrier::kTcp);
  h.pass(milliseconds(10));
  h.turn();
  EXPECT_EQ(c->carrier, Carrier::kRdma);
  h.answer(*c);
  ASSERT_EQ(c->state, Channel::State::kOpen);
  // It is slow again at once, so the next try is twice as far away.
  work(h, c, milliseconds(1), milliseconds(60));
  ASSERT_EQ(c->carrier, Carrier::kTcp);
  h.turn();
  h.answer_stream(*c);
  h.pass(milliseconds(150));
  EXPECT_EQ(c->carrier, Carrier::kTcp);
  h.pass(milliseconds(51));
  EXPECT_EQ(c->carrier, Carrier::kRdma);
  EXPECT_EQ(c->counts().moves, 3U);
}

// One message that is never completed is slow, too.
TEST(SlowRdma, IsNoticedWithoutACompletion) {
  Host h(policy());
  Channel* const c = h.asks();
  ASSERT_NE(c, nullptr);
  ASSERT_TRUE(h.user.context->send(*c, h.user.make(10, 0), 0, false).has_value());
  for (int i = 0; i < 203; ++i) h.pass(microseconds(100));
  EXPECT_EQ(c->carrier, Carrier::kRdma);
  for (int i = 0; i < 4; ++i) h.pass(microseconds(100));
  EXPECT_EQ(c->carrier, Carrier::kTcp);
}

// A program that polls every millisecond measures itself.
TEST(SlowRdma, IsNotWhatAProgramThatComesLateSees) {
  Host h(policy());
  Channel* const c = h.asks();
  ASSERT_NE(c, nullptr);
  work(h, c, milliseconds(1), milliseconds(200), milliseconds(1));
  EXPECT_EQ(c->carrier, Carrier::kRdma);
}

// A limit that is set anew knows nothing of what the one before it measured.
TEST(SlowRdma, IsMeasuredAnewAgainstAnotherLimit) {
  Host h(policy());
  Channel* const c = h.asks();
  ASSERT_NE(c, nullptr);
  ASSERT_TRUE(h.user.context->send(*c, h.user.make(10, 0), 0, false).has_value());
  h.pass(microseconds(100));
  ASSERT_TRUE(h.user.context->set("mock_slow_us", 0).has_value());
  while (h.port.complete(c->qpn)) {
  }
  for (int i = 0; i < 300; ++i) h.pass(microseconds(100));
  ASSERT_TRUE(h.user.context->set("mock_slow_us", 500).has_value());
  for (int i = 0; i < 300; ++i) h.pass(microseconds(100));
  EXPECT_EQ(c->carrier, Carrier::kRdma);
}

TEST(SlowRdma, IsTheOtherEndsToTell) {
  Host h(policy());
  Channel* const c = h.asked();
  ASSERT_NE(c, nullptr);
  ASSERT_TRUE(h.user.context->send(*c, h.user.make(10, 0), 0, false).has_value());
  for (int i = 0; i < 210; ++i) h.pass(microseconds(100));
  EXPECT_EQ(c->carrier, Carrier::kRdma);
  Immediate i;
  ASSERT_TRUE(channel::unpack(h.port.qps[c->qpn].sends.back().imm, i));
  EXPECT_EQ(i.kind, Kind::kMove);
  EXPECT_EQ(i.role, Role::kPlain);  // not for good
}

TEST(LostRdma, IsReplacedAfterAttemptsThatFail) {
  Config config = config_of();
  config.mock_redials = 2;
  config.mock_cool = milliseconds(300);
  Host h(config);
  Channel* const c = h.asks();
  ASSERT_NE(c, nullptr);
  h.port.hang_up(c->connection);
  h.turn();
  ASSERT_EQ(c->state, Channel::State::kBroken);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(c->carrier, Carrier::kRdma) << i;
    h.pass(config.redial);
    ASSERT_TRUE(c->connected);
    h.port.refuse(c->connection, {});
    h.turn();
  }
  EXPECT_EQ(c->carrier, Carrier::kTcp);
  h.pass(config.redial);
  h.answer_stream(*c);
  ASSERT_EQ(c->state, Channel::State::kOpen);
  h.pass(milliseconds(301));
  h.turn();
  EXPECT_EQ(c->carrier, Carrier::kRdma);
  ASSERT_TRUE(c->connected);
  // A try that fails is one too many.
  h.port.refuse(c->connection, {});
  h.turn();
  EXPECT_EQ(c->carrier, Carrier::kTcp);
}

// Attempts that nobody answers take their time: TCP gets its turn while the session is kept.
TEST(LostRdma, IsReplacedWhileThereIsTime) {
  for (const std::uint32_t peer_keeps : {1000U, 600U}) {
    Config config = config_of();
    config.mock_redials = 100;
    Host h(config);
    const auto made = h.user.context->connect(kThere, kService, 1);
    ASSERT_TRUE(made.has_value());
    Channel* const c = *made;
    Hello theirs = hello(c->session);
    theirs.reconnect_ms = peer_keeps;
    h.port.confirm(c->connection, write_hello(theirs));
    h.turn();
    ASSERT_EQ(c->state, Channel::State::kOpen);
    h.port.hang_up(c->connection);
    h.turn();
    const Time forgotten = h.now + milliseconds(peer_keeps);
    while (c->carrier == Carrier::kRdma && h.now < forgotten) h.pass(milliseconds(10));
    EXPECT_EQ(c->carrier, Carrier::kTcp);
    EXPECT_GE(forgotten - h.now, milliseconds(peer_keeps / 4));
    EXPECT_EQ(c->state, Channel::State::kBroken);
  }
}

TEST(LostRdma, IsWaitedForWhereNothingElseIsAllowed) {
  Host h;
  Channel* const c = h.asks();
  ASSERT_NE(c, nullptr);
  h.port.hang_up(c->connection);
  h.turn();
  for (int i = 0; i < 10; ++i) {
    h.pass(milliseconds(10));
    ASSERT_TRUE(c->connected);
    h.port.refuse(c->connection, {});
    h.turn();
  }
  EXPECT_TRUE(h.streams.streams.empty());
}

}  // namespace
}  // namespace weft::channel_test
