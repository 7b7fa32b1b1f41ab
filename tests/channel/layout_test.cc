// What every message touches lies together (docs/ARCHITECTURE.md#what-a-message-touches), and what follows
// from it: a message without a head has zeros where a head's would stand though nobody wrote them, counts are
// kept in halves, and one comparison stands for two.
#include <gtest/gtest.h>

#include "tests/channel/null_port.h"
#include "tests/channel/users.h"

namespace weft::channel_test {
namespace {

template <class Part, class Whole>
std::ptrdiff_t line_of(const Part& part, const Whole& whole) {
  return (reinterpret_cast<const std::uint8_t*>(&part) - reinterpret_cast<const std::uint8_t*>(&whole)) / 64;
}

TEST(Layout, WhatEveryMessageTouchesOfAChannelIsTwoLines) {
  const Channel c;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&c) % 128, 0U);
  EXPECT_EQ(line_of(c.tx, c), 0);
  EXPECT_EQ(line_of(c.tx.depth, c), 0);
  EXPECT_EQ(line_of(c.rx, c), 1);
  EXPECT_EQ(line_of(c.waiting, c), 1);
  EXPECT_EQ(line_of(c.first, c), 2);
}

TEST(Layout, WhatAMessageWithoutAHeadTouchesOfItsBlockIsOneLine) {
  const Message m{};
  EXPECT_EQ(line_of(m.next, m), 0);
  EXPECT_EQ(line_of(m.body, m), 0);
  EXPECT_EQ(line_of(m.cookie, m), 1);
}

TEST(Counts, OfAllHalvesAreTold) {
  constexpr std::uint32_t kLong = 0x7FFFFFFF;
  Channel c;
  for (std::uint64_t i = 1; i <= 9; ++i) {
    c.count_sent(kLong);
    c.count_received(i == 1 ? 3 : 0);
    ASSERT_EQ(c.counts().sent, i);
    ASSERT_EQ(c.counts().sent_bytes, i * kLong);
    ASSERT_EQ(c.counts().received, i);
    ASSERT_EQ(c.counts().received_bytes, 3U);
  }
}

// Two contexts over ports without a network, and a channel between them.
struct Two {
  explicit Two(const Config& config) : Two(config, config) {}
  Two(const Config& a, const Config& b) : users{User(ports[0], a, 1), User(ports[1], b, 2)} {
    ports[0].meet(ports[1]);
    (void)users[0].context->connect(wire::Address::v4(127, 0, 0, 1), kService, 0);
    for (int i = 0; i < 4; ++i) turn();
    for (int side = 0; side < 2; ++side) {
      for (Notice n = users[side].take(); n.channel != nullptr; n = users[side].take()) at[side] = n.channel;
    }
  }
  ~Two() {
    for (User& u : users) u.context.reset();
  }
  void turn() {
    for (User& u : users) u.poll(now);
    for (const Notice& n : users[1].notices) {
      if (n.kind == Notice::Kind::kAsked) users[1].context->accept(*n.channel, 0);
    }
    now = now + microseconds(100);
  }
  // What the other end gets of what this one sends.
  Notice got(int side) {
    for (int i = 0; i < 4 && users[side].notices.empty(); ++i) turn();
    return users[side].take();
  }
  NullPort ports[2];
  User users[2];
  Channel* at[2] = {};
  Time now{};
};

Config little() {
  Config config;
  config.channels = 1;
  config.depth = 2;
  config.small = 256;
  return config;
}

// A window of two has ten receives, which serve in turn: each block holds messages of every kind.
TEST(Blocks, HaveNothingOfTheMessageBefore) {
  Two two(little());
  Context& a = *two.users[0].context;
  Context& b = *two.users[1].context;
  ASSERT_NE(two.at[0], nullptr);
  ASSERT_NE(two.at[1], nullptr);
  for (std::uint32_t i = 0; i < 60; ++i) {
    for (int side = 0; side < 2; ++side) {
      ASSERT_TRUE(two.users[side].context->send(*two.at[side], two.users[side].make(20, i), 77 + i, false));
      const Notice plain = two.got(1 - side);
      ASSERT_EQ(plain.kind, Notice::Kind::kMessage);
      ASSERT_TRUE(User::filled(*plain.message, 20, i));
      ASSERT_EQ(plain.cookie, 0U) << i;
      ASSERT_EQ(plain.message->cookie, 0U) << i;
      ASSERT_EQ(plain.message->status, 0U) << i;
      ASSERT_EQ(plain.message->call, 0U) << i;
      ASSERT_FALSE(plain.message->answered) << i;
      two.users[1 - side].context->release(plain.message);
    }
    if (i % 3 == 0) continue;
    ASSERT_TRUE(a.call(*two.at[0], two.users[0].make(10, i), 1000 + i, kNever).has_value());
    const Notice request = two.got(1);
    ASSERT_EQ(request.kind, Notice::Kind::kRequest);
    ASSERT_TRUE(b.answer(*request.message, nullptr, 5, 0).has_value());
    b.release(request.message);
    const Notice response = two.got(0);
    ASSERT_EQ(response.kind, Notice::Kind::kResponse);
    ASSERT_EQ(response.message->status, 5U);
    ASSERT_EQ(response.cookie, 1000U + i);
    a.release(response.message);
  }
}

// Its longest message is 256 bytes, and its frames have room for a head beside them: without a head a message
// of 288 would fit.
TEST(Sending, IsRefusedBeyondThePeersLongestMessageThoughTheFrameHasRoom) {
  Config theirs = little();
  theirs.largest = theirs.small;
  Two two(little(), theirs);
  Context& a = *two.users[0].context;
  ASSERT_NE(two.at[0], nullptr);
  for (const std::uint32_t length : {257U, 288U, 289U}) {
    Message* const m = a.allocate(length);
    const auto sent = a.send(*two.at[0], m, 0, false);
    ASSERT_FALSE(sent.has_value()) << length;
    EXPECT_EQ(sent.error(), Errc::kInvalid);
    a.release(m);
  }
  ASSERT_TRUE(a.send(*two.at[0], two.users[0].make(256, 1), 0, false).has_value());
  const Notice n = two.got(1);
  ASSERT_EQ(n.kind, Notice::Kind::kMessage);
  EXPECT_TRUE(User::filled(*n.message, 256, 1));
  two.users[1].context->release(n.message);
}

}  // namespace
}  // namespace weft::channel_test
