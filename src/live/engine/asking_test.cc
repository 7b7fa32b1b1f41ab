// Queue pairs without a connection manager ask what their peer speaks, between real sockets.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/wire/mad.h"
#include "live/engine/two_ends.h"

namespace weft::live {
namespace {

Options of(std::optional<wire::Mode> mode) {
  Options o;
  o.mode = mode;
  return o;
}

wire::Mode mode_of(const End& e) { return e.context->query_qp(e.qp)->mode; }

// What the two ends are configured to, and what the first one's requests then are.
struct AskCase {
  std::optional<wire::Mode> asker, asked;
  wire::Mode mode;
};

TEST(Asking, FindsTheModeThatThePeerSpeaks) {
  using enum wire::Mode;
  constexpr std::nullopt_t kAuto = std::nullopt;
  std::uint8_t n = 10;
  for (const AskCase& c :
       {AskCase{kAuto, kAuto, kIrn}, AskCase{kAuto, kRoce, kRoce}, AskCase{kAuto, kIrn, kIrn},
        AskCase{kAuto, kSrnic, kSrnic}, AskCase{kRoce, kAuto, kRoce}, AskCase{kSrnic, kAuto, kSrnic}}) {
    End a(n++, of(c.asker));
    End b(n++, of(c.asked));
    a.connect(b);
    b.connect(a);
    EXPECT_EQ(mode_of(a), c.mode) << int{n};
    a.fill(0, 50'000, 1);
    a.post(WrOpcode::kWrite, 0, 0, 50'000, b, 0);
    const std::vector<Completion> done = a.wait(1);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, WcStatus::kSuccess);
    EXPECT_EQ(std::memcmp(a.memory.data(), b.memory.data(), 50'000), 0);
  }
}

// A host that speaks RoCE alone: a socket that counts what comes and never answers.
struct Foreign {
  explicit Foreign(std::uint8_t n) : address(host(n)), fd(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(4791);
    std::memcpy(&a.sin_addr, &address.bytes[12], 4);
    CHECK(fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0);
  }
  ~Foreign() { close(fd); }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
  int datagrams() const {
    std::uint8_t bytes[2048];
    int count = 0;
    while (recv(fd, bytes, sizeof bytes, 0) > 0) ++count;
    return count;
  }
  wire::Address address;
  int fd;
};

TEST(Asking, CostsAForeignHostThreePacketsAndNoMore) {
  const Foreign foreign(30);
  End a(31);
  QpAttr attr;
  attr.dest_qpn = {0x4711};
  const auto begin = SteadyClock::now();
  a.to_rts(attr, foreign.address);
  EXPECT_GE(SteadyClock::now() - begin, std::chrono::milliseconds(21));
  EXPECT_EQ(mode_of(a), wire::Mode::kRoce);
  EXPECT_EQ(foreign.datagrams(), 3);
  attr.state = QpState::kReset;
  ASSERT_TRUE(a.context->modify_qp(a.qp, attr, kAttrState, {}).has_value());
  a.to_rts(attr, foreign.address);
  EXPECT_EQ(foreign.datagrams(), 0);
}

TEST(Asking, IsForNobodyWhoseModeIsConfigured) {
  const Foreign foreign(32);
  End a(33, of(wire::Mode::kIrn));
  QpAttr attr;
  attr.dest_qpn = {0x4711};
  a.to_rts(attr, foreign.address);
  EXPECT_EQ(foreign.datagrams(), 0);
}

}  // namespace
}  // namespace weft::live
