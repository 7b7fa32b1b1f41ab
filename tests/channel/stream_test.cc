// Frames over TCP (docs/protocol/channel.md#over-tcp): in pieces, too long, wrong in every way, to a peer
// that does not read.
#include "core/base/prng.h"
#include "tests/channel/two_carriers.h"
#include "tests/fuzz/stream_peer.h"

namespace weft::channel_test {
namespace {

TEST(StreamFrames, ComeInPiecesOfAnyLength) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{50}, std::size_t{100'000}}) {
    Host h;
    Channel* const c = h.asked();
    ASSERT_NE(c, nullptr);
    const std::uint32_t s = h.say(kHere, bytes_of(hello(7, true)));
    Bytes8 all;
    for (std::uint32_t i = 0; i < 3; ++i) {
      const Bytes8 m = message(i, i * 9'000);  // the second and the third are too long for a block
      all.insert(all.end(), m.begin(), m.end());
    }
    for (std::size_t at = 0; at < all.size(); at += piece) {
      h.streams.feed(s, std::span(all).subspan(at, std::min(piece, all.size() - at)));
      h.turn();
    }
    for (std::uint32_t i = 0; i < 3; ++i) {
      const Notice n = h.user.take();
      ASSERT_EQ(n.kind, Notice::Kind::kMessage) << piece;
      EXPECT_TRUE(User::filled(*n.message, i * 9'000, 3));
      h.user.context->release(n.message);
    }
    EXPECT_EQ(h.user.context->counts().violations, 0U);
  }
}

struct Bad {
  const char* name;
  Bytes8 bytes;
};
void PrintTo(const Bad& b, std::ostream* out) { *out << b.name; }

class StreamViolations : public testing::TestWithParam<Bad> {};

TEST_P(StreamViolations, CloseTheirChannelAndNothingElse) {
  Host h;
  Channel* const c = h.asked();
  ASSERT_NE(c, nullptr);
  const ConnectionId id = h.port.ask(kThere, kService, write_hello(hello(7)));
  h.turn();
  Channel* const other = h.user.take().channel;
  h.user.context->accept(*other, 2);
  h.port.confirm(id, {});
  h.turn();
  (void)h.user.take();
  const std::uint32_t s = h.say(kHere, bytes_of(hello(7, true)));
  ASSERT_EQ(c->state, Channel::State::kOpen);
  const std::uint64_t memory = h.user.context->own_memory().in_use;
  h.streams.feed(s, GetParam().bytes);
  h.turn();
  EXPECT_EQ(h.user.context->counts().violations, 1U);
  const Notice n = h.user.take();
  EXPECT_EQ(n.kind, Notice::Kind::kClosed);
  EXPECT_EQ(n.reason, Reason::kViolation);
  EXPECT_TRUE(h.streams.streams[s].closed);
  EXPECT_EQ(other->state, Channel::State::kOpen);
  EXPECT_EQ(h.user.context->own_memory().in_use, memory / 2);  // one channel's receives
}

Immediate with_head(Role role) { return {0, 0, false, true, role, Kind::kMessage}; }

INSTANTIATE_TEST_SUITE_P(
    Of, StreamViolations,
    testing::Values(Bad{"AnAnnouncement", frame(said(Kind::kAnnouncement), 32, 32)},
                    Bad{"AMessageThatIsTooLong", frame(said(Kind::kMessage), 0, (1U << 20U) + 1)},
                    Bad{"AMessageOfFourGigabytes", frame(said(Kind::kMessage), 0, UINT32_MAX)},
                    Bad{"AHeadWithoutRoom", frame(with_head(Role::kRequest), 31, 31)},
                    Bad{"AnotherNumber", message(1, 10)}, Bad{"AnAckOfNothing", message(0, 10, 1)},
                    Bad{"AControlWithAPayload", frame(said(Kind::kAck), 1, 1)},
                    Bad{"AnAckWithoutNews", frame(said(Kind::kAck), 0, 0)},
                    Bad{"ANopWithoutPermission", frame(said(Kind::kNop), 0, 0)},
                    Bad{"AMoveFromTheEndThatAsked", frame(said(Kind::kMove), 0, 0)},
                    Bad{"ANumberOfAControlThatIsNotNext", frame(said(Kind::kClose, 1), 0, 0)},
                    Bad{"ARequestWithoutAHead",
                        frame({0, 0, false, false, Role::kRequest, Kind::kMessage}, 10, 10)},
                    Bad{"AClockWithAPayload", frame(with_head(Role::kClock), 40, 40)},
                    Bad{"AReservedBit", {0, 0, 0, 0, 0, 0, 0, 8}},
                    Bad{"AKindThatIsNone", {0, 0, 0, 0, 0, 0, 0, 6}}),
    [](const auto& of) { return std::string(of.param.name); });

// A window of messages, and one more.
TEST(StreamFrames, BeyondTheWindowAreAViolation) {
  Host h;
  Channel* const c = h.asked();
  ASSERT_NE(c, nullptr);
  const std::uint32_t s = h.say(kHere, bytes_of(hello(7, true)));
  for (std::uint32_t i = 0; i < 8; ++i) h.streams.feed(s, message(i, 10));
  h.turn();
  EXPECT_EQ(c->state, Channel::State::kOpen);
  EXPECT_EQ(h.user.notices.size(), 8U);
  h.streams.feed(s, message(8, 10));
  h.turn();
  EXPECT_EQ(h.user.context->counts().violations, 1U);
  for (Notice& n : h.user.notices)
    if (n.message != nullptr) h.user.context->release(n.message);
}

// It takes what a window and the queue hold, and then says that it is full. Nothing is written in halves.
TEST(StreamFrames, WaitForAPeerThatDoesNotRead) {
  Host h;
  Channel* const c = h.asked();
  ASSERT_NE(c, nullptr);
  const std::uint32_t s = h.say(kHere, bytes_of(hello(7, true)));
  h.streams.streams[s].said.clear();
  h.streams.streams[s].room = 20;
  int taken = 0;
  Message* m = h.user.make(100, 1);
  while (h.user.context->send(*c, m, 0, false)) {
    m = h.user.make(100, 1);
    ++taken;
  }
  h.user.context->release(m);
  h.turn();
  EXPECT_EQ(taken, 1 + 4);  // one is leaving, four are in the queue
  EXPECT_EQ(h.streams.streams[s].said.size(), 20U);
  EXPECT_EQ(c->tx.complete, 0U);
  h.streams.give_room(s, SIZE_MAX);
  h.turn();
  EXPECT_EQ(c->tx.complete, 5U);
  const Bytes8& out = h.streams.streams[s].said;
  ASSERT_EQ(out.size(), 5U * (Prefix::kBytes + 100));
  for (std::uint32_t i = 0; i < 5; ++i) {
    const Prefix p = channel::read_prefix(out.data() + std::size_t{i} * 108);
    Immediate at;
    ASSERT_TRUE(channel::unpack(p.immediate, at));
    EXPECT_EQ(p.length, 100U);
    EXPECT_EQ(at.seq, i);
  }
}

// Bytes at random through the fuzzer's world: enough of them are right that channels move and messages come,
// and enough are wrong.
TEST(StreamStrangers, MaySayWhatAByteStringSays) {
  std::uint64_t messages = 0;
  std::uint64_t violations = 0;
  std::uint64_t moves = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Prng random(seed);
    std::vector<std::uint8_t> bytes(1500);
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random.next());
    fuzz::StreamPeer peer(bytes);
    peer.run();
    messages += peer.messages();
    violations += peer.violations();
    moves += peer.moves();
  }
  EXPECT_GT(messages, 500U);
  EXPECT_GT(violations, 100U);
  EXPECT_GT(moves, 100U);
}

// --- turns that end for want of memory ---

TEST(ATurnWithoutMemory, DialsAStreamInTheNext) {
  Host h;
  Channel* const c = h.asks();
  ASSERT_NE(c, nullptr);
  ASSERT_TRUE(h.user.context->move(*c, Carrier::kTcp).has_value());
  h.streams.scarce = true;
  EXPECT_THROW(h.turn(), std::bad_alloc);
  EXPECT_LE(h.user.context->next_wake(), h.now.after(microseconds(1)));
  h.pass(microseconds(1));
  ASSERT_EQ(h.streams.streams.size(), 1U);
  h.answer_stream(*c);
  EXPECT_EQ(c->state, Channel::State::kOpen);
}

// Two streams have something to read, and for the first there is no memory. The next turn reads both.
TEST(ATurnWithoutMemory, ReadsEveryStreamInTheNext) {
  Host h;
  Channel* const one = h.asked(hello(7));
  Channel* const two = h.asked(hello(8));
  ASSERT_TRUE(one != nullptr && two != nullptr);
  const std::uint32_t a = h.say(kHere, bytes_of(hello(7, true)));
  const std::uint32_t b = h.say(kHere, bytes_of(hello(8, true)));
  ASSERT_TRUE(one->carrier == Carrier::kTcp && two->carrier == Carrier::kTcp);
  h.turn();
  h.streams.feed(a, message(0, 10));
  h.streams.feed(b, message(0, 10));
  h.streams.scarce = true;
  EXPECT_THROW(h.turn(), std::bad_alloc);
  h.turn();
  EXPECT_EQ(h.user.notices.size(), 2U);
  for (const Notice& n : h.user.notices) h.user.context->release(n.message);
}

}  // namespace
}  // namespace weft::channel_test
