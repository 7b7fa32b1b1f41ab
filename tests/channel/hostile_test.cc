// A peer that knows the port and says what it likes: its channel is closed, and nothing else happens
// (docs/protocol/channel.md#violations).
#include <functional>

#include "tests/channel/worlds.h"

namespace weft::channel_test {
namespace {

using channel::Announcement;
using channel::Head;
using channel::Hello;
using channel::Immediate;
using channel::Kind;
using channel::Refusal;
using channel::Role;

class Stranger {
 public:
  explicit Stranger(VerbsPort& port) : port_(port) {
    cq_ = *port.create_cq(1024);
    memory_ = *port.allocate(1U << 16U, kLocalWrite | kRemoteRead | kRemoteWrite, MemoryKind::kBytes);
    std::fill(memory_.bytes.begin(), memory_.bytes.end(), std::uint8_t{0});
    renew();
  }
  void ask(const wire::Address& to, const ConnectData& data) {
    ASSERT_TRUE(port_.connect(to, kService, qpn_, {}, data).has_value());
  }
  // A queue pair that has 40 receives.
  void renew() {
    PortQueuePair wanted{cq_, cq_, {}, false};
    wanted.caps.max_send_wr = 256;
    wanted.caps.max_recv_wr = 64;
    qpn_ = *port_.create_qp(wanted);
    ASSERT_TRUE(port_.prepare(qpn_).has_value());
    for (std::uint64_t i = 0; i < 40; ++i) {
      const Sge s{memory_.address, 8192, memory_.lkey};
      const RecvWr wr{i, {&s, 1}};
      ASSERT_EQ(port_.post_recv(qpn_, {&wr, 1}).taken, 1U);
    }
  }
  void say(std::uint32_t imm, std::uint32_t bytes) {
    const Sge s{memory_.address + 8192, bytes, memory_.lkey};
    SendWr wr;
    wr.opcode = WrOpcode::kSendImm;
    if (bytes != 0) wr.sges = {&s, 1};
    wr.imm = imm;
    (void)port_.post_send(qpn_, {&wr, 1});
    port_.ring();
  }
  void hang_up() {
    for (PortEvent e; port_.poll_event(e);) {
      if (e.kind == PortEventKind::kEstablished) (void)port_.disconnect(e.connection);
    }
  }
  std::uint8_t* bytes() { return &memory_.bytes[8192]; }

  static Hello hello(std::uint64_t session) {
    Hello h;
    h.session = session;
    h.depth = 8;
    h.frame = 4096;
    h.largest = 1U << 20U;
    return h;
  }

 private:
  VerbsPort& port_;
  CqId cq_{};
  PortMemory memory_;
  Qpn qpn_ = kNoQpn;
};

// A world with a stranger in it, and the channel that it asked for.
struct Visit {
  explicit Visit(std::uint64_t session = 7, const Config& config = small_config())
      : Visit(config, Stranger::hello(session)) {}
  Visit(const Config& config, const Hello& hello) : world(config), stranger(world.take_port_a()) {
    EXPECT_TRUE(world.b().context->listen(kService).has_value());
    stranger.ask(world.address_b(), write_hello(hello));
    world.run(milliseconds(1));
    const Notice asked = world.b().take();
    EXPECT_EQ(asked.kind, Notice::Kind::kAsked);
    channel = asked.channel;
    world.b().context->accept(*asked.channel, 1);
    world.run(milliseconds(1));
    EXPECT_EQ(world.b().take().kind, Notice::Kind::kOpened);
  }
  // The channel is closed for a violation, and its memory is back.
  void expect_closed() {
    world.run(milliseconds(1));
    Notice n = world.b().take();
    while (n.kind == Notice::Kind::kMessage || n.kind == Notice::Kind::kRequest) {
      world.b().context->release(n.message);
      n = world.b().take();
    }
    EXPECT_EQ(n.kind, Notice::Kind::kClosed);
    EXPECT_EQ(n.reason, Reason::kViolation) << channel::sentence(n.reason);
    EXPECT_EQ(world.b().context->counts().violations, 1U);
    EXPECT_EQ(world.b().context->own_memory().in_use, 0U);
    EXPECT_EQ(world.b().context->open_channels(), 0U);
  }
  NicWorld world;
  Stranger stranger;
  Channel* channel = nullptr;
};

std::uint32_t frame(Kind kind, std::uint32_t seq, Role role = Role::kPlain, bool head = false,
                    bool may = false, std::uint32_t ack = 0) {
  return pack(Immediate{ack, seq, may, head, role, kind});
}

TEST(Strangers, AreHeardWhenTheyKeepTheProtocol) {
  Visit v;
  v.stranger.say(frame(Kind::kMessage, 0), 100);
  v.stranger.say(frame(Kind::kMessage, 1, Role::kRequest, true), 100);
  v.world.run(milliseconds(1));
  EXPECT_EQ(v.world.b().take().kind, Notice::Kind::kMessage);
  EXPECT_EQ(v.world.b().take().kind, Notice::Kind::kRequest);
  EXPECT_TRUE(v.world.b().notices.empty());
}

TEST(Strangers, AreClosedForEveryViolation) {
  struct Case {
    const char* what;
    std::function<void(Stranger&)> say;
  };
  const auto announce = [](Stranger& s, std::uint64_t length, std::uint32_t count, std::uint32_t piece,
                           std::uint32_t bytes) {
    Announcement a;
    a.length = length;
    a.count = count;
    for (auto& p : a.pieces) p = {1, piece, {2}};
    write_announcement(a, s.bytes());
    s.say(frame(Kind::kAnnouncement, 0), bytes);
  };
  const Case cases[] = {
      {"an unknown kind", [](Stranger& s) { s.say(5, 10); }},
      {"an unknown role", [](Stranger& s) { s.say(0x30, 10); }},
      {"a reserved bit", [](Stranger& s) { s.say(8, 10); }},
      {"a number ahead", [](Stranger& s) { s.say(frame(Kind::kMessage, 1), 10); }},
      {"a number behind", [](Stranger& s) { s.say(frame(Kind::kMessage, 0xFFF), 10); }},
      {"a number twice",
       [](Stranger& s) {
         s.say(frame(Kind::kMessage, 0), 10);
         s.say(frame(Kind::kMessage, 0), 10);
       }},
      {"more than the window",
       [](Stranger& s) {
         for (std::uint32_t i = 0; i < 9; ++i) s.say(frame(Kind::kMessage, i), 10);
       }},
      {"an ACK of what was not sent",
       [](Stranger& s) { s.say(frame(Kind::kMessage, 0, Role::kPlain, false, false, 1), 10); }},
      {"an ACK from before the beginning",
       [](Stranger& s) { s.say(frame(Kind::kMessage, 0, Role::kPlain, false, false, 0xFFF), 10); }},
      {"an ACK of nothing", [](Stranger& s) { s.say(frame(Kind::kAck, 0), 0); }},
      {"an ACK with a payload", [](Stranger& s) { s.say(frame(Kind::kAck, 0), 4); }},
      {"an ACK with another number", [](Stranger& s) { s.say(frame(Kind::kAck, 3), 0); }},
      {"a NOP without permission", [](Stranger& s) { s.say(frame(Kind::kNop, 0), 0); }},
      {"a permission that is there",
       [](Stranger& s) { s.say(frame(Kind::kNop, 0, Role::kPlain, false, true), 0); }},
      {"a request without a head", [](Stranger& s) { s.say(frame(Kind::kMessage, 0, Role::kRequest), 100); }},
      {"a head that is cut off",
       [](Stranger& s) { s.say(frame(Kind::kMessage, 0, Role::kRequest, true), 31); }},
      {"an empty announcement", [&](Stranger& s) { announce(s, 0, 1, 0, 32); }},
      {"an announcement of too much", [&](Stranger& s) { announce(s, 65U << 20U, 1, 65U << 20U, 32); }},
      {"pieces that do not add up", [&](Stranger& s) { announce(s, 10, 2, 6, 48); }},
      {"no pieces", [&](Stranger& s) { announce(s, 10, 0, 0, 16); }},
      {"an announcement that is cut off", [&](Stranger& s) { announce(s, 10, 1, 10, 31); }},
      {"an announcement with something behind it", [&](Stranger& s) { announce(s, 10, 1, 10, 33); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Visit v;
    c.say(v.stranger);
    v.expect_closed();
  }
}

// It knows the name of a session and nothing else: the session does not notice.
TEST(Strangers, CannotEndASessionByItsName) {
  Config config = small_config();
  config.reconnect = seconds(1);
  Visit v(7, config);
  Hello h = Stranger::hello(7);
  h.continues = true;
  h.received = 5;  // nothing was sent to it
  v.stranger.renew();
  v.stranger.ask(v.world.address_b(), write_hello(h));
  v.world.run(milliseconds(1));
  EXPECT_TRUE(v.world.b().notices.empty());
  EXPECT_EQ(v.world.b().context->counts().refused, 1U);
  EXPECT_EQ(v.world.b().context->open_channels(), 1U);
}

// The peer knows first that the connection failed, and this end has no queue pair to spare: the one that
// failed serves again.
TEST(Strangers, ComeBackToAFullHouse) {
  Config config = small_config();
  config.channels = 1;
  config.reconnect = seconds(1);
  Hello h = Stranger::hello(7);
  h.reconnect_ms = 1000;
  Visit v(config, h);
  h.continues = true;
  v.stranger.renew();
  v.stranger.ask(v.world.address_b(), write_hello(h));
  v.world.run(milliseconds(1));
  EXPECT_TRUE(v.world.b().notices.empty());
  EXPECT_EQ(v.channel->counts.reconnects, 1U);
}

// It announces memory that it does not have: the READ fails, and so does its connection.
TEST(Strangers, CannotMakeAFetchSucceed) {
  Visit v;
  Announcement a;
  a.length = 10;
  a.count = 1;
  a.pieces[0] = {0x1234, 10, {0x5678}};
  const std::uint32_t bytes = write_announcement(a, v.stranger.bytes());
  v.stranger.say(frame(Kind::kAnnouncement, 0), bytes);
  v.world.run(milliseconds(2));
  const Notice n = v.world.b().take();
  EXPECT_EQ(n.kind, Notice::Kind::kClosed);
  EXPECT_EQ(n.reason, Reason::kLost);
  EXPECT_EQ(v.world.b().context->own_memory().in_use, 0U);
}

TEST(Strangers, AreRefusedWhenTheyIntroduceThemselvesBadly) {
  NicWorld world(small_config());
  Stranger stranger(world.take_port_a());
  ASSERT_TRUE(world.b().context->listen(kService).has_value());
  const auto good = Stranger::hello(9);
  std::vector<ConnectData> bad;
  bad.emplace_back();  // nothing at all
  for (const auto& spoil : std::vector<std::function<void(Hello&)>>{
           [](Hello& h) { h.version = 2; }, [](Hello& h) { h.depth = 0; }, [](Hello& h) { h.depth = 1025; },
           [](Hello& h) { h.frame = 255; }, [](Hello& h) { h.received = 1; },
           [](Hello& h) { h.continues = true; }, [](Hello& h) { h.reason = Refusal::kNoRoom; },
           [](Hello& h) { h.taken = 1; }}) {
    Hello h = good;
    spoil(h);
    bad.push_back(write_hello(h));
  }
  bad.push_back(write_hello(good));
  bad.back().size = 51;
  for (const ConnectData& d : bad) {
    stranger.renew();
    stranger.ask(world.address_b(), d);
    world.run(microseconds(100));
  }
  EXPECT_EQ(world.b().context->counts().refused, bad.size());
  EXPECT_TRUE(world.b().notices.empty());
  EXPECT_EQ(world.b().context->own_memory().in_use, 0U);
}

// A flood of requests takes the channels that there are and nothing more; who does not go on is forgotten.
TEST(Strangers, CannotTakeMoreChannelsThanThereAre) {
  Config config = small_config();
  config.connecting = milliseconds(3);
  NicWorld world(config);
  Stranger stranger(world.take_port_a());
  ASSERT_TRUE(world.b().context->listen(kService).has_value());
  for (std::uint64_t i = 1; i <= 10; ++i) {
    stranger.renew();
    stranger.ask(world.address_b(), write_hello(Stranger::hello(i)));
  }
  world.run(milliseconds(1));
  EXPECT_EQ(world.b().notices.size(), 4U);
  EXPECT_EQ(world.b().context->open_channels(), 4U);
  EXPECT_EQ(world.b().context->counts().refused, 6U);
  world.run(milliseconds(4));  // the program is slow to answer
  EXPECT_EQ(world.b().context->open_channels(), 0U);
}

// Frames and payloads at random, half of them almost right.
TEST(Strangers, MaySayAnything) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng random(seed);
    Visit v(seed);
    std::uint32_t number = 0;
    for (int i = 0; i < 40 && v.world.b().context->open_channels() != 0; ++i) {
      for (int b = 0; b < 160; ++b)
        v.stranger.bytes()[b] =
            random.chance(500'000) ? std::uint8_t{0} : static_cast<std::uint8_t>(random.next());
      Immediate im;
      im.seq = random.chance(950'000) ? number : static_cast<std::uint32_t>(random.below(4096));
      im.kind = static_cast<Kind>(random.below(3) == 0 ? random.below(8) : 0);
      im.role = static_cast<Role>(random.below(3));
      im.head = random.chance(900'000) ? im.role != Role::kPlain : random.chance(500'000);
      im.may = random.chance(20'000);
      im.ack = random.chance(20'000) ? 1 : 0;
      if (im.kind <= Kind::kAnnouncement) ++number;
      v.stranger.say(random.chance(20'000) ? static_cast<std::uint32_t>(random.next()) : pack(im),
                     static_cast<std::uint32_t>(random.below(im.kind >= Kind::kAck ? 2 : 160)));
      v.world.run(microseconds(5));
      while (!v.world.b().notices.empty()) {
        const Notice n = v.world.b().take();
        if (n.message != nullptr) v.world.b().context->release(n.message);
      }
    }
    v.stranger.hang_up();
    v.world.run(milliseconds(1));
    EXPECT_EQ(v.world.b().context->own_memory().in_use, 0U) << seed;
    EXPECT_EQ(v.world.b().context->open_channels(), 0U) << seed;
  }
}

}  // namespace
}  // namespace weft::channel_test
