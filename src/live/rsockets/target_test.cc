// A target that is taken while it is being written: whole, or not yet.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include "live/rsockets/wire.h"

namespace weft::live::rsockets {
namespace {

// The place of a target across two pages. Whoever touches its second half for the first time finds it written
// by then, as if the NIC had done so just before: whatever was read of it earlier is from before the write.
class Straddling {
 public:
  Straddling()
      : memory_(static_cast<std::uint8_t*>(
            mmap(nullptr, 2 * kHalf, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    struct sigaction to {};
    to.sa_flags = SA_SIGINFO;
    to.sa_sigaction = write;
    sigaction(SIGSEGV, &to, &before_);
    mprotect(memory_ + kHalf, kHalf, PROT_NONE);
  }
  ~Straddling() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(memory_, 2 * kHalf);
  }
  Straddling(const Straddling&) = delete;
  Straddling& operator=(const Straddling&) = delete;
  std::uint8_t* place() const { return memory_ + kHalf - sizeof(std::uint64_t); }

 private:
  static void write(int, siginfo_t* at, void*) {
    auto* const second = static_cast<std::uint8_t*>(at->si_addr);
    mprotect(second, kHalf, PROT_READ | PROT_WRITE);
    store(second - sizeof(std::uint64_t), 0, Target{0x7000, 5, 4096});
  }

  static constexpr std::size_t kHalf = 65'536;  // whole pages everywhere
  std::uint8_t* memory_;
  struct sigaction before_ {};
};

// A credit is heard while the target of the next one arrives: its address of before would be taken with its
// length of now.
TEST(TargetPlace, GivesNoHalfOfATarget) {
  const Straddling memory;
  const Target t = take_target(memory.place());
  EXPECT_EQ(t.length, 4096U);
  EXPECT_EQ(t.key, 5U);
  EXPECT_EQ(t.address, 0x7000U);
  EXPECT_EQ(take_target(memory.place()).length, 0U);
}

TEST(TargetPlace, IsEmptyUntilItIsWritten) {
  alignas(8) std::uint8_t place[sizeof(Target)] = {};
  EXPECT_EQ(take_target(place).length, 0U);
  store(place, 0, Target{1, 2, 3});
  EXPECT_EQ(take_target(place).address, 1U);
  EXPECT_EQ(take_target(place).length, 0U);
}

}  // namespace
}  // namespace weft::live::rsockets
