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
  void say(std::uint32_t imm, std::uint32_t bytes, WrOpcode opcode = WrOpcode::kSendImm) {
    say_on(qpn_, imm, bytes, opcode);
  }
  void say_on(Qpn qpn, std::uint32_t imm, std::uint32_t bytes, WrOpcode opcode = WrOpcode::kSendImm) {
    const Sge s{memory_.address + 8192, bytes, memory_.lkey};
    SendWr wr;
    wr.opcode = opcode;
    if (bytes != 0) wr.sges = {&s, 1};
    wr.imm = imm;
    (void)port_.post_send(qpn, {&wr, 1});
    port_.ring();
  }
  Qpn qpn() const { return qpn_; }
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

std::uint32_t frame(Kind kind, std::uint32_t seq, Role role = Role::kPlain, bool head = false,
                    bool may = false, std::uint32_t ack = 0) {
  return pack(Immediate{ack, seq, may, head, role, kind});
}

// A world with a stranger in it, and the channel that it asked for. Other channels may be there before: those
// of honest programs.
struct Visit {
  explicit Visit(std::uint64_t session = 7, const Config& config = small_config())
      : Visit(config, Stranger::hello(session)) {}
  Visit(const Config& config, const Hello& hello, bool company = false)
      : world(config), stranger(world.take_port_a()) {
    EXPECT_TRUE(world.b().context->listen(kService).has_value());
    if (company) {
      bystander = open(Stranger::hello(hello.session + 1));
      bystanders_qpn = stranger.qpn();
      bystanders_memory = world.b().context->own_memory().in_use;
      stranger.renew();
    }
    channel = open(hello);
  }
  Channel* open(const Hello& hello) {
    stranger.ask(world.address_b(), write_hello(hello));
    world.run(milliseconds(1));
    const Notice asked = world.b().take();
    EXPECT_EQ(asked.kind, Notice::Kind::kAsked);
    world.b().context->accept(*asked.channel, 1);
    world.run(milliseconds(1));
    EXPECT_EQ(world.b().take().kind, Notice::Kind::kOpened);
    return asked.channel;
  }
  // The honest program is heard, and is spoken to.
  void expect_bystander_is_served() {
    stranger.say_on(bystanders_qpn, frame(Kind::kMessage, said++), 100);
    world.run(milliseconds(1));
    const Notice n = world.b().take();
    ASSERT_EQ(n.kind, Notice::Kind::kMessage);
    EXPECT_EQ(n.channel, bystander);
    world.b().context->release(n.message);
    EXPECT_TRUE(world.b().context->send(*bystander, world.b().make(50, 1), 1, false));
    world.run(milliseconds(1));
    EXPECT_EQ(bystander->state, Channel::State::kOpen);
    EXPECT_EQ(bystander->tx.complete, said);  // it arrived, too
  }
  // The channel is closed for a violation, and its memory is back.
  void expect_closed() {
    world.run(milliseconds(1));
    Notice n = world.b().take();
    while (n.channel != nullptr && n.kind != Notice::Kind::kClosed) {
      if (n.message != nullptr) world.b().context->release(n.message);
      n = world.b().take();
    }
    EXPECT_EQ(n.kind, Notice::Kind::kClosed);
    EXPECT_EQ(n.reason, Reason::kViolation) << channel::sentence(n.reason);
    EXPECT_EQ(n.channel, channel);
    EXPECT_EQ(world.b().context->counts().violations, 1U);
    EXPECT_EQ(world.b().context->own_memory().in_use, bystanders_memory);
    EXPECT_EQ(world.b().context->open_channels(), bystander != nullptr ? 1U : 0U);
    EXPECT_TRUE(world.b().notices.empty());
  }
  NicWorld world;
  Stranger stranger;
  Channel* channel = nullptr;
  Channel* bystander = nullptr;
  Qpn bystanders_qpn = kNoQpn;
  std::uint64_t bystanders_memory = 0;
  std::uint32_t said = 0;
};

TEST(Strangers, AreHeardWhenTheyKeepTheProtocol) {
  Visit v;
  v.stranger.say(frame(Kind::kMessage, 0), 100);
  v.stranger.say(frame(Kind::kMessage, 1, Role::kRequest, true), 100);
  v.world.run(milliseconds(1));
  EXPECT_EQ(v.world.b().take().kind, Notice::Kind::kMessage);
  EXPECT_EQ(v.world.b().take().kind, Notice::Kind::kRequest);
  EXPECT_TRUE(v.world.b().notices.empty());
}

// What a peer may do that it must not. Each row can fail alone.
struct Violation {
  const char* name;
  void (*say)(Visit&);
};

void announce(Visit& v, std::uint64_t length, std::uint32_t count, std::uint32_t piece, std::uint32_t bytes) {
  Announcement a;
  a.length = length;
  a.count = std::min(count, channel::kMostPieces);
  for (auto& p : a.pieces) p = {1, piece, {2}};
  write_announcement(a, v.stranger.bytes());
  v.stranger.bytes()[9] = static_cast<std::uint8_t>(count);
  v.stranger.say(frame(Kind::kAnnouncement, 0), bytes);
}
// This end has sent three messages, so there is something to acknowledge.
void be_sent_three(Visit& v) {
  for (std::uint32_t i = 0; i < 3; ++i)
    ASSERT_TRUE(v.world.b().context->send(*v.channel, v.world.b().make(10, i), i, false));
  v.world.run(microseconds(100));
}

// A frame with this head and `more` bytes behind it.
void say_head(Visit& v, Role role, const Head& head, Kind kind = Kind::kMessage, std::uint32_t more = 0) {
  write_head(head, v.stranger.bytes());
  v.stranger.say(frame(kind, 0, role, true), Head::kBytes + more);
}
// This end has asked, traced or not; a response with these stamps, to the first call there is.
void answer(Visit& v, bool traced, std::uint64_t trace, std::uint64_t left, std::uint64_t arrived) {
  Context& b = *v.world.b().context;
  ASSERT_TRUE(b.set("trace_sample_mask", traced ? ~std::uint64_t{0} : 0));
  const auto call = b.call(*v.channel, v.world.b().make(10, 1), 1, kNever);
  ASSERT_TRUE(call);
  ASSERT_TRUE(b.set("trace_sample_mask", 0));  // so that nobody asks for clocks
  v.world.run(microseconds(100));
  say_head(v, Role::kResponse, {call->v, 0, trace, left, arrived}, Kind::kMessage, 10);
}

constexpr Violation kViolations[] = {
    {"AnUnknownKind", [](Visit& v) { v.stranger.say(5, 10); }},
    {"AnUnknownRole", [](Visit& v) { v.stranger.say(0x30, 10); }},
    {"AReservedBit", [](Visit& v) { v.stranger.say(8, 10); }},
    {"NoImmediate", [](Visit& v) { v.stranger.say(0, 10, WrOpcode::kSend); }},
    {"AWriteWithImmediate", [](Visit& v) { v.stranger.say(0, 0, WrOpcode::kWriteImm); }},
    {"ANumberAhead", [](Visit& v) { v.stranger.say(frame(Kind::kMessage, 1), 10); }},
    {"ANumberBehind", [](Visit& v) { v.stranger.say(frame(Kind::kMessage, 0xFFF), 10); }},
    {"ANumberTwice",
     [](Visit& v) {
       v.stranger.say(frame(Kind::kMessage, 0), 10);
       v.stranger.say(frame(Kind::kMessage, 0), 10);
     }},
    {"MoreThanTheWindow",
     [](Visit& v) {
       for (std::uint32_t i = 0; i < 9; ++i) v.stranger.say(frame(Kind::kMessage, i), 10);
     }},
    {"AnAckOfWhatWasNotSent",
     [](Visit& v) { v.stranger.say(frame(Kind::kMessage, 0, Role::kPlain, false, false, 1), 10); }},
    {"AnAckFromBeforeTheBeginning",
     [](Visit& v) { v.stranger.say(frame(Kind::kMessage, 0, Role::kPlain, false, false, 0xFFF), 10); }},
    {"AnAckThatGoesBack",
     [](Visit& v) {
       be_sent_three(v);
       v.stranger.say(frame(Kind::kAck, 0, Role::kPlain, false, false, 2), 0);
       v.stranger.say(frame(Kind::kMessage, 0, Role::kPlain, false, false, 1), 10);
     }},
    {"ASecondEarlyAck",
     [](Visit& v) {
       be_sent_three(v);
       v.stranger.say(frame(Kind::kAck, 0, Role::kPlain, false, false, 1), 0);
       v.stranger.say(frame(Kind::kAck, 0, Role::kPlain, false, false, 2), 0);
     }},
    {"AnAckOfNothing", [](Visit& v) { v.stranger.say(frame(Kind::kAck, 0), 0); }},
    {"AnAckWithAPayload", [](Visit& v) { v.stranger.say(frame(Kind::kAck, 0), 4); }},
    {"AnAckWithAnotherNumber", [](Visit& v) { v.stranger.say(frame(Kind::kAck, 3), 0); }},
    {"AnAckWithARole", [](Visit& v) { v.stranger.say(frame(Kind::kAck, 0, Role::kRequest), 0); }},
    {"ANopWithoutPermission", [](Visit& v) { v.stranger.say(frame(Kind::kNop, 0), 0); }},
    {"APermissionThatIsThere",
     [](Visit& v) { v.stranger.say(frame(Kind::kNop, 0, Role::kPlain, false, true), 0); }},
    {"ACloseWithAPayload", [](Visit& v) { v.stranger.say(frame(Kind::kClose, 0), 4); }},
    {"ARequestWithoutAHead", [](Visit& v) { v.stranger.say(frame(Kind::kMessage, 0, Role::kRequest), 100); }},
    {"AHeadWithoutARole",
     [](Visit& v) { v.stranger.say(frame(Kind::kMessage, 0, Role::kPlain, true), 100); }},
    {"ATraceWithoutANumber",
     [](Visit& v) {
       say_head(v, Role::kPlain, {0, 0, 0, 5, 0});
     }},
    {"ATraceThatNeverLeft",
     [](Visit& v) {
       say_head(v, Role::kPlain, {0, 0, 5, 0, 0});
     }},
    {"ATracedMessageWithACall",
     [](Visit& v) {
       say_head(v, Role::kPlain, {1, 0, 5, 5, 0});
     }},
    {"AMessageThatHasArrivedBefore",
     [](Visit& v) {
       say_head(v, Role::kPlain, {0, 0, 5, 5, 5});
     }},
    {"ARequestThatHasArrivedBefore",
     [](Visit& v) {
       say_head(v, Role::kRequest, {1, 0, 5, 5, 5});
     }},
    {"ARequestThatLeftWithoutATrace",
     [](Visit& v) {
       say_head(v, Role::kRequest, {1, 0, 0, 5, 0});
     }},
    {"AnAnswerThatLeftBeforeItsRequestCame", [](Visit& v) { answer(v, true, 5, 5, 6); }},
    {"AnAnswerWithATraceThatNobodyAskedFor", [](Visit& v) { answer(v, false, 5, 6, 5); }},
    {"AnAnswerOfAnotherTrace", [](Visit& v) { answer(v, true, 5, 6, 5); }},
    {"AClockThatGoesBack",
     [](Visit& v) {
       say_head(v, Role::kClock, {0, 0, 5, 5, 6});
     }},
    {"AClockThatStandsAtNothing",
     [](Visit& v) {
       say_head(v, Role::kClock, {0, 0, 0, 0, 0});
     }},
    {"AClockThatAnswersNothing",
     [](Visit& v) {
       say_head(v, Role::kClock, {0, 0, 0, 5, 5});
     }},
    {"AClockWithACall",
     [](Visit& v) {
       say_head(v, Role::kClock, {1, 0, 0, 5, 0});
     }},
    {"AClockWithSomethingBehindIt",
     [](Visit& v) {
       say_head(v, Role::kClock, {0, 0, 0, 5, 0}, Kind::kMessage, 1);
     }},
    {"AnAnnouncedClock",
     [](Visit& v) {
       say_head(v, Role::kClock, {0, 0, 0, 5, 0}, Kind::kAnnouncement);
     }},
    {"AHeadThatIsCutOff",
     [](Visit& v) { v.stranger.say(frame(Kind::kMessage, 0, Role::kRequest, true), 31); }},
    {"AnEmptyAnnouncement", [](Visit& v) { announce(v, 0, 1, 0, 32); }},
    {"AnAnnouncementOfTooMuch", [](Visit& v) { announce(v, 65U << 20U, 1, 65U << 20U, 32); }},
    {"PiecesThatDoNotAddUp", [](Visit& v) { announce(v, 10, 2, 6, 48); }},
    {"APieceOfNothing", [](Visit& v) { announce(v, 10, 2, 0, 48); }},
    {"NoPieces", [](Visit& v) { announce(v, 10, 0, 0, 16); }},
    {"TooManyPieces", [](Visit& v) { announce(v, 50, 5, 10, 96); }},
    {"AnAnnouncementThatIsCutOff", [](Visit& v) { announce(v, 10, 1, 10, 31); }},
    {"AnAnnouncementWithSomethingBehindIt", [](Visit& v) { announce(v, 10, 1, 10, 33); }},
};

class Violations : public testing::TestWithParam<Violation> {};

// Beside an honest program's channel, which goes on.
TEST_P(Violations, CloseTheirChannelAndNothingElse) {
  Visit v(small_config(), Stranger::hello(7), true);
  v.expect_bystander_is_served();
  GetParam().say(v);
  v.expect_closed();
  v.expect_bystander_is_served();
}
INSTANTIATE_TEST_SUITE_P(Of, Violations, testing::ValuesIn(kViolations),
                         [](const auto& row) { return std::string(row.param.name); });

// A frame above what this end has room for: its device refuses it, and the connection has failed.
TEST(Strangers, CannotOverrunAReceive) {
  Visit v(small_config(), Stranger::hello(7), true);
  v.stranger.say(frame(Kind::kMessage, 0), small_config().small + Head::kBytes + 1);
  v.world.run(milliseconds(1));
  const Notice n = v.world.b().take();
  EXPECT_EQ(n.kind, Notice::Kind::kClosed);
  EXPECT_EQ(n.channel, v.channel);
  EXPECT_EQ(n.reason, Reason::kLost);
  EXPECT_EQ(v.world.b().context->own_memory().in_use, v.bystanders_memory);
  v.expect_bystander_is_served();
}

// It knows the name of a session and nothing else: the session does not notice.
// A flood of questions about the clock, and answers that nobody asked for: each question has one answer at
// most, within the window, and what is known of the peer's clock is what it answered to what was asked.
TEST(Strangers, MayAskForTheClockAsOftenAsTheWindowLets) {
  Visit v;
  for (std::uint32_t i = 0; i < 8; ++i) {
    channel::write_head({0, 0, i % 2 == 0 ? 0U : 77U, 100 + i, i % 2 == 0 ? 0U : 50U}, v.stranger.bytes());
    v.stranger.say(frame(Kind::kMessage, i, Role::kClock, true), Head::kBytes);
    v.world.run(microseconds(50));
  }
  EXPECT_EQ(v.channel->state, Channel::State::kOpen);
  EXPECT_EQ(v.channel->counts().clocks, 4U);
  EXPECT_EQ(v.channel->clock.samples, 0U);
  EXPECT_TRUE(v.world.b().notices.empty());
}

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
  EXPECT_EQ(v.channel->counts().reconnects, 1U);
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

// A flood of requests takes the channels that there are and nothing more. Who has a channel keeps it, whoever
// does not go on is forgotten, and then there is room again.
TEST(Strangers, CannotTakeMoreChannelsThanThereAre) {
  Config config = small_config();
  config.connecting = milliseconds(3);
  Visit v(config, Stranger::hello(7), true);
  const std::uint64_t memory = v.world.b().context->own_memory().in_use;
  for (std::uint64_t i = 11; i <= 20; ++i) {
    v.stranger.renew();
    v.stranger.ask(v.world.address_b(), write_hello(Stranger::hello(i)));
  }
  v.world.run(milliseconds(1));
  EXPECT_EQ(v.world.b().notices.size(), 2U);
  EXPECT_EQ(v.world.b().context->open_channels(), 4U);
  EXPECT_EQ(v.world.b().context->counts().refused, 8U);
  EXPECT_EQ(v.world.b().context->own_memory().in_use, memory);  // nothing before somebody accepts
  v.world.b().notices.clear();
  v.expect_bystander_is_served();
  v.world.run(milliseconds(4));  // the program is slow to answer
  v.world.b().notices.clear();
  EXPECT_EQ(v.world.b().context->open_channels(), 2U);
  v.stranger.renew();
  EXPECT_NE(v.open(Stranger::hello(21)), nullptr);
  v.expect_bystander_is_served();
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
