// Memory of a program: its own, registered and sent from without a copy; the cache's, guarded so that who
// writes beyond a message is told which.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
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

Message* wrap(Context& context, Registered& memory, std::uint64_t offset, std::uint32_t length) {
  const channel::Part all{&memory, offset, length};
  return context.gather({&all, 1});
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
      Message* const m = wrap(a, **memory, 1000, length);
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
  EXPECT_EQ(wrap(a, **memory, 1001, 0), nullptr);
  EXPECT_EQ(wrap(a, **memory, 500, 501), nullptr);
  EXPECT_EQ(wrap(a, **memory, UINT64_MAX, 2), nullptr);
  Message* const all = wrap(a, **memory, 0, 1000);
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
    a.release(wrap(a, **memory, 0, 1000));
    Message* const m = world.a().make(200, 1);
    EXPECT_EQ(m->capacity, 200U);
    a.release(m);
  }
  EXPECT_EQ(a.lent_memory().overruns, 0U);
  EXPECT_EQ(a.lent_memory().in_use, 0U);
}

std::int64_t mapped = 0;
void* map_here(std::uint64_t bytes, MemoryMode mode) {
  void* const at = channel::map_memory(bytes, mode);
  mapped += at != nullptr ? 1 : 0;
  return at;
}
void unmap_here(void* at, std::uint64_t bytes, MemoryMode mode) {
  --mapped;
  channel::unmap_memory(at, bytes, mode);
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
  auto* const at = static_cast<volatile std::uint8_t*>(channel::map_pages(8192, MemoryMode::kPages));
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

// A short message and a fetched one, and every region is given back to where it came from.
struct Carried {
  std::uint64_t regions = 0;
  std::uint64_t plain = 0;
  const std::uint8_t* data = nullptr;
  std::string report;
};
Carried carry(const Config& config) {
  NicWorld world(config);
  Channel* at_a = nullptr;
  Channel* at_b = nullptr;
  world.connect(at_a, at_b);
  Carried carried;
  for (const std::uint32_t length : {100U, 20'000U}) {
    Message* const m = world.a().make(length, length);
    carried.data = m->data;
    EXPECT_TRUE(world.a().context->send(*at_a, m, 1, false).has_value());
    world.run(milliseconds(5));
    const Notice got = world.b().take();
    EXPECT_TRUE(User::filled(*got.message, length, length));
    world.b().context->release(got.message);
  }
  const channel::MemoryCounts& lent = world.a().context->lent_memory();
  const channel::MemoryCounts& own = world.a().context->own_memory();
  carried.regions = lent.grown + own.grown;
  carried.plain = lent.plain + own.plain;
  carried.report = channel::report(*world.a().context);
  return carried;
}

TEST(MemoryModes, OfThePlatformCarryMessagesAndAreGivenBack) {
  for (const MemoryMode mode :
       {MemoryMode::kPages, MemoryMode::kHuge, MemoryMode::kMalloc, MemoryMode::kContiguous}) {
    Config config = small_config();
    config.memory_mode = mode;
    config.pages = {map_here, unmap_here};
    const Carried carried = carry(config);
    EXPECT_EQ(mapped, 0) << static_cast<int>(mode);
    const bool marked = reinterpret_cast<std::uint64_t>(carried.data) >> 40U == channel::kMarked >> 40U;
    EXPECT_EQ(marked, mode != MemoryMode::kMalloc);
    EXPECT_TRUE(mode == MemoryMode::kHuge || mode == MemoryMode::kContiguous || carried.plain == 0);
  }
}

// A machine that has set no huge pages aside, or whose memory is in pieces: ordinary pages serve, each region
// is counted, and the report says so.
TEST(MemoryModes, GoOnWithOrdinaryPagesWhereThereAreNoOthers) {
  for (const MemoryMode mode : {MemoryMode::kHuge, MemoryMode::kContiguous}) {
    Config config = small_config();
    config.memory_mode = mode;
    config.pages = {[](std::uint64_t bytes, MemoryMode wanted) -> void* {
                      return wanted == MemoryMode::kPages ? map_here(bytes, wanted) : nullptr;
                    },
                    [](void* at, std::uint64_t bytes, MemoryMode was) {
                      EXPECT_EQ(was, MemoryMode::kPages);
                      unmap_here(at, bytes, was);
                    }};
    const Carried carried = carry(config);
    EXPECT_EQ(mapped, 0);
    EXPECT_GT(carried.regions, 1U);
    EXPECT_EQ(carried.plain, carried.regions);
    const std::string regions = std::to_string(carried.regions);
    EXPECT_THAT(carried.report,
                HasSubstr(std::string(mode == MemoryMode::kHuge ? "huge" : "contiguous") +
                          " pages were lacking for " + regions + " of " + regions + " regions"));
  }
}

// Where they are to be had nothing is lacking.
TEST(MemoryModes, SayNothingWhereNothingIsLacking) {
  Config config = small_config();
  config.memory_mode = MemoryMode::kHuge;
  config.pages = {[](std::uint64_t bytes, MemoryMode wanted) {
                    EXPECT_EQ(wanted, MemoryMode::kHuge);
                    return map_here(bytes, MemoryMode::kPages);
                  },
                  [](void* at, std::uint64_t bytes, MemoryMode was) {
                    EXPECT_EQ(was, MemoryMode::kHuge);
                    unmap_here(at, bytes, MemoryMode::kPages);
                  }};
  const Carried carried = carry(config);
  EXPECT_EQ(mapped, 0);
  EXPECT_EQ(carried.plain, 0U);
  EXPECT_THAT(carried.report, testing::Not(HasSubstr("lacking")));
}

TEST(MemoryModes, OfTheHeapHaveNoHoles) {
  Config config = small_config();
  config.memory_mode = MemoryMode::kMalloc;
  config.isolate = true;
  config.pages = {map_here, unmap_here};
  EXPECT_THAT(config.validate().error().message, HasSubstr("heap has no holes"));
  config.isolate = false;
  EXPECT_TRUE(config.validate().has_value());
}

// Of this process's mapping at `at`: kilobytes on huge pages of the kernel's choice, and of those set aside.
struct Backed {
  std::uint64_t together_kb = 0;
  std::uint64_t huge_kb = 0;
};
Backed backed(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  const auto address = reinterpret_cast<std::uint64_t>(at);
  Backed found;
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    unsigned long long kb = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2) here = begin <= address && address < end;
    if (here && std::sscanf(line.c_str(), "AnonHugePages: %llu kB", &kb) == 1) found.together_kb = kb;
    if (here && std::sscanf(line.c_str(), "Private_Hugetlb: %llu kB", &kb) == 1) found.huge_kb = kb;
  }
  return found;
}

// The numbers of the page frames, which the kernel tells root alone; empty: it does not.
std::vector<std::uint64_t> frames(const void* at, std::uint64_t bytes) {
  std::ifstream map("/proc/self/pagemap", std::ios::binary);
  map.seekg(static_cast<std::streamoff>(reinterpret_cast<std::uint64_t>(at) / channel::kPage * 8));
  std::vector<std::uint64_t> numbers(bytes / channel::kPage);
  map.read(reinterpret_cast<char*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * 8));
  if (!map) return {};
  for (std::uint64_t& n : numbers) n &= (1ULL << 55U) - 1;
  return numbers[0] == 0 ? std::vector<std::uint64_t>{} : numbers;
}

constexpr std::uint64_t kRegion = 4U << 20U;

TEST(MemoryModes, OfContiguousPagesLieTogether) {
  auto* const at = static_cast<std::uint8_t*>(channel::map_memory(kRegion, MemoryMode::kContiguous));
  if (at == nullptr) GTEST_SKIP() << "this kernel makes no memory that lies together";
  EXPECT_EQ(backed(at).together_kb, kRegion / 1024);
  const std::vector<std::uint64_t> numbers = frames(at, kRegion);
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    if (i % (channel::kHole / channel::kPage) != 0) {
      ASSERT_EQ(numbers[i], numbers[i - 1] + 1) << i;
    }
  }
  for (std::uint64_t i = 0; i < kRegion; i += 777) at[i] = 1;
  channel::unmap_memory(at, kRegion, MemoryMode::kContiguous);
}

// Peers may read what is lent to them, and the heap has what the program freed.
TEST(MemoryModes, OfTheHeapAreCleared) {
  for (const std::uint64_t bytes :
       {4 * kRegion, 2 * kRegion}) {  // after the first one the heap has such blocks
    auto* const secret = static_cast<volatile std::uint8_t*>(std::aligned_alloc(channel::kPage, bytes));
    ASSERT_NE(secret, nullptr);
    for (std::uint64_t i = 0; i < bytes; i += 64) secret[i] = 0xA5;
    std::free(const_cast<std::uint8_t*>(secret));
  }
  auto* const at = static_cast<std::uint8_t*>(channel::map_memory(kRegion, MemoryMode::kMalloc));
  ASSERT_NE(at, nullptr);
  EXPECT_EQ(std::count(at, at + kRegion, 0), static_cast<std::ptrdiff_t>(kRegion));
  channel::unmap_memory(at, kRegion, MemoryMode::kMalloc);
}

TEST(MemoryModes, OfHugePagesHaveSome) {
  auto* const at = static_cast<std::uint8_t*>(channel::map_memory(kRegion, MemoryMode::kHuge));
  if (at == nullptr) GTEST_SKIP() << "this machine has set no huge pages aside";
  for (std::uint64_t i = 0; i < kRegion; i += channel::kPage) at[i] = 1;
  EXPECT_EQ(backed(at).huge_kb, kRegion / 1024);
  channel::unmap_memory(at, kRegion, MemoryMode::kHuge);
}

}  // namespace
}  // namespace weft::channel_test
