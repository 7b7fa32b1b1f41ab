// What a process does around its wire: it forks, it has a limit on its files, its child holds on to what was
// its own.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "live/wires/shm_test.h"

namespace weft::live {
namespace {

// A child that has not come to run yet keeps files open, and an epoll reports them under numbers that by then
// are the program's own.
TEST_F(Shm, AChildThatHoldsALinkCostsTheProgramNoDescriptor) {
  const auto a = open_at(host(1));
  const Numbers of_a = open_descriptors();
  auto b = open_at(host(2));
  send(*b, *a, 1);
  const Numbers of_both = open_descriptors();
  EXPECT_EQ(receive(*a), Numbers{1});
  const Numbers open_before = open_descriptors();
  std::array<int, 2> end{};
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(end.data()), 0);
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    // The other end is another process's.
    for (const std::uint32_t fd : of_both) {
      if (std::find(of_a.begin(), of_a.end(), fd) == of_a.end()) close(static_cast<int>(fd));
    }
    char byte = 0;
    close(end[1]);
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    _exit(read(end[0], &byte, 1) == 0 ? 0 : 1);
  }
  close(end[0]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  for (const int fd : ready) close(fd);
  b.reset();
  receive(*a);  // it notices
  // Whatever number has become free is the program's now.
  std::vector<int> files;
  for (const std::uint32_t n : open_before) {
    const int fd = static_cast<int>(n);
    if (fcntl(fd, F_GETFD) >= 0) continue;
    ASSERT_EQ(dup2(STDERR_FILENO, fd), fd);
    files.push_back(fd);
  }
  EXPECT_FALSE(files.empty());
  receive(*a, 200);
  for (const int fd : files) EXPECT_GE(fcntl(fd, F_GETFD), 0) << "the wire closed it";
  for (const int fd : files) close(fd);
  close(end[1]);
  waitpid(child, nullptr, 0);
}

// A ring is a file, and who makes a file longer than it may be gets a signal.
TEST_F(Shm, WithALimitOnFilesTrainsGoByUdp) {
  const auto b = open_at(host(2));
  const wire::Address here = host(1);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit low{300'000, 300'000};
    setrlimit(RLIMIT_FSIZE, &low);
    const auto a = open_at(here);
    _exit(send(*a, *b, 1) == SendStatus::kSent && counter(*a, "shared_sent") == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(receive(*b), Numbers{1});
}

// Rings are mapped by a forked child, too, and are none of its business.
TEST_F(Shm, AForkedChildWritesAndReadsNothing) {
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  send(*a, *b, 1);
  EXPECT_EQ(receive(*b), Numbers{1});
  send(*a, *b, 2);
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    a->abandon(nowhere);
    b->abandon(nowhere);
    send(*a, *b, 3);
    _exit(receive(*b).empty() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  send(*a, *b, 4);
  EXPECT_EQ(receive(*b), (Numbers{2, 4}));
}

}  // namespace
}  // namespace weft::live
