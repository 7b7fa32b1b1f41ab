// How a program waits that calls weft_wait(), as its report counts it: the server is a thread, both are over
// our own libibverbs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "channel_c/weft/channel.h"
#include "page/reader.h"

namespace weft::channel_test {
namespace {

class Sleepers : public ::testing::Test {
 protected:
  Sleepers() {
    alarm(60);
    const auto pid = static_cast<unsigned>(getpid());
    address_ = "127." + std::to_string(1 + (pid >> 8U) % 254U) + "." + std::to_string(pid & 0xFFU) + ".93";
    setenv("WEFT_ADDR", address_.c_str(), 1);
    char why[256] = "";
    for (weft_context** c : {&server_, &client_})
      if (weft_open(c, nullptr, kParameters, why, sizeof why) != 0) ADD_FAILURE() << why;
    EXPECT_EQ(weft_listen(server_, 7), 0);
    thread_ = std::thread([this] { serve(); });
    EXPECT_EQ(weft_connect(client_, address_.c_str(), 7, 0, &channel_), 0);
    weft_notice n{};
    EXPECT_EQ(weft_wait(client_, &n, 1, -1), 1);
    EXPECT_EQ(n.kind, WEFT_OPENED);
  }
  ~Sleepers() override {
    over_ = true;
    thread_.join();
    weft_free(client_);
    weft_free(server_);
    alarm(0);
  }
  void serve() {
    while (!over_) {
      weft_notice n{};
      if (weft_wait(server_, &n, 1, 10) == 0) continue;
      if (n.kind == WEFT_ASKED) weft_accept(n.channel, 0);
      if (n.kind != WEFT_REQUEST) continue;
      while (weft_answer(n.message, nullptr, 9, 0) == EAGAIN && !over_) {
      }
      weft_release(server_, n.message);
    }
  }
  static constexpr const char* kParameters[] = {"channels=8", nullptr};  // few: one look shows all rows
  void ask(int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(weft_call(channel_, weft_allocate(client_, 16), 0, 0, nullptr), 0);
      weft_notice n{};
      ASSERT_EQ(weft_wait(client_, &n, 1, -1), 1);
      ASSERT_EQ(n.kind, WEFT_RESPONSE);
      weft_release(client_, n.message);
    }
  }
  void quiet(int ms) {
    weft_notice n{};
    EXPECT_EQ(weft_wait(client_, &n, 1, ms), 0);
  }
  void spin(std::uint64_t us) {
    char why[256] = "";
    EXPECT_EQ(weft_set(client_, "spin_us", us, why, sizeof why), 0) << why;
  }
  struct Counted {
    unsigned long long busy = 0, sleeps = 0, woken = 0, deadlines = 0;
  };
  Counted counted() {
    char page[4096];
    weft_report(client_, page, sizeof page);
    const char* const line = std::strstr(page, "looked busily ");
    Counted c;
    if (line == nullptr || std::sscanf(line,  // NOLINT(cert-err34-c)
                                       "looked busily %llu times, slept %llu times, woken by events %llu, by "
                                       "deadlines %llu",
                                       &c.busy, &c.sleeps, &c.woken, &c.deadlines) != 4)
      ADD_FAILURE() << page;
    return c;
  }

  std::string address_;
  weft_context* server_ = nullptr;
  weft_context* client_ = nullptr;
  weft_channel* channel_ = nullptr;
  std::thread thread_;
  std::atomic<bool> over_ = false;
};

TEST_F(Sleepers, OfNoSpinNeverLookBusily) {
  spin(0);
  const Counted before = counted();
  ask(50);
  const Counted after = counted();
  EXPECT_EQ(after.busy, before.busy);
  EXPECT_GT(after.sleeps, before.sleeps);
  EXPECT_GT(after.woken, before.woken);
}

TEST_F(Sleepers, OfAnEndlessSpinNeverSleep) {
  spin(1'000'000'000);
  const Counted before = counted();
  ask(50);
  quiet(20);
  const Counted after = counted();
  EXPECT_EQ(after.sleeps, before.sleeps);
  EXPECT_GT(after.busy, before.busy);
}

// It sleeps while nothing happens, however often it is asked to wait. One request wakes it, and then it looks
// busily until 50 ms are over, and sleeps again.
TEST_F(Sleepers, LookBusilyAfterAnEventAndThenSleepAgain) {
  char why[256];
  EXPECT_EQ(weft_set(client_, "keepalive_intv_ms", 0, why, sizeof why), 0);  // a deadline less
  spin(50'000);
  quiet(400);
  const Counted idle = counted();
  for (int i = 0; i < 10; ++i) quiet(3);
  const Counted still = counted();
  EXPECT_EQ(still.busy, idle.busy);
  EXPECT_GT(still.sleeps, idle.sleeps);
  ask(1);
  quiet(10);
  const Counted busy = counted();
  EXPECT_GT(busy.busy, still.busy);
  quiet(400);
  const Counted asleep = counted();
  EXPECT_GT(asleep.sleeps, busy.sleeps);
  quiet(10);
  EXPECT_EQ(counted().busy, asleep.busy);
}

// What the client's page says its channel received.
std::uint64_t shown_as_received() {
  std::uint64_t n = 0;
  for (const page::ReadPage& p : page::read_pages().pages) {
    const page::ReadTable* const channels = p.table("channel");
    if (p.pid != static_cast<std::uint64_t>(getpid()) || channels == nullptr) continue;
    const auto asked = static_cast<std::size_t>(channels->column("asked"));
    const auto received = static_cast<std::size_t>(channels->column("received"));
    for (const auto& row : channels->rows) n += row[asked] != 0 ? row[received] : 0;
  }
  return n;
}

// The page is written once a millisecond at most, and responses come sooner: a program that is told to sleep
// for long has shown everything.
TEST_F(Sleepers, SleepForLongOnlyWhenTheirPageShowsWhatHappened) {
  char why[256];
  EXPECT_EQ(weft_set(client_, "keepalive_intv_ms", 0, why, sizeof why), 0);  // nothing else would wake it
  for (std::uint64_t i = 1; i <= 20; ++i) {
    quiet(5);
    ask(3);  // the first one finds the server asleep
    std::uint64_t sleep_us = 0;
    weft_arm(client_, &sleep_us);
    if (sleep_us > 10'000) {
      EXPECT_EQ(shown_as_received(), 3 * i);
    }
  }
}

}  // namespace
}  // namespace weft::channel_test
