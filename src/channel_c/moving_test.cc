// Channels that change between the soft NIC and the kernel's TCP while they are in use. Both ends are
// contexts of this process, so both have one address; the server's port is its own.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "channel_c/weft/channel.h"

namespace weft::channel {
namespace {

constexpr std::uint16_t kPort = 4791;
constexpr std::uint16_t kService = 7;

class TwoCarriers : public ::testing::Test {
 protected:
  TwoCarriers() {
    const auto pid = static_cast<unsigned>(getpid());
    address = "127." + std::to_string(1 + (pid >> 8U) % 254U) + "." + std::to_string(pid & 0xFFU) + ".91";
    setenv("WEFT_ADDR", address.c_str(), 1);
    alarm(60);
  }
  ~TwoCarriers() override {
    alarm(0);
    weft_free(client);
    weft_free(server);
  }
  weft_context* open(const std::vector<const char*>& more) {
    std::vector<const char*> all{"reconnect_ms=20000", "small_msg_size=512", "depth=8"};
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(nullptr);
    char why[256] = "";
    weft_context* c = nullptr;
    EXPECT_EQ(weft_open(&c, nullptr, all.data(), why, sizeof why), 0) << why;
    return c;
  }
  void meet() {
    server = open({"tcp_port=4791"});
    client = open({});
    ASSERT_NE(server, nullptr);
    ASSERT_NE(client, nullptr);
    ASSERT_EQ(weft_listen(server, kService), 0);
    ASSERT_EQ(weft_connect(client, address.c_str(), kService, 0, &at_client), 0);
    for (weft_notice n; at_server == nullptr || !opened;) {
      if (weft_poll(server, &n, 1) == 1) {
        if (n.kind == WEFT_ASKED) weft_accept(n.channel, 0);
        if (n.kind == WEFT_OPENED) at_server = n.channel;
      }
      if (weft_poll(client, &n, 1) == 1) opened = n.kind == WEFT_OPENED;
    }
  }
  static std::uint32_t carrier(const weft_channel* c) {
    weft_channel_counts counts;
    weft_counts(c, &counts, sizeof counts);
    return counts.carrier;
  }
  // Both programs look, and nothing is to be told.
  void turn() const {
    weft_notice n;
    ASSERT_EQ(weft_poll(server, &n, 1), 0);
    ASSERT_EQ(weft_poll(client, &n, 1), 0);
  }
  void move(int to) {
    ASSERT_EQ(weft_move(at_client, to), 0);
    for (int error = EAGAIN; error == EAGAIN;) {  // until it is open there; alarm() ends it
      turn();
      error = weft_move(at_client, to);
    }
    ASSERT_EQ(carrier(at_client), static_cast<std::uint32_t>(to));
  }

  std::string address;
  weft_context* server = nullptr;
  weft_context* client = nullptr;
  weft_channel* at_client = nullptr;
  weft_channel* at_server = nullptr;
  bool opened = false;
};

// Messages of all lengths, large ones among them, both ways; each end sends the channel to the other carrier
// now and then. Each message arrives once, in order and whole, and is told delivered.
TEST_F(TwoCarriers, LoseAndRepeatNothing) {
  meet();
  constexpr std::uint32_t kMessages = 1500;
  struct End {
    weft_context* context;
    weft_channel* channel;
    std::uint32_t sent = 0;
    std::uint32_t came = 0;
    std::uint64_t delivered = 0;
  } ends[2] = {{client, at_client}, {server, at_server}};
  const auto length = [](std::uint32_t i) { return i % 50 == 49 ? 300'000U : 4U + i % 900U; };
  const auto byte = [](std::uint32_t i, std::uint32_t at) {
    return static_cast<std::uint8_t>(i * 3 + at * 7 + at / 251);
  };
  const auto over = [&](const End& e) { return e.came == kMessages && e.delivered == kMessages; };
  for (std::uint32_t turns = 0; (!over(ends[0]) || !over(ends[1])) && !HasFailure(); ++turns) {
    for (End& e : ends) {
      if (e.sent < kMessages) {
        weft_message* const m = weft_allocate(e.context, length(e.sent));
        ASSERT_NE(m, nullptr);
        auto* const data = static_cast<std::uint8_t*>(weft_data(m));
        for (std::uint32_t k = 0; k < length(e.sent); ++k) data[k] = byte(e.sent, k);
        if (weft_send(e.channel, m, e.sent, WEFT_TELL) == 0) {
          ++e.sent;
        } else {
          weft_release(e.context, m);
        }
      }
      weft_notice notices[16];
      const int n = weft_poll(e.context, notices, 16);
      for (int i = 0; i < n; ++i) {
        ASSERT_NE(notices[i].kind, WEFT_CLOSED) << notices[i].why;
        if (notices[i].kind == WEFT_OUTCOME) {
          ASSERT_EQ(notices[i].fate, WEFT_DELIVERED);
          ASSERT_EQ(notices[i].user, e.delivered++);
          continue;
        }
        ASSERT_EQ(notices[i].kind, WEFT_MESSAGE);
        ASSERT_EQ(weft_length(notices[i].message), length(e.came));
        const auto* const data = static_cast<const std::uint8_t*>(weft_data(notices[i].message));
        bool right = true;
        for (std::uint32_t k = 0; k < length(e.came); ++k) right = right && data[k] == byte(e.came, k);
        ASSERT_TRUE(right) << e.came;
        ++e.came;
        weft_release(e.context, notices[i].message);
      }
    }
    // Refused while it reconnects.
    if (turns % 400 == 100) (void)weft_move(at_client, carrier(at_client) == WEFT_TCP ? WEFT_RDMA : WEFT_TCP);
    if (turns % 400 == 300) (void)weft_move(at_server, carrier(at_server) == WEFT_TCP ? WEFT_RDMA : WEFT_TCP);
  }
  weft_channel_counts counts;
  weft_counts(at_client, &counts, sizeof counts);
  EXPECT_GE(counts.moves, 3U);
}

// The descriptor that a program sleeps on rings for TCP, too.
TEST_F(TwoCarriers, WakeAProgramThatSleeps) {
  meet();
  move(WEFT_TCP);
  for (int i = 0; i < 20; ++i) {
    weft_channel_counts counts{};
    do {  // what was sent is taken, so that the next message leaves at once
      turn();
      weft_counts(at_server, &counts, sizeof counts);
    } while (counts.in_flight != 0);
    std::uint64_t sleep_us = 0;
    ASSERT_EQ(weft_arm(client, &sleep_us), 0);
    weft_message* const m = weft_allocate(server, 100);
    ASSERT_NE(m, nullptr);
    ASSERT_EQ(weft_send(at_server, m, 0, 0), 0);
    weft_notice n;
    int told = 0;
    while (told == 0) {  // the server's message leaves in weft_send(); acknowledgements ring as well
      pollfd rings{weft_event_fd(client), POLLIN, 0};
      ASSERT_EQ(poll(&rings, 1, 30'000), 1);
      told = weft_arm(client, &sleep_us) != 0 ? weft_poll(client, &n, 1) : 0;
    }
    ASSERT_EQ(n.kind, WEFT_MESSAGE);
    weft_release(client, n.message);
  }
}

// A page of text says what carries a channel.
TEST_F(TwoCarriers, AreSaidInTheReport) {
  meet();
  char page[4000];
  weft_report(client, page, sizeof page);
  EXPECT_NE(std::strstr(page, "open       RDMA"), nullptr) << page;
  move(WEFT_TCP);
  weft_report(client, page, sizeof page);
  EXPECT_NE(std::strstr(page, "open       TCP"), nullptr) << page;
  move(WEFT_RDMA);
}

TEST_F(TwoCarriers, NeedAPortAndASession) {
  server = open({});
  client = open({});
  ASSERT_EQ(weft_listen(server, kService), 0);
  ASSERT_EQ(weft_connect(client, address.c_str(), kService, 0, &at_client), 0);
  weft_notice n;
  while (!opened) {
    if (weft_poll(server, &n, 1) == 1 && n.kind == WEFT_ASKED) weft_accept(n.channel, 0);
    if (weft_poll(client, &n, 1) == 1) opened = n.kind == WEFT_OPENED;
  }
  EXPECT_EQ(weft_move(at_client, WEFT_TCP), EOPNOTSUPP);
  EXPECT_EQ(weft_move(at_client, 2), EINVAL);
}

// Who has the address and no session is told so, and hung up on; the channel does not notice.
TEST_F(TwoCarriers, TurnStrangersAway) {
  meet();
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(kPort);
  ASSERT_EQ(inet_pton(AF_INET, address.c_str(), &at.sin_addr), 1);
  for (int i = 0; i < 100; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    const std::string said(i % 2 == 0 ? 52 : 300, 'x');
    ASSERT_EQ(send(fd, said.data(), said.size(), MSG_NOSIGNAL), static_cast<ssize_t>(said.size()));
    char answer[64];
    ssize_t n = -1;
    for (errno = EAGAIN; n < 0 && errno == EAGAIN;) {  // alarm() ends it
      turn();
      n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    }
    EXPECT_TRUE(n <= 0 || answer[51] == 1) << "another version, or no channel at all";
    ::close(fd);
  }
  move(WEFT_TCP);
}

}  // namespace
}  // namespace weft::channel
