// The ring of blocks, the counter of blocks, and the names and locks of files; what is in a trace is judged
// by tests/interop/run_traced.py.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <thread>
#include <vector>

#include "live/capture/block_ring.h"
#include "live/capture/packet_trace.h"
#include "live/capture/trace_file.h"
#include "trace/tshark.h"

namespace weft::live {
namespace {

using ::testing::HasSubstr;

// A block of pcapng's shape: type, length, as many bytes of `fill` as make it up, length.
std::vector<std::uint8_t> block(std::size_t size, std::uint8_t fill, std::uint32_t type = 6) {
  std::vector<std::uint8_t> b(size, fill);
  const auto bytes = static_cast<std::uint32_t>(size);
  wire::store_le32(b.data(), type);
  wire::store_le32(&b[4], bytes);
  wire::store_le32(&b[bytes - 4], bytes);
  return b;
}

void append(std::vector<std::uint8_t>& all, std::span<const std::uint8_t> more) {
  std::copy(more.begin(), more.end(), std::back_inserter(all));
}

std::vector<std::uint8_t> everything(BlockRing& ring) {
  std::vector<std::uint8_t> all;
  for (auto some = ring.waiting(); !some.empty(); some = ring.waiting()) {
    append(all, some);
    ring.take(some.size());
  }
  return all;
}

// A block is nothing to the reader before it is committed, and whole after that.
TEST(BlockRing, ShowsWholeBlocks) {
  BlockRing ring(256);
  const auto one = block(40, 1);
  ring.put(std::span(one).first(12));
  EXPECT_TRUE(ring.waiting().empty());
  ring.put(std::span(one).subspan(12));
  EXPECT_TRUE(ring.waiting().empty());
  EXPECT_TRUE(ring.commit());
  EXPECT_EQ(everything(ring), one);
}

// What does not fit leaves nothing behind, even if a part of it did; what comes next is as if it had never
// been.
TEST(BlockRing, ForgetsABlockThatFindsNoRoom) {
  BlockRing ring(128);
  const auto first = block(100, 1);
  const auto second = block(40, 2);
  const auto third = block(28, 3);
  ring.put(first);
  EXPECT_TRUE(ring.commit());
  ring.put(std::span(second).first(20));
  ring.put(std::span(second).subspan(20));
  EXPECT_FALSE(ring.commit());
  ring.put(third);
  EXPECT_TRUE(ring.commit());
  auto both = first;
  append(both, third);
  EXPECT_EQ(everything(ring), both);
}

// Two threads, and a ring that is passed hundreds of times: every block that was taken comes out, in order.
TEST(BlockRing, BringsEveryCommittedBlockToAnotherThread) {
  BlockRing ring(1024);
  constexpr std::uint32_t kBlocks = 20'000;
  std::vector<std::uint8_t> sent;
  std::vector<std::uint8_t> got;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    for (;;) {
      const bool last = done.load();
      append(got, everything(ring));
      if (last) return;
    }
  });
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    const auto b = block(16 + 4 * (i % 50), static_cast<std::uint8_t>(i));
    ring.put(b);
    if (ring.commit()) append(sent, b);
  }
  done = true;
  reader.join();
  EXPECT_EQ(got, sent);
}

// Wherever a stream is cut, the counter knows what was whole.
TEST(BlockCounter, KnowsTheLastWholeBlockWhereverTheStreamIsCut) {
  std::vector<std::uint8_t> all = block(28, 0, 0x0A0D'0D0A);
  for (const std::size_t n : {32U, 100U, 16U}) append(all, block(n, 9));
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    BlockCounter whole;
    BlockCounter pieces;
    whole.pass(std::span(all).first(cut));
    for (std::size_t i = 0; i < cut; ++i) pieces.pass(std::span(all).subspan(i, 1));
    const std::uint64_t packets = cut == 176 ? 3 : cut >= 160 ? 2 : cut >= 60 ? 1 : 0;
    const std::uint64_t bytes = cut == 176 ? 176 : cut >= 160 ? 160 : cut >= 60 ? 60 : cut >= 28 ? 28 : 0;
    ASSERT_EQ(whole.packets(), packets) << cut;
    ASSERT_EQ(whole.whole(), bytes) << cut;
    ASSERT_EQ(pieces.packets(), packets) << cut;
    ASSERT_EQ(pieces.whole(), bytes) << cut;
  }
}

TEST(TraceFile, PutsTheProcessNumberBeforeTheEnding) {
  EXPECT_EQ(name_of_process("trace.pcapng", 4711, 1), "trace.4711.pcapng");
  EXPECT_EQ(name_of_process("a.b/trace", 4711, 1), "a.b/trace.4711");
  EXPECT_EQ(name_of_process("/tmp/x.y.pcapng", 4711, 2), "/tmp/x.y.4711-2.pcapng");
  EXPECT_EQ(name_of_process(".hidden", 4711, 1), ".hidden.4711");
}

struct Folder {
  Folder() { CHECK(mkdtemp(path.data()) != nullptr); }
  ~Folder() { CHECK(std::system((std::string("rm -r ") + path.data()).c_str()) == 0); }
  std::string name(const char* file) const { return std::string(path.data()) + "/" + file; }
  std::array<char, 24> path{"/tmp/weft-trace-XXXXXX"};
};

// Two at a time have two files; one that was written is nobody's but for whoever empties it.
TEST(TraceFile, IsNeverWrittenByTwoNorOverwritten) {
  const Folder folder;
  const std::string name = folder.name("t.pcapng");
  const std::string own = name_of_process(name, getpid(), 1);
  {
    const auto first = TraceFile::open(name);
    ASSERT_TRUE(first.has_value()) << first.error().message;
    EXPECT_EQ((*first)->name(), name);
    ::testing::internal::CaptureStderr();
    const auto second = TraceFile::open(name);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("are in " + own));
    ASSERT_TRUE(second.has_value()) << second.error().message;
    EXPECT_EQ((*second)->name(), own);
    EXPECT_THAT(prepare_trace("--trace", name).error().message,
                HasSubstr("is being written by another process"));
    const auto b = block(64, 5);
    (*first)->ring().put(b);
    (*first)->packet((*first)->ring().commit());
  }
  ::testing::internal::CaptureStderr();
  EXPECT_EQ((*TraceFile::open(name))->name(), own);
  ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(prepare_trace("--trace", name).has_value());
  EXPECT_EQ((*TraceFile::open(name))->name(), name);
}

// Payloads and keys are in a trace, also in one whose file was there before.
TEST(TraceFile, IsItsOwnersAlone) {
  const Folder folder;
  const std::string name = folder.name("t.pcapng");
  const std::string other = folder.name("other.pcapng");
  close(::open(name.c_str(), O_WRONLY | O_CREAT, 0666));
  ASSERT_EQ(chmod(name.c_str(), 0666), 0);
  ASSERT_TRUE(prepare_trace("--trace", name).has_value());
  struct stat s {};
  ASSERT_EQ(stat(name.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777U, 0600U);
  ASSERT_EQ(chmod(name.c_str(), 0666), 0);
  ASSERT_TRUE(TraceFile::open(name).has_value());
  ASSERT_EQ(stat(name.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777U, 0600U);
  ASSERT_EQ(link(name.c_str(), other.c_str()), 0);
  EXPECT_THAT(prepare_trace("--trace", other).error().message, HasSubstr("name a file of your own"));
}

TEST(TraceFile, RefusesWhatIsNoFile) {
  EXPECT_THAT(TraceFile::open("/no/such/place.pcapng").error().message,
              HasSubstr("No such file or directory"));
  EXPECT_THAT(TraceFile::open("/dev/null").error().message, HasSubstr("it is no ordinary file"));
  EXPECT_THAT(prepare_trace("--trace", "/dev/null").error().message,
              HasSubstr("--trace: trace '/dev/null': it is no ordinary file"));
}

// Whoever posts looks at the clock before it waits for its turn: in the trace no time goes back.
TEST(PacketTrace, GoesForward) {
  if (!trace::has_tshark()) GTEST_SKIP() << "no tshark; ./dev setup installs it";
  const Folder folder;
  const std::string name = folder.name("t.pcapng");
  std::vector<std::uint8_t> frame(44, 0x04);
  {
    auto trace = PacketTrace::open({.file = name, .own = {wire::Address::v4(10, 0, 0, 1)}, .port = 4791});
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    const RxTrain train{.data = frame.data(),
                        .bytes = 44,
                        .frame_size = 44,
                        .source = wire::Address::v4(10, 0, 0, 2),
                        .source_port = 4791};
    for (const int us : {10, 7, 12}) (*trace)->received(train, Time{}.after(microseconds(us)), "");
  }
  const auto rows = trace::dissect(name, {"frame.time_delta"});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(std::strtod(rows[1][0].c_str(), nullptr), 0);
  EXPECT_NEAR(std::strtod(rows[2][0].c_str(), nullptr), 2e-6, 1e-9);
}

// A packet that came without don't-fragment, and one whose identification nobody saw, have the header that
// their ICRC covers.
TEST(PacketTrace, WritesTheHeaderThatTheIcrcNames) {
  if (!trace::has_tshark()) GTEST_SKIP() << "no tshark; ./dev setup installs it";
  const Folder folder;
  const std::string name = folder.name("t.pcapng");
  const wire::Address us = wire::Address::v4(10, 0, 0, 1);
  const wire::Address them = wire::Address::v4(10, 0, 0, 2);
  std::vector<std::uint8_t> frame(44, 0);
  frame[0] = 0x04;  // a SEND of 28 bytes
  wire::Icrc icrc(wire::IpFacts{
      .source = them, .destination = us, .source_port = 4791, .udp_length = 52, .identification = 77});
  icrc.packet(std::span(frame).first(40));
  wire::store_le32(&frame[40], icrc.value());
  {
    auto trace = PacketTrace::open({.file = name, .own = {us}, .port = 4791});
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    RxTrain train{.data = frame.data(), .bytes = 44, .frame_size = 44, .source = them, .source_port = 4791};
    (*trace)->received(train, Time{}, "");
    train.header_seen = true;
    train.dont_fragment = false;
    train.identification = 5;
    (*trace)->received(train, Time{}, "dropped by --loss");
  }
  const auto rows = trace::dissect(name, {"ip.id", "ip.flags.df", "frame.comment", "ip.checksum.status"});
  ASSERT_EQ(rows.size(), 2U);
  const auto number = [](const std::string& text) { return std::strtoul(text.c_str(), nullptr, 0); };
  EXPECT_EQ(number(rows[0][0]), 77U);
  EXPECT_EQ(number(rows[1][0]), 5U);
  EXPECT_NE(rows[0][1], rows[1][1]);
  EXPECT_EQ(rows[1][2], "dropped by --loss");
  EXPECT_EQ(rows[0][3], "1");
  EXPECT_EQ(rows[1][3], "1");
}

}  // namespace
}  // namespace weft::live
