// Children of this process.
#include "process/child.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <array>

namespace weft::process {
namespace {

int ended(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(Children, RunWhatTheyAreGiven) {
  const int well = ended(spawn([] { _exit(7); }));
  EXPECT_TRUE(WIFEXITED(well));
  EXPECT_EQ(WEXITSTATUS(well), 7);
  const int nowhere = ended(spawn([] { execl("/nowhere", "nowhere", nullptr); }));
  EXPECT_TRUE(WIFEXITED(nowhere));
  EXPECT_EQ(WEXITSTATUS(nowhere), 127);
}

// A child starts one of its own, which holds a pipe open for as long as it lives, and is killed.
TEST(Children, DieWithTheirParent) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t parent = spawn([&] {
    const pid_t child = spawn([&] {
      alarm(60);  // where the rule is broken it still ends
      (void)!write(ends[1], "x", 1);
      for (;;) pause();
    });
    close(ends[1]);
    if (child > 0) {
      for (;;) pause();
    }
  });
  close(ends[1]);
  char lives = 0;
  ASSERT_EQ(read(ends[0], &lives, 1), 1);
  kill(parent, SIGKILL);
  ended(parent);
  pollfd look{ends[0], POLLIN, 0};
  ASSERT_EQ(poll(&look, 1, 20'000), 1) << "the child of a dead parent lives on";
  EXPECT_EQ(read(ends[0], &lives, 1), 0);
  close(ends[0]);
}

}  // namespace
}  // namespace weft::process
