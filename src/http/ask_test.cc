#include "http/ask.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace weft::http {
namespace {

// Takes one question, says that an answer of any length comes, and sends `piece` now and then until nobody
// listens.
class Dripping {
 public:
  Dripping(std::string piece, int every_ms) : listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    EXPECT_EQ(bind(listening_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(listen(listening_, 1), 0);
    EXPECT_EQ(getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &length), 0);
    base = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    thread_ = std::thread([this, piece = std::move(piece), every_ms] {
      const int s = accept(listening_, nullptr, nullptr);
      std::string next = "HTTP/1.1 200 OK\r\n\r\n";
      while (send(s, next.data(), next.size(), MSG_NOSIGNAL) > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(every_ms));
        next = piece;
      }
      close(s);
    });
  }
  ~Dripping() {
    thread_.join();
    close(listening_);
  }
  Dripping(const Dripping&) = delete;
  Dripping& operator=(const Dripping&) = delete;
  std::string base;

 private:
  int listening_;
  std::thread thread_;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Each byte comes in time; the whole does not.
TEST(AnAnswer, ThatDripsIsGivenUp) {
  const Dripping other("x", 100);
  const auto begin = std::chrono::steady_clock::now();
  Asker asker;
  const Answer answer = asker.ask({other.base, "/", "", 1, 1'000'000});
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.why, "it takes longer than 1 s");
  EXPECT_LT(seconds_since(begin), 5);
}

TEST(AnAnswer, ThatIsTooLongIsGivenUpWhenItIs) {
  const Dripping other(std::string(100'000, 'x'), 1);
  Asker asker;
  const Answer answer = asker.ask({other.base, "/", "{}", 30, 1'000'000});
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.why, "its answer is longer than 1000000 bytes");
}

TEST(AnAnswer, IsNotWaitedForAfterTheEnd) {
  const Dripping other("x", 100);
  Asker asker;
  std::thread ending([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    asker.end();
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(asker.ask({other.base, "/", "", 60, 1'000'000}).status, 0);
  EXPECT_LT(seconds_since(begin), 10);
  ending.join();
}

}  // namespace
}  // namespace weft::http
