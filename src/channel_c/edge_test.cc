// The edge of the C interface: what it does without memory, without room, and for programs that are newer or
// older than the library. Both ends are contexts of this process, over our own libibverbs.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "channel_c/weft/channel.h"
#include "live/abi/scarce_memory.h"

namespace weft::channel {
namespace {

std::string own_address() {
  const auto pid = static_cast<unsigned>(getpid());
  const std::string text =
      "127." + std::to_string(1 + (pid >> 8U) % 254U) + "." + std::to_string(pid & 0xFFU) + ".91";
  setenv("WEFT_ADDR", text.c_str(), 1);
  return text;
}

class Edge : public ::testing::Test {
 protected:
  Edge() : address(own_address()) {
    char why[256] = "";
    for (weft_context** c : {&server, &client})
      if (weft_open(c, nullptr, nullptr, why, sizeof why) != 0) ADD_FAILURE() << why;
    alarm(60);
  }
  ~Edge() override {
    alarm(0);
    weft_free(client);
    weft_free(server);
  }
  // The call with its first allocation failing, then the second, and so on, until none fails any more;
  // `after` looks at each that failed, with memory. Answers how many did.
  template <class Call, class After>
  int starve(const Call& call, const After& after) {
    for (int n = 0;; ++n) {
      bool thrown = false;
      left = n;
      failed = false;
      try {
        call();
      } catch (...) {
        thrown = true;
      }
      left = -1;
      EXPECT_FALSE(thrown) << "allocation " << n;
      if (!failed) return n;
      after();
    }
  }
  template <class Call>
  int starve(const Call& call) {
    return starve(call, [] {});
  }
  const std::string address;
  weft_context* server = nullptr;
  weft_context* client = nullptr;
};

TEST_F(Edge, LetsNoExceptionOutOfOpen) {
  weft_context* third = nullptr;
  int answer = -1;
  char why[64] = "";
  const auto open = [&] { answer = weft_open(&third, nullptr, nullptr, why, sizeof why); };
  const int failures = starve(open, [&] {
    EXPECT_EQ(answer == 0, third != nullptr);  // it can do without some things
    EXPECT_EQ(answer == 0, why[0] == '\0') << why;
    weft_free(third);
    third = nullptr;
    why[0] = '\0';
  });
  EXPECT_GT(failures, 0);
  EXPECT_EQ(answer, 0);
  EXPECT_STREQ(why, "");
  weft_free(third);
}

TEST_F(Edge, LetsNoExceptionOutOfConnect) {
  weft_channel* channel = nullptr;
  int answer = -1;
  const auto connect = [&] { answer = weft_connect(client, address.c_str(), 7, 0, &channel); };
  const int failures = starve(connect, [&] {
    EXPECT_EQ(answer, ENOMEM);
    EXPECT_EQ(channel, nullptr);
  });
  EXPECT_GT(failures, 0);
  EXPECT_EQ(answer, 0);
}

// Each call that can fail begins without memory, and the message arrives all the same. What a turn has no
// memory for may be lost, so of turns it is said only that they do not throw.
TEST_F(Edge, LetsNoExceptionOutOfWhatMovesAMessage) {
  int listening = -1;
  const auto listen = [&] { listening = weft_listen(server, 7); };
  EXPECT_GT(starve(listen, [&] { EXPECT_EQ(listening, ENOMEM); }), 0);
  ASSERT_EQ(listening, 0);
  weft_channel* channel = nullptr;
  ASSERT_EQ(weft_connect(client, address.c_str(), 7, 0, &channel), 0);
  int failures = 0;
  bool arrived = false;
  const auto turn = [&](weft_context* c) {
    weft_notice n{};
    if (weft_poll(c, &n, 1) == 0) return;
    if (n.kind == WEFT_ASKED) weft_accept(n.channel, 0);  // without memory it would end the channel
    if (n.kind == WEFT_OPENED && n.channel == channel) {
      weft_message* m = nullptr;
      failures += starve([&] {
        if (m == nullptr) m = weft_allocate(client, 8);
      });
      ASSERT_NE(m, nullptr);
      std::memcpy(weft_data(m), "weft-1!", 8);
      int sent = -1;
      failures += starve([&] {
        if (sent != 0) sent = weft_send(channel, m, 0, 0);
      });
      ASSERT_EQ(sent, 0);
    }
    ASSERT_NE(n.kind, WEFT_CLOSED) << n.why;
    if (n.kind != WEFT_MESSAGE) return;
    EXPECT_STREQ(static_cast<const char*>(weft_data(n.message)), "weft-1!");
    arrived = true;
    weft_release(server, n.message);
  };
  while (!arrived && !HasFailure()) {  // alarm() ends it
    turn(server);
    turn(client);
  }
  EXPECT_TRUE(arrived);
  EXPECT_GT(failures, 0);
  weft_abort(channel);
  for (int i = 0; i < 100; ++i) {
    for (weft_context* c : {client, server}) {
      weft_notice n{};
      starve([&] { (void)weft_poll(c, &n, 1); });
    }
  }
}

TEST_F(Edge, OfAWaitWithoutRoomReturnsAtOnce) {
  EXPECT_EQ(weft_wait(client, nullptr, 0, -1), 0);
  weft_channel* channel = nullptr;
  ASSERT_EQ(weft_connect(client, address.c_str(), 9, 0, &channel), 0);  // nobody listens: there is soon news
  weft_notice n;
  int told = 0;
  for (int i = 0; told == 0; ++i) {  // alarm() ends it
    EXPECT_EQ(weft_wait(client, nullptr, 0, -1), 0);
    if (i % 100 == 99) told = weft_wait(client, &n, 1, 10);
  }
  ASSERT_EQ(told, 1);
  EXPECT_EQ(n.kind, WEFT_CLOSED);
}

TEST_F(Edge, ShowsANewerProgramZerosBehindWhatIsCounted) {
  weft_channel* channel = nullptr;
  ASSERT_EQ(weft_connect(client, address.c_str(), 7, 0, &channel), 0);
  struct {
    weft_channel_counts known;
    std::uint64_t newer[4];
  } counts{};
  std::memset(&counts, 0xAA, sizeof counts);
  weft_counts(channel, &counts.known, sizeof counts);
  EXPECT_EQ(counts.known.sent, 0U);
  for (const std::uint64_t n : counts.newer) EXPECT_EQ(n, 0U);
  std::memset(&counts, 0xAA, sizeof counts);
  weft_counts(channel, &counts.known, 16);  // an older one
  EXPECT_EQ(counts.known.sent, 0U);
  EXPECT_EQ(counts.known.received, 0xAAAA'AAAA'AAAA'AAAAU);
}

// One receive queue for all channels, over libibverbs: three channels at once, which end, and whose queue
// pairs serve again when the device has said that they took their last receive.
TEST(OverLibibverbs, ChannelsShareReceivesAndQueuePairsServeAgain) {
  alarm(60);
  const std::string address = own_address();
  char why[256] = "";
  const char* const parameters[] = {"use_srq=1", "srq_size=48", "channels=3", nullptr};
  weft_context* server = nullptr;
  weft_context* client = nullptr;
  ASSERT_EQ(weft_open(&server, nullptr, parameters, why, sizeof why), 0) << why;
  ASSERT_EQ(weft_open(&client, nullptr, parameters, why, sizeof why), 0) << why;
  EXPECT_EQ(weft_set(server, "srq_size", 64, why, sizeof why), EBUSY);
  ASSERT_EQ(weft_listen(server, 7), 0);
  constexpr int kMessages = 200;
  for (int round = 0; round < 2; ++round) {
    int sent[3] = {};
    int came = 0;
    int closed = 0;
    weft_channel* channels[3] = {};
    bool open[3] = {};
    const auto turn = [&](weft_context* c) {
      weft_notice n[8];
      const int count = weft_poll(c, n, 8);
      for (int k = 0; k < count; ++k) {
        if (n[k].kind == WEFT_ASKED) weft_accept(n[k].channel, 9);
        if (n[k].kind == WEFT_OPENED && c == client) open[n[k].user] = true;
        if (n[k].kind == WEFT_CLOSED && c == client && sent[n[k].user] == 0) {
          channels[n[k].user] =
              nullptr;  // the connection manager still knows the queue pair's last connection
        } else if (n[k].kind == WEFT_CLOSED) {
          ++closed;
        }
        if (n[k].kind != WEFT_MESSAGE) continue;
        ++came;
        weft_release(c, n[k].message);
      }
    };
    while (closed < 6) {  // alarm() ends it
      turn(server);
      turn(client);
      for (std::uint64_t i = 0; i < 3; ++i) {
        // Until the queue pair of the round before is free there is no place for it.
        if (channels[i] == nullptr) (void)weft_connect(client, address.c_str(), 7, i, &channels[i]);
        while (open[i] && sent[i] < kMessages) {
          weft_message* const m = weft_allocate(client, 100);
          ASSERT_NE(m, nullptr);
          if (weft_send(channels[i], m, 0, 0) != 0) {
            weft_release(client, m);
            break;
          }
          ++sent[i];
        }
        if (came == 3 * kMessages && open[i]) weft_close(channels[i]);
        if (came == 3 * kMessages) open[i] = false;
      }
    }
    EXPECT_EQ(came, 3 * kMessages);
  }
  char page[2048];
  weft_report(server, page, sizeof page);
  EXPECT_NE(std::string(page).find("and at most 120"), std::string::npos) << page;  // three times 40
  EXPECT_NE(std::string(page).find("without memory for 0"), std::string::npos) << page;
  EXPECT_NE(std::string(page).find(" posted of 48, peers may fill"), std::string::npos) << page;
  weft_free(client);
  weft_free(server);
  alarm(0);
}

// Every mode of memory, over libibverbs: a request that is short, one that is fetched, and what the report
// says of huge pages on a machine that has set none aside.
TEST(OverLibibverbs, EveryMemoryModeCarriesMessages) {
  alarm(60);
  const std::string address = own_address();
  char why[256] = "";
  for (int mode = 0; mode <= 4; ++mode) {
    const std::string parameter = "memory_mode=" + std::to_string(mode);
    const char* const parameters[] = {parameter.c_str(), nullptr};
    weft_context* server = nullptr;
    weft_context* client = nullptr;
    ASSERT_EQ(weft_open(&server, nullptr, parameters, why, sizeof why), 0) << why;
    ASSERT_EQ(weft_open(&client, nullptr, parameters, why, sizeof why), 0) << why;
    ASSERT_EQ(weft_listen(server, 7), 0);
    weft_channel* channel = nullptr;
    ASSERT_EQ(weft_connect(client, address.c_str(), 7, 0, &channel), 0);
    std::uint32_t came = 0;
    bool open = false;
    while (came != 2) {  // alarm() ends it
      weft_notice n{};
      if (weft_poll(client, &n, 1) == 1 && n.kind == WEFT_OPENED && !open) {
        open = true;
        for (const std::uint32_t length : {64U, 100'000U}) {
          weft_message* const m = weft_allocate(client, length);
          ASSERT_NE(m, nullptr);
          std::memset(weft_data(m), static_cast<int>(length), length);
          ASSERT_EQ(weft_send(channel, m, 0, 0), 0);
        }
      }
      if (weft_poll(server, &n, 1) == 0) continue;
      if (n.kind == WEFT_ASKED) weft_accept(n.channel, 0);
      if (n.kind != WEFT_MESSAGE) continue;
      const std::string text(static_cast<const char*>(weft_data(n.message)), weft_length(n.message));
      EXPECT_EQ(text, std::string(came == 0 ? 64 : 100'000, static_cast<char>(came == 0 ? 64 : 100'000)));
      ++came;
      weft_release(server, n.message);
    }
    char page[4096];
    weft_report(server, page, sizeof page);
    const bool lacking = std::strstr(page, "huge pages were lacking for ") != nullptr;
    std::ifstream pool("/proc/sys/vm/nr_hugepages");
    int aside = 0;
    pool >> aside;
    EXPECT_TRUE(aside != 0 || lacking == (mode == 2)) << page;
    weft_free(client);
    weft_free(server);
  }
  weft_context* none = nullptr;
  const char* const beyond[] = {"memory_mode=5", nullptr};
  EXPECT_EQ(weft_open(&none, nullptr, beyond, why, sizeof why), EINVAL);
  EXPECT_STREQ(why, "memory_mode = 5: it must not be above 4");
  alarm(0);
}

// A program forks with messages under way. The child is refused whatever it asks, and ends; nothing of the
// parent's is lost or comes twice.
TEST(Forks, LeaveTheParentsTrafficAlone) {
  alarm(60);
  const std::string address = own_address();
  char why[256] = "";
  const char* const parameters[] = {"fork_safe=1", nullptr};
  weft_context* server = nullptr;
  weft_context* client = nullptr;
  ASSERT_EQ(weft_open(&server, nullptr, parameters, why, sizeof why), 0) << why;
  ASSERT_EQ(weft_open(&client, nullptr, parameters, why, sizeof why), 0) << why;
  EXPECT_EQ(weft_set(server, "fork_safe", 0, why, sizeof why), EBUSY);
  ASSERT_EQ(weft_listen(server, 7), 0);
  weft_channel* channel = nullptr;
  ASSERT_EQ(weft_connect(client, address.c_str(), 7, 0, &channel), 0);
  constexpr std::uint32_t kMessages = 3000;
  std::uint32_t sent = 0;
  std::uint32_t came = 0;
  bool open = false;
  pid_t children[3] = {};
  int forked = 0;
  while (came < kMessages && !::testing::Test::HasFailure()) {  // alarm() ends it
    weft_notice n{};
    if (weft_poll(client, &n, 1) == 1 && n.kind == WEFT_OPENED) open = true;
    while (open && sent < kMessages) {
      weft_message* const m = weft_allocate(client, 4);
      ASSERT_NE(m, nullptr);
      std::memcpy(weft_data(m), &sent, 4);
      if (weft_send(channel, m, 0, 0) != 0) {
        weft_release(client, m);
        break;
      }
      ++sent;
    }
    if (forked < 3 && sent > 500U * static_cast<std::uint32_t>(forked + 1)) {
      weft_message* const held = weft_allocate(client, 4);
      const pid_t child = fork();
      if (child == 0) {
        int wrong = 0;
        char said[128] = "";
        wrong |= weft_send(channel, held, 0, 0) != ECHILD ? 1 : 0;
        wrong |= weft_allocate(client, 4) != nullptr ? 2 : 0;
        wrong |= weft_poll(server, &n, 1) != 0 || weft_wait(server, &n, 1, -1) != 0 ? 4 : 0;
        wrong |= weft_set(client, "look_us", 5, said, sizeof said) != ECHILD ? 8 : 0;
        wrong |= std::strstr(said, "a child opens one of its own") == nullptr ? 16 : 0;
        wrong |= weft_move(channel, WEFT_TCP) != ECHILD ? 32 : 0;
        weft_free(client);
        weft_free(server);
        _exit(wrong);
      }
      ASSERT_GT(child, 0);
      weft_release(client, held);
      children[forked++] = child;
    }
    if (weft_poll(server, &n, 1) == 0) continue;
    if (n.kind == WEFT_ASKED) weft_accept(n.channel, 0);
    ASSERT_NE(n.kind, WEFT_CLOSED) << n.why;
    if (n.kind != WEFT_MESSAGE) continue;
    std::uint32_t number = 0;
    std::memcpy(&number, weft_data(n.message), 4);
    EXPECT_EQ(number, came);
    ++came;
    weft_release(server, n.message);
  }
  EXPECT_EQ(forked, 3);
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  weft_free(client);
  weft_free(server);
  alarm(0);
}

}  // namespace
}  // namespace weft::channel
