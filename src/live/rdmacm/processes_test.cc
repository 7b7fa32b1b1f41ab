// Both ends of a connection in processes of one address, which may end at any time. Each opens a device of
// its own, so this process must not have one.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/rdmacm/party.h"

namespace weft::live::rdmacm {
namespace {

constexpr std::uint16_t kPort = 7471;

// Ends at once, as a process that is killed does, or one forked by Python that is done.
[[noreturn]] void end_connection(const Listening& l, rdma_cm_id* id, bool leaves) {
  l.expect(RDMA_CM_EVENT_ESTABLISHED);
  if (leaves) _exit(rdma_disconnect(id) == 0 ? 0 : 2);
  rdma_cm_event* const e = l.next(3000);
  _exit(e != nullptr && e->event == RDMA_CM_EVENT_DISCONNECTED ? 0 : 3);
}

[[noreturn]] void serve(int ready, bool leaves) {
  const Listening l;
  sockaddr_in at = socket_address(kPort);
  rdma_cm_id* const listener = l.create();
  if (rdma_bind_addr(listener, generic(at)) != 0 || rdma_listen(listener, 1) != 0) _exit(4);
  if (write(ready, "r", 1) != 1) _exit(4);
  rdma_cm_id* const id = l.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  if (make_queue_pair(id) != 0 || rdma_accept(id, nullptr) != 0) _exit(4);
  end_connection(l, id, leaves);
}

[[noreturn]] void ask(int ready, bool leaves) {
  char word = 0;
  if (read(ready, &word, 1) != 1) _exit(4);
  const Listening l;
  sockaddr_in at = socket_address(kPort);
  rdma_cm_id* const id = l.create();
  if (rdma_resolve_addr(id, nullptr, generic(at), 1000) != 0) _exit(4);
  l.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(id, 1000) != 0) _exit(4);
  l.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  if (make_queue_pair(id) != 0 || rdma_connect(id, nullptr) != 0) _exit(4);
  end_connection(l, id, leaves);
}

template <class Run>
pid_t in_a_process(const Run& run) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    run();
  }
  return child;
}

int exit_code(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Its last message may lie in its own socket, to which the kernel has given it: the socket goes with it.
TEST(Processes, HearOfADisconnectionThoughThePeerEndsAtOnce) {
  socket_address(0);  // which both have from here
  for (int round = 0; round < 10; ++round) {
    const bool server_leaves = round % 2 == 0;
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t server = in_a_process([&] { serve(ready[1], server_leaves); });
    const pid_t client = in_a_process([&] { ask(ready[0], !server_leaves); });
    EXPECT_EQ(exit_code(server), 0) << "round " << round;
    EXPECT_EQ(exit_code(client), 0) << "round " << round;
    close(ready[0]);
    close(ready[1]);
  }
}

}  // namespace
}  // namespace weft::live::rdmacm
