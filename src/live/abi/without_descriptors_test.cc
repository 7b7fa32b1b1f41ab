// A process out of descriptors (RLIMIT_NOFILE), and one that may lock no memory (RLIMIT_MEMLOCK): each call
// that needs a descriptor fails with an errno, whichever of its descriptors is missing, leaves none behind,
// and succeeds when there are enough. Registered memory is not locked, so that limit is for nobody here.
#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "live/abi/program.h"

namespace weft::live::abi {
namespace {

// The sanitizer of undefined behaviour, which is there with that of addresses, opens a pipe to look at an
// object, and calls one wrong that it cannot look at.
#if defined(__has_feature)
constexpr bool kChecksNeedDescriptors = __has_feature(address_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
constexpr bool kChecksNeedDescriptors = true;
#else
constexpr bool kChecksNeedDescriptors = false;
#endif

struct NoDescriptor : testing::Test {
  void SetUp() override {
    if (kChecksNeedDescriptors) GTEST_SKIP() << "the sanitizers' own checks need descriptors";
  }
};

std::set<int> open_descriptors() {
  std::set<int> open;
  DIR* const all = opendir("/proc/self/fd");
  while (const dirent* const one = readdir(all)) {
    if (const int fd = std::atoi(one->d_name); one->d_name[0] != '.' && fd != dirfd(all)) open.insert(fd);
  }
  closedir(all);
  return open;
}

// A limit of this process, for as long as it is there.
class Limit {
 public:
  Limit(__rlimit_resource which, rlim_t most) : which_(which) {
    EXPECT_EQ(getrlimit(which_, &usual_), 0);
    const rlimit less{most, usual_.rlim_max};
    EXPECT_EQ(setrlimit(which_, &less), 0);
  }
  ~Limit() { setrlimit(which_, &usual_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  __rlimit_resource which_;
  rlimit usual_{};
};

// The limit under which `free` more can be opened.
rlim_t limit_for(int free) {
  const std::set<int> open = open_descriptors();
  int limit = 0;
  for (; free > 0 || open.count(limit) != 0; ++limit) {
    if (open.count(limit) == 0) --free;
  }
  return static_cast<rlim_t>(limit);
}

// Calls it with no descriptor left, then with one, and so on until it succeeds. `said`: whether each failure
// is told in one sentence, too.
template <class Call>
auto exhaust(const Call& call, bool said = false) {
  constexpr int kMany = 64;
  for (int n = 0; n < kMany; ++n) {
    const std::set<int> before = open_descriptors();
    const rlim_t most = limit_for(n);
    testing::internal::CaptureStderr();
    decltype(call()) answer{};
    int error = 0;
    {
      const Limit few(RLIMIT_NOFILE, most);
      errno = 0;
      answer = call();
      error = errno;
    }
    const std::string sentence = testing::internal::GetCapturedStderr();
    if (answer) return answer;
    EXPECT_EQ(error, EMFILE) << "with " << n << " descriptors: " << std::strerror(error);
    EXPECT_EQ(open_descriptors(), before) << "with " << n << " descriptors";
    if (said) {
      EXPECT_THAT(sentence, testing::MatchesRegex(
                                "weft: [^\n]*Too many open files[^\n]*; raise the limit with ulimit -n\n"));
    }
  }
  ADD_FAILURE() << "it wants more than " << kMany;
  return decltype(call()){};
}

constexpr const char* kIsOpen = "an earlier test of this process has opened the device for good";

TEST_F(NoDescriptor, MakesOpeningFailWithASentenceAndLeavesNothingBehind) {
  if (device_stays_open()) GTEST_SKIP() << kIsOpen;
  for (const char* const wire : {"auto", "udp", "shm"}) {
    SCOPED_TRACE(wire);
    setenv("WEFT_WIRE", wire, 1);
    choose_address();
    ibv_device** const list = ibv_get_device_list(nullptr);
    ASSERT_NE(list, nullptr);
    const std::set<int> before = open_descriptors();
    for (int i = 0; i < 2; ++i) {
      ibv_context* const context = exhaust([&] { return ibv_open_device(list[0]); }, true);
      ASSERT_NE(context, nullptr);
      EXPECT_GE(context->cmd_fd, 0);
      EXPECT_EQ(ibv_close_device(context), 0);
      EXPECT_EQ(open_descriptors(), before) << "a device that was opened and closed";
    }
    ibv_free_device_list(list);
  }
  unsetenv("WEFT_WIRE");
}

TEST_F(NoDescriptor, MakesOpeningSeveralShardsFailLikewise) {
  if (device_stays_open()) GTEST_SKIP() << kIsOpen;
  setenv("WEFT_SHARDS", "3", 1);
  choose_address();
  ibv_device** const list = ibv_get_device_list(nullptr);
  ASSERT_NE(list, nullptr);
  const std::set<int> before = open_descriptors();
  ibv_context* const context = exhaust([&] { return ibv_open_device(list[0]); }, true);
  ASSERT_NE(context, nullptr);
  EXPECT_EQ(ibv_close_device(context), 0);
  EXPECT_EQ(open_descriptors(), before);
  ibv_free_device_list(list);
  unsetenv("WEFT_SHARDS");
}

TEST_F(NoDescriptor, MakesEveryLaterCallThatNeedsOneFail) {
  Program p;
  ibv_context* const second = exhaust([&] { return ibv_open_device(p.context->device); }, true);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(ibv_close_device(second), 0);
  ibv_comp_channel* const channel = exhaust([&] { return ibv_create_comp_channel(p.context); });
  ASSERT_NE(channel, nullptr);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  // The socket of a group.
  ibv_qp_init_attr datagrams = p.plain(IBV_QPT_UD);
  ibv_qp* const member = ibv_create_qp(p.pd, &datagrams);
  ASSERT_NE(member, nullptr);
  ibv_gid group{};
  group.raw[10] = group.raw[11] = 0xFF;
  group.raw[12] = 239;
  ASSERT_NE(exhaust([&] { return ibv_attach_mcast(member, &group, 0) == 0 ? member : nullptr; }), nullptr);
  EXPECT_EQ(ibv_detach_mcast(member, &group, 0), 0);
}

// What needs none goes on: the queue pair sends and receives while nothing can be opened.
TEST_F(NoDescriptor, DoesNotConcernADeviceThatIsOpen) {
  Program p;
  const Limit none(RLIMIT_NOFILE, 0);
  ibv_qp_attr a{};
  const auto modify = [&](ibv_qp_state state, int mask) {
    a.qp_state = state;
    return ibv_modify_qp(p.qp, &a, IBV_QP_STATE | mask);
  };
  a.port_num = 1;
  ASSERT_EQ(modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
  a.ah_attr = p.address();
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = p.qp->qp_num;  // itself
  ASSERT_EQ(modify(IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
  a.timeout = 14;
  a.retry_cnt = a.rnr_retry = 7;
  ASSERT_EQ(modify(IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                    IBV_QP_MAX_QP_RD_ATOMIC),
            0);
  std::memset(p.memory.data(), 7, 64);
  ibv_sge into{reinterpret_cast<std::uint64_t>(&p.memory[4096]), 64, p.mr->lkey};
  ibv_sge from{reinterpret_cast<std::uint64_t>(p.memory.data()), 64, p.mr->lkey};
  ibv_recv_wr receive{1, nullptr, &into, 1};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(p.qp, &receive, &bad_receive), 0);
  ibv_send_wr send{};
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(ibv_post_send(p.qp, &send, &bad_send), 0);
  int done = 0;
  for (long i = 0; done < 2 && i < 50'000'000; ++i) {
    ibv_wc wc{};
    if (ibv_poll_cq(p.cq, 1, &wc) != 1) continue;
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    ++done;
  }
  EXPECT_EQ(done, 2);
  EXPECT_EQ(p.memory[4096 + 63], 7);
}

// A program above librdmacm and rsockets hears the same errno.
TEST_F(NoDescriptor, MakesChannelsAndSocketsOfTheConnectionLibraryFail) {
  device_stays_open() = true;
  choose_address();
  int devices = 0;
  ibv_context** const list = exhaust([&] { return rdma_get_devices(&devices); }, true);
  ASSERT_NE(list, nullptr);
  rdma_free_devices(list);
  rdma_event_channel* const channel = exhaust([] { return rdma_create_event_channel(); });
  ASSERT_NE(channel, nullptr);
  rdma_cm_id* id = nullptr;
  const auto made = [&](int answer) { return answer == 0 ? id : nullptr; };
  ASSERT_NE(exhaust([&] { return made(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP)); }), nullptr);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  // Its listener's name is a descriptor.
  sockaddr_in at{};
  at.sin_family = AF_INET;
  ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
  ASSERT_EQ(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&at)), 0);
  ASSERT_NE(exhaust([&] { return made(rdma_listen(id, 1)); }), nullptr);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  rdma_destroy_event_channel(channel);
  struct Socket {
    int fd = -1;
    explicit operator bool() const { return fd >= 0; }
  };
  const Socket s = exhaust([] { return Socket{rsocket(AF_INET, SOCK_STREAM, 0)}; });
  EXPECT_EQ(rclose(s.fd), 0);
}

// Hardware's drivers pin what is registered, and refuse with ENOMEM beyond the limit. Here nothing is pinned.
TEST(NoLockedMemory, DoesNotKeepMemoryFromBeingRegistered) {
  const Limit none(RLIMIT_MEMLOCK, 0);
  Program p;  // opened under the limit, too
  constexpr std::size_t kLarge = std::size_t{256} << 20U;
  void* const memory =
      mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto locked = [] {
    char line[128];
    long kilobytes = -1;
    std::FILE* const f = std::fopen("/proc/self/status", "re");
    while (std::fgets(line, sizeof line, f) != nullptr) std::sscanf(line, "VmLck: %ld", &kilobytes);
    std::fclose(f);
    return kilobytes;
  };
  EXPECT_EQ(locked(), 0);
  ibv_mr* const mr = ibv_reg_mr(p.pd, memory, kLarge, int{IBV_ACCESS_LOCAL_WRITE});
  ASSERT_NE(mr, nullptr) << std::strerror(errno);
  EXPECT_EQ(locked(), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  munmap(memory, kLarge);
}

}  // namespace
}  // namespace weft::live::abi
