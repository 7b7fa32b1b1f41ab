// What the test of the shim runs: one call that the shim knows, many times, and how long they took.
//
//   weft-noise-calls CALL COUNT [fork]     prints "CALL MICROSECONDS", of all of them
//
// No call finds anything to wait for, so that what takes long is the nap. With `fork`, a child makes them.
// An errno that a call sets must be there after its nap: exit code 3 otherwise.
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

// Descriptors and locks that never make anybody wait. A receive finds nothing, and says so.
struct Stage {
  Stage() {
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) != 0) std::abort();
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, open) != 0) std::abort();
    ::shutdown(open[0], SHUT_RD);  // what is sent there is refused at once, so it never fills
    sem_init(&semaphore, 0, 1U << 20U);
  }
  int pair[2];
  int open[2];
  int epoll = epoll_create1(0);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  sem_t semaphore{};
};

constexpr int kRefused = -2;  // errno must be EAGAIN

int expect_eagain(long answer) { return answer == -1 ? kRefused : 0; }

// 0, or kRefused; -1: there is no such call.
int make(Stage& s, std::string_view call) {
  char byte = 0;
  iovec part{&byte, 1};
  mmsghdr messages{};
  messages.msg_hdr.msg_iov = &part;
  messages.msg_hdr.msg_iovlen = 1;
  pollfd fd{s.pair[0], POLLIN, 0};
  const timespec none{};
  epoll_event event{};
  if (call == "poll") return poll(&fd, 1, 0);
  if (call == "ppoll") return ppoll(&fd, 1, &none, nullptr);
  if (call == "epoll_wait") return epoll_wait(s.epoll, &event, 1, 0);
  if (call == "read") return expect_eagain(read(s.pair[0], &byte, 1));
  if (call == "recv") return expect_eagain(recv(s.pair[0], &byte, 1, 0));
  if (call == "recvfrom") return expect_eagain(recvfrom(s.pair[0], &byte, 1, 0, nullptr, nullptr));
  if (call == "recvmsg") return expect_eagain(recvmsg(s.pair[0], &messages.msg_hdr, 0));
  if (call == "recvmmsg") return expect_eagain(recvmmsg(s.pair[0], &messages, 1, 0, nullptr));
  signal(SIGPIPE, SIG_IGN);
  if (call == "write") return write(s.open[1], &byte, 1) == -1 && errno == EPIPE ? 0 : -1;
  if (call == "send") return send(s.open[1], &byte, 1, 0) == -1 && errno == EPIPE ? 0 : -1;
  if (call == "sendto") return sendto(s.open[1], &byte, 1, 0, nullptr, 0) == -1 && errno == EPIPE ? 0 : -1;
  if (call == "sendmsg") return sendmsg(s.open[1], &messages.msg_hdr, 0) == -1 && errno == EPIPE ? 0 : -1;
  if (call == "sendmmsg") return sendmmsg(s.open[1], &messages, 1, 0) == -1 && errno == EPIPE ? 0 : -1;
  if (call == "accept4") return accept4(s.pair[0], nullptr, nullptr, 0) == -1 ? 0 : -1;
  if (call == "connect") return connect(s.pair[0], nullptr, 0) == -1 ? 0 : -1;
  if (call == "close") return close(eventfd(0, 0));
  if (call == "pthread_mutex_lock" || call == "pthread_mutex_unlock") {
    pthread_mutex_lock(&s.mutex);
    return pthread_mutex_unlock(&s.mutex);
  }
  if (call == "sem_wait") return sem_wait(&s.semaphore);
  if (call == "sem_post") return sem_post(&s.semaphore);
  if (call == "sched_yield") return sched_yield();
  if (call == "futex") {
    static int word = 0;
    return expect_eagain(syscall(SYS_futex, &word, FUTEX_WAIT, 1, nullptr, nullptr, 0));
  }
  return -1;
}

int make_all(std::string_view call, int count) {
  Stage stage;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    errno = 0;
    const int answer = make(stage, call);
    if (answer == -1) return 2;
    if (answer == kRefused && errno != EAGAIN) return 3;
  }
  const auto took = std::chrono::steady_clock::now() - began;
  std::printf("%.*s %lld\n", static_cast<int>(call.size()), call.data(),
              static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  if (count > 3) {
    if (const pid_t child = fork(); child != 0) {
      int status = 0;
      waitpid(child, &status, 0);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
  }
  return make_all(arguments[1], std::atoi(arguments[2]));
}
