// A verbs program that notices every lost, repeated, torn or reordered message: SENDs, each with its number
// in every word, over one reliable connection. Linked to the system's libibverbs like any other program.
//
//   weft-counted-stream serve                        waits on TCP port 18600
//   weft-counted-stream send ADDRESS SECONDS         sends for so long, then asks for a count over the
//   connection
//
// Both print one line. The sender: how many messages completed, and what ended it:
//
//   sender: completed 1234 confirmed 1234 status 0
//   receiver: received 1234 wrong 0
//
// `confirmed`: what the receiver answered, on the same connection, to the last message; -1: nothing. The
// receiver ends with 1 if any message was not the next one, whole. The sender ends with 1 if a request
// failed.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/interop/reliable_pair.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint16_t kPort = 18600;
constexpr std::size_t kWords = 512;  // of 8 bytes: 4 KiB
constexpr std::uint32_t kBytes = kWords * 8;
constexpr std::uint32_t kDepth = 128;
constexpr std::uint32_t kReceives = 1024;
constexpr std::uint64_t kLast = 1ULL << 63U;
constexpr auto kPatience = std::chrono::seconds(25);

using weft::interop::End;
using weft::interop::stop;

struct Connection {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  std::vector<std::uint64_t> memory;
  int tcp = -1;

  std::uint64_t* slot(std::uint32_t i) { return memory.data() + std::size_t{i} * kWords; }

  void open(std::uint32_t slots, int socket) {
    tcp = socket;
    context = weft::interop::open_first_device();
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 4096, nullptr, nullptr, 0);
    memory.resize(std::size_t{slots} * kWords);
    mr = ibv_reg_mr(pd, memory.data(), memory.size() * 8, IBV_ACCESS_LOCAL_WRITE);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = {kDepth + 8, kReceives, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    qp = ibv_create_qp(pd, &init);
    if (cq == nullptr || mr == nullptr || qp == nullptr) stop("ibv_create_qp");

    End mine{qp->qp_num, 0xFF'F000, {}};  // numbers wrap
    if (ibv_query_gid(context, 1, 0, &mine.gid) != 0) stop("ibv_query_gid");
    End theirs{};
    if (write(tcp, &mine, sizeof mine) != sizeof mine ||
        recv(tcp, &theirs, sizeof theirs, MSG_WAITALL) != sizeof theirs)
      stop("exchange");
    weft::interop::connect(qp, mine, theirs);
  }
  void receive_into(std::uint32_t i) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(slot(i)), kBytes, mr->lkey};
    ibv_recv_wr wr{};
    wr.wr_id = i;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_recv(qp, &wr, &bad) != 0) stop("ibv_post_recv");
  }
  void send(std::uint32_t i, std::uint64_t number) {
    for (std::size_t w = 0; w < kWords; ++w) slot(i)[w] = number + w;
    slot(i)[0] = number;
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(slot(i)), kBytes, mr->lkey};
    ibv_send_wr wr{};
    wr.wr_id = i;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(qp, &wr, &bad) != 0) stop("ibv_post_send");
  }
  // Both have said so; then neither's last acknowledgement is missed.
  void part() {
    const char word = 'e';
    char theirs = 0;
    static_cast<void>(!write(tcp, &word, 1));
    timeval most{5, 0};
    setsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    static_cast<void>(!read(tcp, &theirs, 1));
  }
};

bool whole(const std::uint64_t* words, std::uint64_t number) {
  for (std::size_t w = 0; w < kWords; ++w) {
    if (words[w] != number + w) return false;
  }
  return true;
}

int serve() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(kPort);
  if (bind(listener, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 || listen(listener, 1) != 0)
    stop("bind");
  const int tcp = accept(listener, nullptr, nullptr);
  if (tcp < 0) stop("accept");
  Connection c;
  c.open(kReceives + 1, tcp);
  for (std::uint32_t i = 0; i < kReceives; ++i) c.receive_into(i);
  const char ready = 'r';
  static_cast<void>(!write(tcp, &ready, 1));

  std::uint64_t received = 0;
  std::uint64_t wrong = 0;
  bool over = false;
  auto heard = Clock::now();
  auto until = Clock::time_point::max();
  while (!over) {
    ibv_wc wc[32];
    const int n = ibv_poll_cq(c.cq, 32, wc);
    const auto now = Clock::now();
    for (int i = 0; i < n && !over; ++i) {
      if (wc[i].status != IBV_WC_SUCCESS) {
        over = true;
      } else if ((wc[i].opcode & IBV_WC_RECV) != 0) {
        const std::uint64_t* words = c.slot(static_cast<std::uint32_t>(wc[i].wr_id));
        heard = now;
        if ((words[0] & kLast) != 0) {
          c.send(kReceives, received);
          c.part();
          over = true;
          continue;
        }
        if (wc[i].byte_len != kBytes || !whole(words, received)) ++wrong;
        ++received;
        c.receive_into(static_cast<std::uint32_t>(wc[i].wr_id));
      }
    }
    if (n > 0) continue;
    // The sender failed and said so: what is still on its way comes within moments.
    pollfd p{tcp, POLLIN, 0};
    if (until == Clock::time_point::max() && poll(&p, 1, 0) > 0) until = now + std::chrono::seconds(4);
    if (now > until || now - heard > kPatience) over = true;
    usleep(200);
  }
  std::printf("receiver: received %llu wrong %llu\n", static_cast<unsigned long long>(received),
              static_cast<unsigned long long>(wrong));
  return wrong == 0 ? 0 : 1;
}

int transmit(const char* address, double how_long) {
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(kPort);
  if (inet_pton(AF_INET, address, &there.sin_addr) != 1) stop("address");
  int tcp = -1;
  for (int i = 0; i < 100; ++i) {
    tcp = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(tcp, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0) break;
    close(tcp);
    tcp = -1;
    usleep(100'000);
  }
  if (tcp < 0) stop("connect");
  Connection c;
  c.open(kDepth + 1, tcp);
  c.receive_into(kDepth);
  char ready = 0;
  if (recv(tcp, &ready, 1, MSG_WAITALL) != 1) stop("ready");

  std::vector<std::uint32_t> free;
  for (std::uint32_t i = 0; i < kDepth; ++i) free.push_back(i);
  const auto begin = Clock::now();
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  std::int64_t confirmed = -1;
  int status = 0;
  bool asked = false;
  auto moved = begin;
  while (status == 0 && confirmed < 0) {
    const auto now = Clock::now();
    const bool on = std::chrono::duration<double>(now - begin).count() < how_long;
    while (on && !free.empty()) {
      c.send(free.back(), posted++);
      free.pop_back();
    }
    if (!on && !asked && completed == posted) {
      c.send(free.back(), kLast);
      asked = true;
    }
    ibv_wc wc[32];
    const int n = ibv_poll_cq(c.cq, 32, wc);
    for (int i = 0; i < n; ++i) {
      moved = now;
      if (wc[i].status != IBV_WC_SUCCESS) {
        if (status == 0) status = wc[i].status;
      } else if ((wc[i].opcode & IBV_WC_RECV) != 0) {
        confirmed = static_cast<std::int64_t>(c.slot(kDepth)[0]);
      } else if (!asked) {
        ++completed;
        free.push_back(static_cast<std::uint32_t>(wc[i].wr_id));
      }
    }
    if (n > 0) continue;
    if (now - moved > kPatience) status = -1;
    usleep(100);
  }
  c.part();
  std::printf("sender: completed %llu confirmed %lld status %d%s%s\n",
              static_cast<unsigned long long>(completed), static_cast<long long>(confirmed), status,
              status > 0 ? " " : "", status > 0 ? ibv_wc_status_str(static_cast<ibv_wc_status>(status)) : "");
  return status == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "serve") return serve();
  if (argc == 4 && std::string(argv[1]) == "send") return transmit(argv[2], std::atof(argv[3]));
  std::fprintf(stderr, "weft-counted-stream serve | send ADDRESS SECONDS\n");
  return 2;
}
