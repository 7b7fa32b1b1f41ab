// Memory of a program: its own, registered and sent from without a copy; the cache's, guarded so that who
// writes beyond a message is told which.
#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <vector>

#include "channel/report.h"
#include "channel_c/pages.h"
#include "tests/channel/worlds.h"

namespace weft::channel_test {
namespace {

using channel::MemoryMode;
using channel::Registered;
using testing::HasSubstr;

std::vector<std::uint8_t> filled(std::size_t length, std::uint32_t salt) {
  std::vector<std::uint8_t> bytes(length);
  for (std::uint32_t i = 0; i < length; ++i) bytes[i] = User::byte(i, salt);
  return bytes;
}

// Short, short as a request, and too long for a frame; from the middle of the memory.
TEST(RegisteredMemory, IsSentFromWhereItLies) {
  NicWorld world(small_config());
  Channel* at_a = nullptr;
  Channel* at_b = nullptr;
  world.connect(at_a, at_b);
  Context& a = *world.a().context;
  Context& b = *world.b().context;
  std::vector<std::uint8_t> bytes = filled(100'000, 0);
  const auto memory = a.register_memory(bytes);
  ASSERT_TRUE(memory.has_value());
  for (const std::uint32_t length : {0U, 64U, 4096U, 60'000U}) {
    for (const bool asks : {false, true}) {
      Message* const m = a.wrap(**memory, 1000, length);
      ASSERT_NE(m, nullptr);
      EXPECT_EQ(m->data, bytes.data() + 1000);
      EXPECT_EQ(a.deregister_memory(**memory).error(), Errc::kBusy);
      if (asks) {
        ASSERT_TRUE(a.call(*at_a, m, 1, kNever).has_value());
      } else {
        ASSERT_TRUE(a.send(*at_a, m, 1, true).has_value());
      }
      world.run(milliseconds(2));
      const Notice got = world.b().take();
      ASSERT_EQ(got.kind, asks ? Notice::Kind::kRequest : Notice::Kind::kMessage);
      ASSERT_EQ(got.message->length, length);
      EXPECT_TRUE(std::equal(bytes.begin() + 1000, bytes.begin() + 1000 + length, got.message->data));
      if (asks) {
        ASSERT_TRUE(b.answer(*got.message, nullptr, 7, 0).has_value());
      }
      b.release(got.message);
      world.run(milliseconds(10));
      const Notice end = world.a().take();
      EXPECT_EQ(end.kind, asks ? Notice::Kind::kResponse : Notice::Kind::kOutcome);
      if (asks) a.release(end.message);
      world.run(milliseconds(10));
    }
  }
  EXPECT_EQ((*memory)->messages, 0U);
  EXPECT_TRUE(a.deregister_memory(**memory).has_value());
  EXPECT_EQ(a.lent_memory().in_use, 0U);
}

TEST(RegisteredMemory, GivesNoMessageOfWhatDoesNotLieInIt) {
  NicWorld world(small_config());
  Context& a = *world.a().context;
  std::vector<std::uint8_t> bytes(1000);
  const auto memory = a.register_memory(bytes);
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(a.wrap(**memory, 1001, 0), nullptr);
  EXPECT_EQ(a.wrap(**memory, 500, 501), nullptr);
  EXPECT_EQ(a.wrap(**memory, UINT64_MAX, 2), nullptr);
  Message* const all = a.wrap(**memory, 0, 1000);
  ASSERT_NE(all, nullptr);
  a.release(all);  // one that was never sent
  EXPECT_TRUE(a.deregister_memory(**memory).has_value());
  EXPECT_FALSE(a.register_memory({}).has_value());
}

// One byte too many, of a message that has room behind it in its block: sending it is refused, and the report
// says which it was. The next one is as good as any.
TEST(IsolatedMemory, SaysWhichMessageWasOverrun) {
  Config config = small_config();
  config.isolate = true;
  NicWorld world(config);
  Channel* at_a = nullptr;
  Channel* at_b = nullptr;
  world.connect(at_a, at_b);
  Context& a = *world.a().context;
  Message* const good = world.a().make(100, 1);
  Message* const bad = world.a().make(100, 2);
  bad->data[100] = 1;
  ASSERT_TRUE(a.send(*at_a, good, 11, true).has_value());
  bad->cookie = 12;
  EXPECT_EQ(a.send(*at_a, bad, 12, true).error(), Errc::kInvalid);
  EXPECT_EQ(a.lent_memory().overruns, 1U);
  EXPECT_EQ(a.lent_cache().last_overrun().data, bad->data);
  EXPECT_EQ(a.lent_cache().last_overrun().at, 100U);
  EXPECT_THAT(channel::report(a),
              HasSubstr("OVERRUN of 1 messages to be sent; the last had 100 bytes and the user's "
                        "number 12, and byte 100 was written"));
  a.release(bad);
  world.run(milliseconds(10));
  const Notice got = world.b().take();
  ASSERT_TRUE(User::filled(*got.message, 100, 1));
  world.b().context->release(got.message);
  EXPECT_EQ(a.lent_memory().overruns, 1U) << "once";
}

// A program that writes beyond what it received, far beyond a frame.
TEST(IsolatedMemory, SaysWhichReceivedMessageWasOverrun) {
  Config config = small_config();
  config.isolate = true;
  NicWorld world(config);
  Channel* at_a = nullptr;
  Channel* at_b = nullptr;
  world.connect(at_a, at_b);
  ASSERT_TRUE(world.a().context->send(*at_a, world.a().make(20'000, 3), 1, false).has_value());
  world.run(milliseconds(5));
  const Notice got = world.b().take();
  ASSERT_TRUE(User::filled(*got.message, 20'000, 3));
  got.message->data[20'003] = 0;
  world.b().context->release(got.message);
  EXPECT_EQ(world.b().context->own_memory().overruns, 1U);
  EXPECT_EQ(world.b().context->own_cache().last_overrun().at, 20'003U);
}

// A block that stood for bytes elsewhere is one like any other afterwards.
TEST(IsolatedMemory, IsWholeAfterAMessageOfTheProgramsOwn) {
  Config config = small_config();
  config.isolate = true;
  NicWorld world(config);
  Context& a = *world.a().context;
  std::vector<std::uint8_t> bytes(1000);
  const auto memory = a.register_memory(bytes);
  ASSERT_TRUE(memory.has_value());
  for (int i = 0; i < 3; ++i) {
    a.release(a.wrap(**memory, 0, 1000));
    Message* const m = world.a().make(200, 1);
    EXPECT_EQ(m->capacity, 200U);
    a.release(m);
  }
  EXPECT_EQ(a.lent_memory().overruns, 0U);
  EXPECT_EQ(a.lent_memory().in_use, 0U);
}

std::int64_t mapped = 0;
void* map_here(std::uint64_t bytes, bool huge) {
  ++mapped;
  return channel::map_pages(bytes, huge);
}
void unmap_here(void* at, std::uint64_t bytes) {
  --mapped;
  channel::unmap_pages(at, bytes);
}

TEST(IsolatedMemory, IsMappedAtMarkedAddressesAndGivenBack) {
  Config config = small_config();
  config.isolate = true;
  config.pages = {map_here, unmap_here};
  {
    NicWorld world(config);
    Channel* at_a = nullptr;
    Channel* at_b = nullptr;
    world.connect(at_a, at_b);
    Message* const m = world.a().make(5000, 4);
    EXPECT_GE(reinterpret_cast<std::uint64_t>(m->data), channel::kMarked);
    ASSERT_TRUE(world.a().context->send(*at_a, m, 1, false).has_value());
    world.run(milliseconds(5));
    const Notice got = world.b().take();
    EXPECT_TRUE(User::filled(*got.message, 5000, 4));
    world.b().context->release(got.message);
    EXPECT_GT(mapped, 2);
  }
  EXPECT_EQ(mapped, 0);
}

// The address sanitizer turns the signal into a report, and an exit code.
bool ends_by_its_address(int status) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  return testing::ExitedWithCode(1)(status);
#endif
#endif
  return testing::KilledBySignal(SIGSEGV)(status);
}

TEST(IsolatedMemory, EndsWhoRunsOutOfARegion) {
  auto* const at = static_cast<volatile std::uint8_t*>(channel::map_pages(8192, false));
  ASSERT_NE(at, nullptr);
  at[8191] = 1;
  EXPECT_EXIT(at[8192] = 1, ends_by_its_address, "");
  EXPECT_EXIT(at[-1] = 1, ends_by_its_address, "");
  channel::unmap_pages(const_cast<std::uint8_t*>(at), 8192);
}

TEST(MemoryModes, AreRefusedWhereThereAreNoPages) {
  Config config = small_config();
  config.memory_mode = MemoryMode::kHuge;
  EXPECT_THAT(config.validate().error().message, HasSubstr("this platform maps no pages"));
  config.pages = {map_here, unmap_here};
  EXPECT_TRUE(config.validate().has_value());
}

// Whether the machine has huge pages or not: memory that can be used, or a sentence.
TEST(MemoryModes, HugePagesAreThereOrAreRefused) {
  void* const at = channel::map_pages(4U << 20U, true);
  if (at == nullptr) GTEST_SKIP() << "this machine has set no huge pages aside";
  static_cast<std::uint8_t*>(at)[0] = 1;
  channel::unmap_pages(at, 4U << 20U);
}

}  // namespace
}  // namespace weft::channel_test
