// Messages of several parts of the program's own memory: gathered as they are sent, fetched part by part, or
// written to a stream one behind the other.
#include <gmock/gmock.h>

#include <vector>

#include "tests/channel/two_carriers.h"
#include "tests/channel/worlds.h"

namespace weft::channel_test {
namespace {

using channel::Part;
using channel::Registered;

// Two pieces of memory of a context, whose bytes are all different from their neighbours'.
struct Own {
  explicit Own(Context& c)
      : context(c), bytes{std::vector<std::uint8_t>(30'000), std::vector<std::uint8_t>(50'000)} {
    for (int i = 0; i < 2; ++i) {
      std::uint32_t k = 0;
      for (std::uint8_t& b : bytes[i]) b = User::byte(k++, i == 0 ? 3 : 101);
      const auto made = c.register_memory(bytes[i]);
      if (made) memory[i] = *made;
    }
  }
  Part part(int of, std::uint64_t offset, std::uint32_t length) const { return {memory[of], offset, length}; }
  static std::vector<std::uint8_t> joined(const std::vector<Part>& parts) {
    std::vector<std::uint8_t> all;
    for (const Part& p : parts) all.insert(all.end(), p.data(), p.data() + p.length);
    return all;
  }
  Context& context;
  std::vector<std::uint8_t> bytes[2];
  Registered* memory[2] = {};
};

std::vector<std::uint8_t> content(const Message& m) { return {m.data, m.data + m.length}; }

Config four_pieces() {
  Config config = small_config();
  config.pieces = 4;
  return config;
}

std::vector<std::vector<Part>> lists(const Own& own) {
  return {
      {own.part(0, 10, 100), own.part(1, 500, 200)},
      {own.part(0, 0, 1), own.part(0, 1, 1), own.part(1, 0, 1), own.part(0, 29'999, 1)},
      {own.part(1, 7, 0), own.part(0, 20, 300), own.part(1, 7, 0), own.part(1, 7, 900)},
      {own.part(1, 0, 0), own.part(0, 0, 0)},
      {own.part(0, 1000, 9'000), own.part(1, 1, 20'000)},
      {own.part(1, 49'000, 1000), own.part(0, 0, 30'000), own.part(1, 0, 1), own.part(0, 5, 8'193)},
  };
}

// Every list as a message and as a request with a head, below the threshold and above, traced and not. No
// memory is held in the end.
TEST(MessagesOfParts, ArriveAsOneMessage) {
  for (const bool traced : {false, true}) {
    Config config = four_pieces();
    config.trace_mask = traced ? UINT64_MAX : 0;
    NicWorld world(config);
    Channel* at_a = nullptr;
    Channel* at_b = nullptr;
    world.connect(at_a, at_b);
    Context& a = *world.a().context;
    Context& b = *world.b().context;
    Own own(a);
    for (const std::vector<Part>& parts : lists(own)) {
      for (const bool asks : {false, true}) {
        Message* const m = a.gather(parts);
        ASSERT_NE(m, nullptr);
        EXPECT_EQ(a.deregister_memory(*parts.back().memory).error(), Errc::kBusy);
        if (asks) {
          ASSERT_TRUE(a.call(*at_a, m, 1, kNever).has_value());
        } else {
          ASSERT_TRUE(a.send(*at_a, m, 1, true).has_value());
        }
        world.run(milliseconds(3));
        const Notice got = world.b().take();
        ASSERT_EQ(got.kind, asks ? Notice::Kind::kRequest : Notice::Kind::kMessage);
        EXPECT_EQ(content(*got.message), Own::joined(parts));
        if (asks) {
          ASSERT_TRUE(b.answer(*got.message, nullptr, 7, 0).has_value());
        }
        b.release(got.message);
        world.run(milliseconds(20));
        const Notice end = world.a().take();
        ASSERT_EQ(end.kind, asks ? Notice::Kind::kResponse : Notice::Kind::kOutcome);
        if (asks) a.release(end.message);
        world.run(milliseconds(20));
      }
    }
    for (Registered* const memory : own.memory) {
      EXPECT_EQ(memory->messages, 0U);
      EXPECT_TRUE(a.deregister_memory(*memory).has_value());
    }
    EXPECT_EQ(a.lent_memory().in_use, 0U);
  }
}

// An answer of parts, and one that was made shorter, inside its third part.
TEST(MessagesOfParts, AnswerAndMayBeMadeShorter) {
  NicWorld world(four_pieces());
  Channel* at_a = nullptr;
  Channel* at_b = nullptr;
  world.connect(at_a, at_b);
  Context& a = *world.a().context;
  Context& b = *world.b().context;
  Own own(b);
  const std::vector<Part> parts{own.part(0, 0, 100), own.part(1, 0, 100), own.part(0, 500, 100),
                                own.part(1, 9, 9)};
  for (const std::uint32_t shorter : {309U, 250U, 100U, 0U}) {
    ASSERT_TRUE(a.call(*at_a, world.a().make(8, 1), 1, kNever).has_value());
    world.run(milliseconds(1));
    const Notice asked = world.b().take();
    Message* const m = b.gather(parts);
    ASSERT_NE(m, nullptr);
    m->length = shorter;
    ASSERT_TRUE(b.answer(*asked.message, m, 0, 0).has_value());
    b.release(asked.message);
    world.run(milliseconds(5));
    const Notice got = world.a().take();
    ASSERT_EQ(got.kind, Notice::Kind::kResponse);
    std::vector<std::uint8_t> all = Own::joined(parts);
    all.resize(shorter);
    EXPECT_EQ(content(*got.message), all);
    a.release(got.message);
    world.run(milliseconds(20));
  }
  EXPECT_EQ(own.memory[0]->messages + own.memory[1]->messages, 0U);
}

// Over TCP, whatever the kernel takes at a time.
TEST(MessagesOfParts, FollowEachOtherInAStream) {
  Config config = config_of();
  config.pieces = 4;
  Host h(config);
  Channel* const c = h.asked();
  ASSERT_NE(c, nullptr);
  const std::uint32_t s = h.say(kHere, bytes_of(hello(7, true)));
  const Own own(*h.user.context);
  const std::vector<Part> parts{own.part(0, 0, 100), own.part(1, 3, 0), own.part(1, 0, 300),
                                own.part(0, 7, 1)};
  for (const std::size_t at_once : {std::size_t{1}, std::size_t{7}, std::size_t{109}, SIZE_MAX}) {
    h.streams.streams[s].said.clear();
    h.streams.streams[s].at_once = at_once;
    Message* const m = h.user.context->gather(parts);
    ASSERT_NE(m, nullptr);
    ASSERT_TRUE(h.user.context->send(*c, m, 0, false).has_value());
    h.turn();
    const Bytes8& out = h.streams.streams[s].said;
    ASSERT_EQ(out.size(), Prefix::kBytes + 401U);
    EXPECT_EQ(Bytes8(out.begin() + Prefix::kBytes, out.end()), Own::joined(parts));
  }
  EXPECT_EQ(c->tx.complete, 4U);
}

TEST(MessagesOfParts, AreRefusedWhereTheyCannotBe) {
  NicWorld world(four_pieces());
  Context& a = *world.a().context;
  const Own own(a);
  const std::vector<Part> five(5, own.part(0, 0, 1));
  EXPECT_EQ(a.gather(five), nullptr);
  EXPECT_EQ(a.gather({}), nullptr);
  EXPECT_EQ(a.gather(std::vector<Part>{own.part(0, 0, 1), own.part(0, 30'000, 1)}), nullptr);
  EXPECT_EQ(a.gather(std::vector<Part>{own.part(0, 30'001, 0), own.part(0, 0, 1)}), nullptr);
  EXPECT_EQ(own.memory[0]->messages, 0U);
  Config config = four_pieces();
  config.pieces = 2;
  NicWorld narrow(config);
  const Own there(*narrow.a().context);
  EXPECT_EQ(narrow.a().context->gather(std::vector<Part>(3, there.part(0, 0, 1))), nullptr);
  Message* const two = narrow.a().context->gather(std::vector<Part>(2, there.part(0, 0, 1)));
  ASSERT_NE(two, nullptr);
  EXPECT_EQ(there.memory[0]->messages, 2U);
  narrow.a().context->release(two);  // one that was never sent
  EXPECT_EQ(there.memory[0]->messages, 0U);
  config.pieces = 5;
  EXPECT_EQ(config.validate().error().message, "pieces = 5: it must lie between 1 and 4");
}

}  // namespace
}  // namespace weft::channel_test
