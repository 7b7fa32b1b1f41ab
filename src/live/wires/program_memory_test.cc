// Memory that is there, was there, or was never there: what registering sees, and what a copy survives.
#include "live/wires/program_memory.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace weft::live {
namespace {

constexpr std::size_t kPage = 4096;

struct Pages {
  explicit Pages(std::size_t n, int rights = PROT_READ | PROT_WRITE, int flags = MAP_PRIVATE | MAP_ANONYMOUS,
                 int fd = -1)
      : bytes(n * kPage), at(static_cast<std::uint8_t*>(mmap(nullptr, bytes, rights, flags, fd, 0))) {
    EXPECT_NE(static_cast<void*>(at), MAP_FAILED);
  }
  ~Pages() { munmap(at, bytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void rights(std::size_t page, int r) { EXPECT_EQ(mprotect(at + page * kPage, kPage, r), 0); }
  void unmap(std::size_t page) { EXPECT_EQ(munmap(at + page * kPage, kPage), 0); }

  std::size_t bytes;
  std::uint8_t* at;
};

TEST(ProgramMemory, IsMappedWhereEveryPageIs) {
  Pages p(8);
  EXPECT_TRUE(is_mapped(p.at, p.bytes, true));
  EXPECT_TRUE(is_mapped(p.at + 100, 5000, true));
  p.rights(3, PROT_READ);
  EXPECT_TRUE(is_mapped(p.at, p.bytes, false));
  EXPECT_FALSE(is_mapped(p.at, p.bytes, true));
  EXPECT_TRUE(is_mapped(p.at, 3 * kPage, true));
  EXPECT_FALSE(is_mapped(p.at, 3 * kPage + 1, true));
  p.rights(3, PROT_NONE);
  EXPECT_FALSE(is_mapped(p.at, p.bytes, false));
  p.unmap(3);
  EXPECT_FALSE(is_mapped(p.at, p.bytes, false));
  EXPECT_TRUE(is_mapped(p.at + 4 * kPage, 4 * kPage, true));
}

TEST(ProgramMemory, IsNowhereElse) {
  EXPECT_FALSE(is_mapped(nullptr, 1, false));
  EXPECT_TRUE(is_mapped(nullptr, 0, false));
  EXPECT_FALSE(is_mapped(reinterpret_cast<void*>(0xFFFF'8000'0000'0000), 4096, false));  // the kernel's
  EXPECT_FALSE(is_mapped(reinterpret_cast<void*>(0x1234'5678'9ABC'DEF0), 4096, false));
  const int local = 0;
  EXPECT_TRUE(is_mapped(&local, sizeof local, true));
  EXPECT_FALSE(is_mapped(&local, UINT64_MAX, true));
  EXPECT_FALSE(is_mapped("a constant", 5, true));
  EXPECT_TRUE(is_mapped("a constant", 5, false));
}

// A terabyte that nobody touched stays untouched.
TEST(ProgramMemory, OfAnySizeIsLookedAtWithoutTouchingIt) {
  constexpr std::size_t kTerabyte = std::size_t{1} << 40U;
  void* const at =
      mmap(nullptr, kTerabyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) GTEST_SKIP() << "this machine has no address space to spare";
  EXPECT_TRUE(is_mapped(at, kTerabyte, true));
  unsigned char resident = 1;
  EXPECT_EQ(mincore(at, 1, &resident), 0);
  EXPECT_EQ(resident & 1U, 0U);
  munmap(at, kTerabyte);
}

TEST(ProgramMemory, ThatIsGoneEndsNoProcess) {
  guard_program_memory();
  Pages p(4);
  std::uint8_t out[100] = {};
  const auto read = [&](std::size_t at) {
    return reach(p.at + at, sizeof out, [&] { std::memcpy(out, p.at + at, sizeof out); });
  };
  const auto write = [&](std::size_t at) {
    return reach(p.at + at, sizeof out, [&] { std::memcpy(p.at + at, out, sizeof out); });
  };
  EXPECT_TRUE(read(kPage - 50));
  EXPECT_TRUE(write(kPage - 50));
  p.rights(1, PROT_READ);
  EXPECT_TRUE(read(kPage - 50));
  EXPECT_FALSE(write(kPage - 50));
  p.unmap(2);
  for (int i = 0; i < 100; ++i) {  // again and again: nothing stays blocked
    EXPECT_FALSE(read(2 * kPage));
    EXPECT_FALSE(write(3 * kPage - 1));
    EXPECT_TRUE(write(3 * kPage));
  }
}

TEST(ProgramMemory, BeyondTheEndOfItsFileEndsNoProcess) {
  guard_program_memory();
  const int fd = memfd_create("shrinks", 0);
  ASSERT_EQ(ftruncate(fd, 2 * kPage), 0);
  Pages p(2, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
  ASSERT_EQ(ftruncate(fd, kPage), 0);
  std::uint8_t byte = 0;
  EXPECT_TRUE(reach(p.at, 1, [&] { byte = *static_cast<volatile std::uint8_t*>(p.at); }));
  EXPECT_FALSE(reach(p.at + kPage, 1, [&] { byte = *static_cast<volatile std::uint8_t*>(p.at + kPage); }));
  close(fd);
}

// The program's own faults reach its own handler, whichever handler was installed first.
sigjmp_buf out_of_handler;
int handled = 0;
void programs_handler(int) {
  ++handled;
  siglongjmp(out_of_handler, 1);
}
struct sigaction chained;
void chaining_handler(int signal, siginfo_t* info, void* context) {
  ++handled;
  chained.sa_sigaction(signal, info, context);
}

TEST(ProgramMemory, LeavesOtherFaultsToTheProgram) {
  struct sigaction mine {};
  mine.sa_handler = programs_handler;
  struct sigaction old {};
  ASSERT_EQ(sigaction(SIGSEGV, &mine, &old), 0);
  guard_program_memory();
  Pages gone(1);
  gone.unmap(0);
  handled = 0;
  volatile std::uint8_t* const at = gone.at;
  const auto fault = [](volatile std::uint8_t* where) {
    if (sigsetjmp(out_of_handler, 1) == 0) *where = 1;
  };
  for (int i = 0; i < 3; ++i) {
    fault(at);
    EXPECT_EQ(handled, i + 1);
  }
  // Inside of reach(), too, if it is not what was to be reached.
  const int elsewhere = 0;
  static_cast<void>(reach(&elsewhere, 4, [&] { fault(at); }));
  EXPECT_EQ(handled, 4);
  EXPECT_FALSE(reach(gone.at, 1, [&] { *at = 1; }));
  EXPECT_EQ(handled, 4);
  sigaction(SIGSEGV, &old, nullptr);
}

// A program that puts its handler before ours and calls the one before in turn, and then registers memory.
TEST(ProgramMemory, CallsNoHandlerInACircle) {
  EXPECT_EXIT(
      {
        handled = 0;
        signal(SIGSEGV, SIG_DFL);
        guard_program_memory();
        struct sigaction mine {};
        mine.sa_sigaction = chaining_handler;
        mine.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &mine, &chained);
        guard_program_memory();
        Pages gone(1);
        gone.unmap(0);
        volatile std::uint8_t* const at = gone.at;
        if (reach(gone.at, 1, [&] { *at = 1; })) _exit(1);
        if (handled != 0) _exit(2);
        *at = 1;
        _exit(3);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST(ProgramMemory, EndsTheProcessAsItWouldWithoutUs) {
  EXPECT_EXIT(
      {
        signal(SIGSEGV, SIG_DFL);
        guard_program_memory();
        raise(SIGSEGV);
        _exit(0);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace weft::live
