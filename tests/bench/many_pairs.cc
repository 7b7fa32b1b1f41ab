// How a NIC bears many connections at once: WRITEs of 64 KiB in turns over COUNT queue pairs, as many of
// them under way for one count as for another.
//
//   weft-many-pairs serve                              waits on TCP port 18610 for one client
//   weft-many-pairs write ADDRESS COUNT UNDER_WAY SECONDS
//
// Both ends use one region of 8 MiB whatever the count is, so caches of data tell nothing. The client prints
// one line of JSON: gbps; setup_us, what creating and connecting a pair took; bytes_a_pair, by how much this
// process grew for each.
#include <infiniband/verbs.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/interop/reliable_pair.h"

namespace {

using Clock = std::chrono::steady_clock;
using weft::interop::End;
using weft::interop::place;
using weft::interop::stop;

constexpr std::uint16_t kPort = 18610;
constexpr std::uint32_t kBytes = 64 * 1024;
constexpr std::uint32_t kPlaces = 128;

// What one end says of itself before the list of its queue pairs.
struct Region {
  std::uint64_t address;
  std::uint32_t key;
  std::uint32_t pairs;
  std::uint32_t depth;
};

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

void say(int tcp, const void* bytes, std::size_t n) {
  if (send(tcp, bytes, n, MSG_NOSIGNAL) != static_cast<ssize_t>(n)) stop("send");
}

void hear(int tcp, void* bytes, std::size_t n) {
  if (recv(tcp, bytes, n, MSG_WAITALL) != static_cast<ssize_t>(n)) stop("recv");
}

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

struct Pairs {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  std::vector<ibv_qp*> qps;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(std::size_t{kPlaces} * kBytes, 1);
  Region theirs{};

  void open() {
    context = weft::interop::open_first_device();
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 32 * 1024, nullptr, nullptr, 0);
    mr = ibv_reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (pd == nullptr || cq == nullptr || mr == nullptr) stop("ibv_create_cq");
  }

  // Creates as many queue pairs as the other end does and connects them in order.
  void connect(int tcp, std::uint32_t count, std::uint32_t depth) {
    ibv_gid gid{};
    if (ibv_query_gid(context, 1, 0, &gid) != 0) stop("ibv_query_gid");
    std::vector<End> mine(count), other(count);
    qps.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      ibv_qp_init_attr init{};
      init.send_cq = init.recv_cq = cq;
      init.cap = {depth, 1, 1, 1, 0};
      init.qp_type = IBV_QPT_RC;
      qps[i] = ibv_create_qp(pd, &init);
      if (qps[i] == nullptr) stop("ibv_create_qp");
      mine[i] = {qps[i]->qp_num, i, gid};
    }
    const Region region{reinterpret_cast<std::uintptr_t>(memory.data()), mr->rkey, count, depth};
    say(tcp, &region, sizeof region);
    hear(tcp, &theirs, sizeof theirs);
    say(tcp, mine.data(), count * sizeof(End));
    hear(tcp, other.data(), count * sizeof(End));
    for (std::uint32_t i = 0; i < count; ++i)
      weft::interop::connect(qps[i], mine[i], other[i], IBV_ACCESS_REMOTE_WRITE);
  }

  void write(std::uint32_t pair, std::uint64_t number) {
    const std::uint64_t at = number % kPlaces * kBytes;
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory.data()) + at, kBytes, mr->lkey};
    ibv_send_wr wr{};
    wr.wr_id = pair;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = theirs.address + at;
    wr.wr.rdma.rkey = theirs.key;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(qps[pair], &wr, &bad) != 0) stop("ibv_post_send");
  }
};

int serve() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const sockaddr_in at = place("0.0.0.0", kPort);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 || listen(listener, 1) != 0)
    stop("bind");
  const int tcp = accept(listener, nullptr, nullptr);
  if (tcp < 0) stop("accept");
  std::uint32_t asked[2];
  hear(tcp, asked, sizeof asked);
  Pairs p;
  p.open();
  p.connect(tcp, asked[0], 1);
  const char ready = 'r';
  say(tcp, &ready, 1);
  char gone = 0;
  static_cast<void>(!recv(tcp, &gone, 1, 0));
  return 0;
}

int write(const char* address, std::uint32_t count, std::uint32_t under_way, double seconds) {
  const int tcp = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in at = place(address, kPort);
  for (int tries = 0; connect(tcp, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0; ++tries) {
    if (tries == 50) stop("connect");
    usleep(100'000);
  }
  const std::uint32_t depth = (under_way + count - 1) / count;
  const std::uint32_t asked[2] = {count, depth};
  say(tcp, asked, sizeof asked);
  Pairs p;
  p.open();
  const std::uint64_t before = resident_bytes();
  const auto began = Clock::now();
  p.connect(tcp, count, depth);
  const double setup = seconds_since(began);
  const std::uint64_t grown = resident_bytes() - before;
  char ready = 0;
  hear(tcp, &ready, 1);

  std::uint64_t posted = 0, done = 0, done_before = 0;
  for (; posted < under_way; ++posted) p.write(static_cast<std::uint32_t>(posted % count), posted);
  // A first round of every pair is not measured.
  Clock::time_point from{};
  bool measuring = false;
  ibv_wc wc[64];
  while (!measuring || seconds_since(from) < seconds) {
    const int n = ibv_poll_cq(p.cq, 64, wc);
    for (int i = 0; i < n; ++i) {
      if (wc[i].status != IBV_WC_SUCCESS) {
        std::fprintf(stderr, "weft-many-pairs: a WRITE failed: %s\n", ibv_wc_status_str(wc[i].status));
        return 1;
      }
      p.write(static_cast<std::uint32_t>(wc[i].wr_id), posted++);
    }
    done += static_cast<std::uint64_t>(n > 0 ? n : 0);
    if (!measuring && done >= under_way) {
      measuring = true;
      from = Clock::now();
      done_before = done;
    }
  }
  const double gbps = static_cast<double>(done - done_before) * kBytes * 8 / seconds_since(from) / 1e9;
  std::printf("{\"gbps\": %.3f, \"setup_us\": %.2f, \"bytes_a_pair\": %.0f}\n", gbps, setup * 1e6 / count,
              static_cast<double>(grown) / count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "serve") == 0) return serve();
  if (argc == 6 && std::strcmp(argv[1], "write") == 0) {
    const long count = std::atol(argv[3]), under_way = std::atol(argv[4]);
    if (count >= 1 && under_way >= count && under_way <= 32 * 1024)
      return write(argv[2], static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(under_way),
                   std::atof(argv[5]));
  }
  std::fprintf(stderr,
               "usage: weft-many-pairs serve | write ADDRESS COUNT UNDER_WAY SECONDS, with 1 <= COUNT <= "
               "UNDER_WAY <= 32768\n");
  return 2;
}
