// An rsocket and a peer of another make: the peer knows <rdma/rdma_cma.h> and the protocol's bytes, and
// nothing of this folder. An honest one is understood; one that lies loses its connection, and nobody else
// does.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>
#include <utility>

#include "live/engine/sleepers.h"
#include "live/rsockets/streams.h"

namespace weft::live::rsockets {
namespace {

using rdmacm::Listening;

// The end that asks, by hand: one ring of 8 KB in two halves, two targets, one entry for a map.
struct Foreigner {
  Foreigner() : id(events.create()) {}
  ~Foreigner() {
    rdma_destroy_qp(id);
    for (ibv_mr* mr : {ring_mr, shared_mr}) {
      if (mr != nullptr) ibv_dereg_mr(mr);
    }
    rdma_destroy_id(id);
  }
  Foreigner(const Foreigner&) = delete;
  Foreigner& operator=(const Foreigner&) = delete;

  // The 40 bytes as the protocol has them.
  std::array<std::uint8_t, 40> offer() const {
    std::array<std::uint8_t, 40> o{1, 2, 0, 16, 0, 0, 0, 1};
    big(&o[8], reinterpret_cast<std::uintptr_t>(shared.data()), 8);
    big(&o[16], shared_mr->rkey, 4);
    big(&o[20], 2, 4);
    big(&o[24], reinterpret_cast<std::uintptr_t>(ring.data()), 8);
    big(&o[32], ring_mr->rkey, 4);
    big(&o[36], 4096, 4);
    return o;
  }
  static void big(std::uint8_t* to, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * (bytes - 1 - i)));
  }
  static std::uint64_t big(const std::uint8_t* from, int bytes) {
    std::uint64_t v = 0;
    for (int i = 0; i < bytes; ++i) v = v << 8U | from[i];
    return v;
  }

  void prepare(std::uint16_t port, int receives = 64) {
    sockaddr_in at = socket_address(port);
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, generic(at), 1000), 0);
    events.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(rdma_resolve_route(id, 1000), 0);
    events.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    ibv_qp_init_attr init{};
    init.cap = {64, 64, 1, 1, 64};
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    ASSERT_EQ(rdma_create_qp(id, nullptr, &init), 0);
    constexpr int kPeers = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    ring_mr = ibv_reg_mr(id->pd, ring.data(), ring.size(), kPeers);
    shared_mr = ibv_reg_mr(id->pd, shared.data(), shared.size(), kPeers);
    post_receives(receives);
  }
  void post_receives(int count) const {
    for (int i = 0; i < count; ++i) {
      ibv_recv_wr r{};
      ibv_recv_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_recv(id->qp, &r, &bad), 0);
    }
  }
  void ask(const void* data, std::size_t length) const {
    rdma_conn_param p{};
    p.private_data = data;
    p.private_data_len = static_cast<std::uint8_t>(length);
    p.retry_count = p.rnr_retry_count = 7;
    ASSERT_EQ(rdma_connect(id, &p), 0);
  }
  // What the other end offered is in `theirs`.
  void established() {
    rdma_cm_event* const e = events.next();
    ASSERT_NE(e, nullptr);
    ASSERT_EQ(e->event, RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_GE(e->param.conn.private_data_len, theirs.size());
    std::memcpy(theirs.data(), e->param.conn.private_data, theirs.size());
    rdma_ack_cm_event(e);
  }

  void write(std::uint32_t immediate, const std::string& bytes = "", std::uint64_t past = 0,
             ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE_WITH_IMM) const {
    ibv_sge part{reinterpret_cast<std::uintptr_t>(bytes.data()), static_cast<std::uint32_t>(bytes.size()), 0};
    ibv_send_wr w{};
    w.opcode = opcode;
    w.imm_data = htonl(immediate);
    w.sg_list = &part;
    w.num_sge = bytes.empty() ? 0 : 1;
    w.send_flags = IBV_SEND_INLINE;
    w.wr.rdma.remote_addr = big(&theirs[24], 8) + past;
    w.wr.rdma.rkey = static_cast<std::uint32_t>(big(&theirs[32], 4));
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(id->qp, &w, &bad), 0);
  }
  // The next completion.
  static ibv_wc next(ibv_cq* of, ibv_comp_channel* channel) {
    ibv_wc wc{};
    for (;;) {
      ibv_req_notify_cq(of, 0);
      if (ibv_poll_cq(of, 1, &wc) == 1) return wc;
      pollfd p{channel->fd, POLLIN, 0};
      if (poll(&p, 1, kLong) != 1) std::abort();
      ibv_cq* queue = nullptr;
      void* context = nullptr;
      if (ibv_get_cq_event(channel, &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
    }
  }
  // The immediate data of the next message.
  std::uint32_t hear() const { return ntohl(next(id->recv_cq, id->recv_cq_channel).imm_data); }
  // One more message has arrived at the other end's NIC.
  void sent() const { next(id->send_cq, id->send_cq_channel); }

  Listening events;
  rdma_cm_id* id;
  std::vector<std::uint8_t> ring = std::vector<std::uint8_t>(8192);
  std::vector<std::uint8_t> shared = std::vector<std::uint8_t>(2 * 16 + 24);
  ibv_mr* ring_mr = nullptr;
  ibv_mr* shared_mr = nullptr;
  std::array<std::uint8_t, 40> theirs{};
};

constexpr std::uint32_t kCredit = 4U << 29U;
constexpr std::uint32_t kMap = 6U << 29U;
constexpr std::uint32_t kControl = 7U << 29U;

struct Met {
  explicit Met(std::uint16_t port, int receives = 64) : server(listener(port)) {
    foreigner.prepare(port, receives);
    const auto offer = foreigner.offer();
    foreigner.ask(offer.data(), offer.size());
    fd = raccept(server, nullptr, nullptr);
    foreigner.established();
  }
  ~Met() {
    if (fd >= 0) rclose(fd);
    rclose(server);
  }
  Met(const Met&) = delete;
  Met& operator=(const Met&) = delete;
  int server;
  int fd = -1;
  Foreigner foreigner;
};

TEST(Foreigner, ThatIsHonestIsUnderstood) {
  Met m(7401);
  Foreigner& f = m.foreigner;
  EXPECT_EQ(f.theirs[0], 1);
  EXPECT_EQ(f.theirs[1], 2);
  EXPECT_EQ(Foreigner::big(&f.theirs[2], 2), 384U);
  EXPECT_EQ(Foreigner::big(&f.theirs[20], 4), 2U);
  EXPECT_EQ(Foreigner::big(&f.theirs[36], 4), 65536U);
  f.write(5, "hello");
  EXPECT_EQ(taken(m.fd), "hello");
  // The second half of its ring is granted at once: credits as before and one more, and a target behind the
  // first.
  EXPECT_EQ(f.hear(), kCredit | 384U);
  std::uint64_t address = 0;
  std::memcpy(&address, &f.shared[16], 8);
  EXPECT_EQ(address, Foreigner::big(&f.theirs[24], 8) + 65536);
  EXPECT_EQ(rsend(m.fd, "good morning", 12, 0), 12);
  EXPECT_EQ(f.hear(), 12U);
  EXPECT_EQ(std::memcmp(f.ring.data(), "good morning", 12), 0);
  f.write(3, "abc", 5);
  f.write(kControl | 1);  // it is alive
  f.write(kControl | 2);  // it sends nothing more
  EXPECT_EQ(taken(m.fd, 3, MSG_WAITALL), "abc");
  char c = 0;
  EXPECT_EQ(rrecv(m.fd, &c, 1, 0), 0);
  EXPECT_EQ(rclose(m.fd), 0);
  EXPECT_EQ(f.hear(), kControl | 0);
}

// It has no receives, so what the rsocket sends waits before its door; and it says meanwhile that it is done
// itself. The rsocket is closed only when the peer has taken everything.
TEST(Foreigner, ThatIsDoneStillGetsWhatIsOnItsWay) {
  Met m(7407, 0);
  EXPECT_EQ(poll_one(m.fd, POLLOUT), POLLOUT);
  EXPECT_EQ(rsend(m.fd, "last", 4, 0), 4);
  std::atomic<int> thread{0};
  std::atomic<bool> closed{false};
  std::thread closing([&] {
    thread = gettid();
    EXPECT_EQ(rclose(std::exchange(m.fd, -1)), 0);
    closed = true;
  });
  EXPECT_TRUE(stays([&] { return thread != 0 && asleep(thread); }));
  m.foreigner.write(kControl | 2);
  m.foreigner.sent();
  EXPECT_TRUE(stays([&] { return closed || asleep(thread); }));
  m.foreigner.post_receives(8);
  EXPECT_EQ(m.foreigner.hear(), kCredit | 384U);
  EXPECT_EQ(m.foreigner.hear(), 4U);
  EXPECT_EQ(m.foreigner.hear(), kControl | 0);
  closing.join();
}

// Whoever reads gets what the peer sent and its end, though the connection fails after that.
TEST(Foreigner, ThatIsDoneAndGoneIsReadToItsEnd) {
  Met m(7410, 0);
  const linger none{1, 0};
  ASSERT_EQ(rsetsockopt(m.fd, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
  m.foreigner.write(3, "abc");
  m.foreigner.write(kControl | 2);
  EXPECT_EQ(poll_one(m.fd, POLLIN), POLLIN);
  for (int i = 0; i < 2; ++i) m.foreigner.sent();
  EXPECT_EQ(rshutdown(m.fd, SHUT_WR), 0);  // which the peer has no receive for
  EXPECT_EQ(rdma_disconnect(m.foreigner.id), 0);
  EXPECT_EQ(poll_one(m.fd, 0), POLLERR);
  EXPECT_EQ(taken(m.fd), "abc");
  char c = 0;
  EXPECT_EQ(rrecv(m.fd, &c, 1, 0), 0);
  EXPECT_EQ(pending_error(m.fd), ECONNRESET);
}

// It asks and takes no answer up: a connection that is never made is not waited for without end.
TEST(Foreigner, ThatTakesNoAnswerUpIsNotWaitedFor) {
  const int server = listener(7408);
  Foreigner f;
  f.prepare(7408);
  const auto offer = f.offer();
  f.ask(offer.data(), offer.size());
  const int fd = raccept(server, nullptr, nullptr);
  ASSERT_GE(fd, 0);
  const linger none{1, 0};
  ASSERT_EQ(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
  EXPECT_EQ(rshutdown(fd, SHUT_RDWR), -1);
  EXPECT_EQ(errno, ETIMEDOUT);
  EXPECT_EQ(rclose(fd), 0);
  EXPECT_EQ(rclose(server), 0);
}

// A signal does not begin the time of SO_LINGER anew.
TEST(Foreigner, ThatTakesNothingIsWaitedForNoLongerBecauseOfSignals) {
  struct sigaction old {};
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &nothing, &old), 0);
  Met m(7409, 0);
  EXPECT_EQ(poll_one(m.fd, POLLOUT), POLLOUT);
  EXPECT_EQ(rsend(m.fd, "x", 1, 0), 1);
  const linger one{1, 1};
  ASSERT_EQ(rsetsockopt(m.fd, SOL_SOCKET, SO_LINGER, &one, sizeof one), 0);
  std::atomic<bool> closed{false};
  std::thread closing([&] {
    EXPECT_EQ(rclose(std::exchange(m.fd, -1)), 0);
    closed = true;
  });
  for (int i = 0; i < kLong / 10 && !closed; ++i) {
    pthread_kill(closing.native_handle(), SIGUSR1);
    poll(nullptr, 0, 10);
  }
  EXPECT_TRUE(closed);
  closing.join();
  sigaction(SIGUSR1, &old, nullptr);
}

// Its own ring is written to where it says, and no further than it says.
TEST(Foreigner, GetsNoMoreThanItHasGranted) {
  Met m(7402);
  const std::vector<char> bytes(10'000, 'z');
  EXPECT_EQ(rfcntl(m.fd, F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(poll_one(m.fd, POLLOUT), POLLOUT);
  EXPECT_EQ(rsend(m.fd, bytes.data(), bytes.size(), 0), 4096);
  EXPECT_EQ(rsend(m.fd, bytes.data(), bytes.size(), 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(m.foreigner.hear(), kCredit | 384U);
  EXPECT_EQ(m.foreigner.hear(), 4096U);
  EXPECT_EQ(m.foreigner.ring[4095], 'z');
  EXPECT_EQ(m.foreigner.ring[4096], 0);
}

struct Lie {
  const char* what;
  std::uint32_t immediate;
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  std::uint64_t past = 8;
  const char* bytes = "x";
};
class Liars : public testing::TestWithParam<Lie> {};

// The program behind the rsocket reads what came before the lie, is told, and goes on with the next peer.
TEST_P(Liars, LoseTheirConnectionAndNobodyElseDoes) {
  Met m(7403);
  Foreigner& f = m.foreigner;
  f.write(6, "before");
  f.write(GetParam().immediate, GetParam().bytes, GetParam().past, GetParam().opcode);
  EXPECT_EQ(taken(m.fd, 6, MSG_WAITALL), "before");
  char c = 0;
  EXPECT_EQ(rrecv(m.fd, &c, 1, 0), -1);
  EXPECT_TRUE(errno == EPROTO || errno == ECONNRESET) << std::strerror(errno);
  EXPECT_EQ(rsend(m.fd, &c, 1, 0), -1);
  rdma_cm_event* const e = f.events.next();
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->event, RDMA_CM_EVENT_DISCONNECTED);
  rdma_ack_cm_event(e);

  const int next = begin_connect(7403);
  const int fd = raccept(m.server, nullptr, nullptr);
  EXPECT_EQ(poll_one(next, POLLOUT), POLLOUT);
  EXPECT_EQ(rsend(next, "next", 4, 0), 4);
  EXPECT_EQ(taken(fd), "next");
  rclose(next);
  rclose(fd);
}

INSTANTIATE_TEST_SUITE_P(
    All, Liars,
    testing::Values(Lie{"no bytes", 0}, Lie{"more bytes than it may write", 131072},
                    Lie{"all bits", 0x1FFF'FFFF}, Lie{"more credit than it has", kCredit | 17},
                    Lie{"credit gone back", kCredit | 0xFFFF}, Lie{"a map that is not there", kMap | 0},
                    Lie{"a reserved kind", 1U << 29U}, Lie{"another one", 3U << 29U},
                    Lie{"and another", 5U << 29U}, Lie{"a message of iWARP", 1, IBV_WR_SEND},
                    Lie{"a SEND", 1, IBV_WR_SEND_WITH_IMM, 8, ""},
                    Lie{"bytes past its ring", 1, IBV_WR_RDMA_WRITE_WITH_IMM, std::uint64_t{1} << 20U}),
    [](const auto& of) {
      std::string name = of.param.what;
      std::erase_if(name, [](char c) { return c == ' '; });
      return name;
    });

// It has 16 credits, and uses one more.
TEST(Foreigner, ThatUsesMoreCreditThanItHasLosesItsConnection) {
  const int server = listener(7404);
  const int few = 16;
  ASSERT_EQ(rsetsockopt(server, SOL_RDMA, RDMA_RQSIZE, &few, sizeof few), 0);
  Foreigner f;
  f.prepare(7404);
  const auto offer = f.offer();
  f.ask(offer.data(), offer.size());
  const int fd = raccept(server, nullptr, nullptr);
  f.established();
  for (std::uint64_t i = 0; i < 17; ++i) f.write(1, "x", i);
  for (int i = 0; i < 17; ++i) f.sent();  // all before the first is read, which gives credit back
  EXPECT_EQ(taken(fd, 16, MSG_WAITALL).size(), 16U);
  char c = 0;
  EXPECT_EQ(rrecv(fd, &c, 1, 0), -1);
  EXPECT_EQ(errno, EPROTO);
  rclose(fd);
  rclose(server);
}

// Requests with private data that no rsocket sends are refused, and the listener goes on.
TEST(Foreigner, ThatOffersNonsenseIsRefused) {
  const int server = listener(7405);
  ASSERT_EQ(rfcntl(server, F_SETFL, O_NONBLOCK), 0);
  const std::size_t places[][2] = {{0, 2}, {3, 0}, {23, 0}, {23, 1}};
  for (int i = 0; i < 5; ++i) {
    Foreigner f;
    f.prepare(7405);
    auto offer = f.offer();
    if (i < 4) offer[places[i][0]] = static_cast<std::uint8_t>(places[i][1]);
    f.ask(offer.data(), i < 4 ? offer.size() : 0);
    EXPECT_EQ(poll_one(server, POLLIN), POLLIN);
    EXPECT_EQ(raccept(server, nullptr, nullptr), -1);
    EXPECT_EQ(errno, EAGAIN);
    f.events.expect(RDMA_CM_EVENT_REJECTED);
  }
  const int next = begin_connect(7405);
  EXPECT_EQ(poll_one(server, POLLIN), POLLIN);
  const int fd = raccept(server, nullptr, nullptr);
  EXPECT_GE(fd, 0);
  for (const int each : {next, fd, server}) EXPECT_EQ(rclose(each), 0);
}

// The other way round: who answers offers nonsense.
TEST(Foreigner, ThatAnswersNonsenseIsLeft) {
  Foreigner f;  // for its queue pair's parts; it listens with an identifier of its own
  rdma_cm_id* const listening = f.events.create();
  sockaddr_in at = socket_address(7406);
  ASSERT_EQ(rdma_bind_addr(listening, generic(at)), 0);
  ASSERT_EQ(rdma_listen(listening, 1), 0);
  const int fd = begin_connect(7406);
  rdma_cm_id* const id = f.events.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  ASSERT_EQ(rdmacm::make_queue_pair(id), 0);
  const std::array<std::uint8_t, 40> nonsense{9, 9, 9};
  rdma_conn_param p{};
  p.private_data = nonsense.data();
  p.private_data_len = nonsense.size();
  ASSERT_EQ(rdma_accept(id, &p), 0);
  EXPECT_EQ(poll_one(fd, POLLOUT) & POLLERR, POLLERR);
  EXPECT_EQ(pending_error(fd), EPROTO);
  EXPECT_EQ(rclose(fd), 0);
  rdma_destroy_qp(id);
  rdma_destroy_id(id);
  rdma_destroy_id(listening);
}

}  // namespace
}  // namespace weft::live::rsockets
