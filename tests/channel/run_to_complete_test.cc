// Run to complete (X-RDMA §4.2): the whole of libweft-channel, as it is linked into the library that ships,
// over ports that complete everything at once. Whatever the kernel is asked for on the way of a message, the
// library asks.
//
// What the port itself does is the device's: over hardware it writes to a mapped register, our soft NIC sends
// datagrams. Locks are looked for in the instructions: tools/check_symbols.py.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "channel_c/weft/channel.h"
#include "tests/bench/counted_new.h"
#include "tests/channel/null_port.h"
#include "tests/channel/syscall_gauge.h"
#include "verbs_port/verbs_port.h"

namespace weft {
namespace {

class NullDevice final : public channel_test::NullPortOver<IbverbsPort> {
 public:
  NullDevice() {
    if (alone == nullptr) {
      alone = this;
    } else {
      meet(*std::exchange(alone, nullptr));
    }
  }
  int event_fd() const override { return -1; }
  bool watch(int) override { return true; }

 private:
  static inline NullDevice* alone = nullptr;  // waits for the other end
};

}  // namespace

// What the library has instead of libibverbs here.
Result<std::unique_ptr<IbverbsPort>> open_ibverbs(const std::string&) {
  return std::make_unique<NullDevice>();
}
bool keep_memory_from_children() { return false; }

namespace channel {
namespace {

constexpr std::uint32_t kLong = 20'000;  // is announced and fetched

// A server and its client, turn by turn on one thread. Each round is a request with its answer, a short
// message whose delivery is told, a long one, and one of the program's own memory.
class Pair {
 public:
  Pair() : own_(4096) {
    const char* const parameters[] = {"idle_memory_ms=1000000", nullptr};
    char why[256] = "";
    for (weft_context** c : {&server_, &client_})
      if (weft_open(c, nullptr, parameters, why, sizeof why) != 0) ADD_FAILURE() << why;
    EXPECT_EQ(weft_listen(server_, 7), 0);
    EXPECT_EQ(weft_register(client_, own_.data(), own_.size(), &memory_), 0);
    EXPECT_EQ(weft_connect(client_, "127.0.0.1", 7, 0, &channel_), 0);
    while (!open_) turn();
    for (int i = 0; i < 200; ++i) round();  // the memory caches grow
  }
  ~Pair() {
    weft_free(client_);
    weft_free(server_);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  // Events of the port and TCP are looked at now, and then not for so long.
  void look_every(std::uint64_t us) {
    char why[256] = "";
    for (weft_context* c : {server_, client_}) EXPECT_EQ(weft_set(c, "look_us", us, why, sizeof why), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the next look of before is due by now
    for (int i = 0; i < 3; ++i) turn();
  }

  void round() {
    rounds_ += 1;
    if (weft_call(channel_, weft_allocate(client_, 64), 1, 1'000'000, nullptr) != 0 ||
        weft_send(channel_, weft_allocate(client_, 64), 2, WEFT_TELL) != 0 ||
        weft_send(channel_, weft_allocate(client_, kLong), 3, WEFT_TELL) != 0 ||
        weft_send(channel_, weft_wrap(client_, memory_, 100, 1000), 4, WEFT_TELL) != 0)
      std::abort();  // the round would never end
    while (ends_ != 4 * rounds_) turn();
  }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t rounds() const { return rounds_; }

 private:
  void turn() {
    weft_notice n[8];
    for (weft_context* const c : {client_, server_}) {
      const int count = weft_poll(c, n, 8);
      for (int i = 0; i < count; ++i) happened(c, n[i]);
    }
  }
  void happened(weft_context* c, const weft_notice& n) {
    switch (n.kind) {
      case WEFT_ASKED:
        return weft_accept(n.channel, 0);
      case WEFT_OPENED:
        open_ = open_ || c == client_;  // the server may be told first
        return;
      case WEFT_REQUEST:
        weft_answer(n.message, weft_allocate(c, 64), 0, 0);
        return weft_release(c, n.message);
      case WEFT_MESSAGE:
        bytes_ += weft_length(n.message);
        return weft_release(c, n.message);
      case WEFT_RESPONSE:
        weft_release(c, n.message);
        break;
      case WEFT_OUTCOME:
        if (n.fate != WEFT_DELIVERED) std::abort();
        break;
      default:
        std::abort();
    }
    ends_ += n.kind == WEFT_OUTCOME || n.kind == WEFT_RESPONSE ? 1U : 0U;
  }

  std::vector<std::uint8_t> own_;
  weft_context* server_ = nullptr;
  weft_context* client_ = nullptr;
  weft_memory* memory_ = nullptr;
  weft_channel* channel_ = nullptr;
  bool open_ = false;
  std::uint64_t rounds_ = 0;
  std::uint64_t ends_ = 0;
  std::uint64_t bytes_ = 0;
};

// The gauge sees what it is to see, and what it counts is carried out.
TEST(TheGauge, CountsASystemCallThatAProgramMakes) {
  pid_t parent = 0;
  const auto counted = channel_test::gauge([] {}, [&] { parent = getppid(); });
  if (!counted.works) GTEST_SKIP() << "this machine lets no thread be filtered";
  EXPECT_EQ(counted.all, 1U);
  EXPECT_EQ(counted.last, SYS_getppid);
  EXPECT_EQ(parent, getppid());
}

// Nobody administers, and nothing but messages is looked at: 5000 rounds of every kind of message ask the
// kernel for nothing and no allocator for memory. The statistics page is written meanwhile.
TEST(Messages, AskTheKernelForNothing) {
  setenv("WEFT_PARAMETERS", "0", 1);
  Pair pair;
  pair.look_every(1'000'000'000);
  std::size_t allocated = 0;
  const auto counted = channel_test::gauge([] {},
                                           [&] {
                                             const std::size_t before = allocations;
                                             for (int i = 0; i < 5000; ++i) pair.round();
                                             allocated = allocations - before;
                                           });
  unsetenv("WEFT_PARAMETERS");
  if (!counted.works) GTEST_SKIP() << "this machine lets no thread be filtered";
  EXPECT_EQ(counted.all, 0U) << "the last has the number " << counted.last;
  EXPECT_EQ(allocated, 0U);
  EXPECT_EQ(pair.rounds(), 5200U);
  EXPECT_EQ(pair.bytes(), 5200U * (64 + kLong + 1000));
}

// With the defaults what is not a message costs by the time and not by the message: a look at TCP every
// look_us, one at what an administrator wants ten times a second, of each of the two contexts.
TEST(Messages, CostNoMoreWhereEverythingIsLookedAt) {
  Pair pair;
  constexpr std::uint64_t kLook = 10'000;
  pair.look_every(kLook);
  std::uint64_t us = 0;
  const auto counted =
      channel_test::gauge([] {},
                          [&] {
                            const auto begin = std::chrono::steady_clock::now();
                            while (us < 300'000) {
                              for (int i = 0; i < 100; ++i) pair.round();
                              const auto gone = std::chrono::steady_clock::now() - begin;
                              us = static_cast<std::uint64_t>(gone / std::chrono::microseconds(1));
                            }
                          });
  if (!counted.works) GTEST_SKIP() << "this machine lets no thread be filtered";
  EXPECT_GT(counted.all, 2U);
  EXPECT_LE(counted.all, 2 * (us / kLook + 1) + 2 * (us / 100'000 + 1));
  EXPECT_GT(pair.rounds(), 10 * counted.all);
}

}  // namespace
}  // namespace channel
}  // namespace weft
