// What every port promises, as two programs that talk to each other over it: a server and a client, the same
// over the simulated NIC, the pair world and libibverbs. The client goes through its steps in order; each
// says by its name what it shows. Neither knows in which world it runs.
#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/verbs/port.h"

namespace weft::port_test {

inline constexpr std::uint16_t kService = 18777;
inline constexpr std::uint16_t kNobodyListens = 18778;
inline constexpr std::uint32_t kLength = 20'000;  // several packets
inline constexpr std::uint32_t kImm = 0x01020304;

// Where the server's memory is: what travels with accept().
struct Invitation {
  std::uint64_t address;
  std::uint32_t rkey;
};

class Party : public Application {
 public:
  Party(VerbsPort& port, const ConnectTerms& terms) : port_(port), terms_(terms) {
    cq_ = *port.create_cq(64);
    memory_ = *port.allocate(2 * kLength, kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic,
                             MemoryKind::kBytes);
  }
  Time next_wake() const override { return kNever; }
  bool done() const { return done_ || !failure_.empty(); }
  const std::string& failure() const { return failure_; }

 protected:
  void require(bool good, const std::string& what) {
    if (!good && failure_.empty()) failure_ = what;
  }
  Qpn make_qp() {
    PortQueuePair wanted{cq_, cq_, {}, false};
    wanted.caps.max_send_wr = 16;
    wanted.caps.max_recv_wr = 16;
    wanted.caps.max_inline = port_.facts().max_inline;
    return *port_.create_qp(wanted);
  }
  Sge piece(std::uint64_t at, std::uint32_t length) const {
    return {memory_.address + at, length, memory_.lkey};
  }
  void receive(std::uint64_t id, std::uint64_t at, std::uint32_t length) {
    const Sge s = piece(at, length);
    const RecvWr wr{id, {&s, 1}};
    require(port_.post_recv(qpn_, {&wr, 1}).refused.has_value(), "a receive is taken");
  }
  void fill(std::uint64_t at, std::uint32_t length, std::uint32_t salt) {
    for (std::uint32_t i = 0; i < length; ++i)
      memory_.bytes[at + i] = static_cast<std::uint8_t>(i * 7 + i / 251 + salt);
  }
  bool filled(std::uint64_t at, std::uint32_t length, std::uint32_t salt) const {
    for (std::uint32_t i = 0; i < length; ++i) {
      if (memory_.bytes[at + i] != static_cast<std::uint8_t>(i * 7 + i / 251 + salt)) return false;
    }
    return true;
  }

  VerbsPort& port_;
  ConnectTerms terms_;
  CqId cq_{};
  PortMemory memory_;
  Qpn qpn_ = kNoQpn;
  ConnectionId connection_{};
  bool done_ = false;
  std::string failure_;
};

class Server final : public Party {
 public:
  Server(VerbsPort& port, const ConnectTerms& terms) : Party(port, terms) {
    std::fill(memory_.bytes.begin(), memory_.bytes.end(), std::uint8_t{0});
    require(port.listen(kService).has_value(), "one may listen");
    require(!port.listen(kService).has_value(), "once");
  }
  void act(Time) override {
    for (PortEvent e; port_.poll_event(e);) {
      if (e.kind == PortEventKind::kConnectRequest) answer(e);
      if (e.kind == PortEventKind::kDisconnected) {
        require(e.connection == connection_ && e.qpn == qpn_, "the server is told which connection ended");
        require(*port_.state(qpn_) == QpState::kErr, "a queue pair without a peer is in ERR");
        const auto again = port_.recycle(qpn_);
        require(again.has_value() && *port_.state(*again) == QpState::kReset,
                "it can be made as good as new");
        require(port_.prepare(*again).has_value(), "and prepared");
        qpn_ = *again;
        receive(103, kLength, 64);
        require(port_.destroy_qp(qpn_).has_value(), "it can be destroyed");
        done_ = true;
      }
    }
    Completion c[4];
    for (std::uint32_t n = port_.poll(cq_, c); n != 0; n = port_.poll(cq_, c)) {
      for (std::uint32_t i = 0; i < n; ++i) completed(c[i]);
    }
  }

 private:
  void answer(const PortEvent& e) {
    require(e.service == kService, "the request names the service");
    if (e.data.size == 20 && std::memcmp(e.data.bytes.data(), "away", 4) == 0) {
      require(std::memcmp(e.data.bytes.data() + 4, e.peer.bytes.data(), 16) == 0,
              "the request names the address of the end that asks");
      ConnectData why;
      why.size = 4;
      std::memcpy(why.bytes.data(), "full", 4);
      require(port_.reject(e.connection, why).has_value(), "a request can be rejected");
      return;
    }
    if (e.data.size == 5 && std::memcmp(e.data.bytes.data(), "leave", 5) == 0) return;  // it has left
    if (e.data.size == 5 && std::memcmp(e.data.bytes.data(), "brief", 5) == 0) return answer_briefly(e);
    require(e.data.size == 5 && std::memcmp(e.data.bytes.data(), "hello", 5) == 0,
            "data travels with a request");
    connection_ = e.connection;
    qpn_ = make_qp();
    require(port_.prepare(qpn_).has_value() && *port_.state(qpn_) == QpState::kInit,
            "a queue pair without a peer can be prepared");
    // Posted before the client may send.
    receive(101, kLength + 64, 0);  // the WRITE with immediate takes it
    receive(100, kLength, 64);
    receive(102, kLength + 128, 64);
    ConnectData data;
    const Invitation where{memory_.address, memory_.rkey.v};
    data.size = sizeof where;
    std::memcpy(data.bytes.data(), &where, sizeof where);
    require(port_.accept(e.connection, qpn_, terms_, data).has_value(), "a request can be accepted");
  }
  // It hangs up before it has heard that the client is there.
  void answer_briefly(const PortEvent& e) {
    const Qpn brief = make_qp();
    require(port_.prepare(brief).has_value() && port_.accept(e.connection, brief, terms_, {}).has_value(),
            "a second request can be accepted");
    require(port_.disconnect(e.connection).has_value(), "one may hang up before the other end is there");
    require(!port_.disconnect(e.connection).has_value(), "that, too, once");
    require(*port_.state(brief) == QpState::kErr, "and then the queue pair carries nothing any more");
    require(port_.destroy_qp(brief).has_value(), "and it can be destroyed");
  }
  void completed(const Completion& c) {
    if (c.status != WcStatus::kSuccess) return;  // flushed at the end
    if (c.wr_id == 100) {
      require(c.byte_len == 64 && filled(kLength, 64, 3), "a SEND's bytes are in its receive");
      const Sge s = piece(kLength, 64);
      SendWr wr;
      wr.wr_id = 200;
      wr.sges = {&s, 1};
      wr.flags = kSendSignaled | kSendSolicited;
      require(port_.post_send(qpn_, {&wr, 1}).taken == 1, "the server answers");
      port_.ring();
    }
    if (c.wr_id == 101) {
      require(c.opcode == WcOpcode::kReceiveWriteImm && (c.flags & kWcWithImm) != 0 && c.imm == kImm,
              "an immediate arrives as it was sent");
      require(filled(0, kLength, 1), "bytes of a WRITE are there before its immediate");
    }
  }
};

class Client final : public Party {
 public:
  Client(VerbsPort& port, const ConnectTerms& terms, const wire::Address& server)
      : Party(port, terms), server_(server) {
    qpn_ = make_qp();
    require(*port.state(qpn_) == QpState::kReset, "a queue pair begins in RESET");
    call(kNobodyListens, "hello");
  }
  void act(Time) override {
    for (PortEvent e; port_.poll_event(e);) event(e);
    Completion c[4];
    while (!done()) {
      const std::uint32_t n = port_.poll(cq_, c);
      if (n == 0) return;
      for (std::uint32_t i = 0; i < n; ++i) completed(c[i]);
    }
  }

 private:
  void call(std::uint16_t service, const char* word) {
    ConnectData data;
    data.size = static_cast<std::uint8_t>(std::strlen(word));
    std::memcpy(data.bytes.data(), word, data.size);
    if (std::strcmp(word, "away") == 0) {
      const wire::Address own = port_.facts().address;
      std::memcpy(data.bytes.data() + data.size, own.bytes.data(), own.bytes.size());
      data.size = static_cast<std::uint8_t>(data.size + own.bytes.size());
    }
    const auto made = port_.connect(server_, service, qpn_, terms_, data);
    require(made.has_value(), "one may ask");
    if (made) attempt_ = *made;
  }
  void event(const PortEvent& e) {
    if (e.kind == PortEventKind::kCompletion) armed_rang_ = armed_rang_ || e.cq == cq_;
    if (e.kind == PortEventKind::kRejected && ++rejections_ == 1) call(kService, "away");
    if (e.kind == PortEventKind::kRejected && rejections_ == 2) {
      require(e.data.size == 4 && std::memcmp(e.data.bytes.data(), "full", 4) == 0, "who rejects says why");
      require(*port_.state(qpn_) == QpState::kReset, "a queue pair that was rejected may try again");
      give_up();
      call(kService, "brief");
      return;
    }
    const bool over = e.kind == PortEventKind::kRejected || e.kind == PortEventKind::kDisconnected;
    if (rejections_ >= 2 && !briefly_ && over && e.connection == attempt_) {
      briefly_ = true;
      const auto again = port_.recycle(qpn_);
      require(again.has_value(), "a queue pair whose peer hung up at once can be made as good as new");
      if (again) qpn_ = *again;
      call(kService, "hello");
    }
    if (e.kind != PortEventKind::kEstablished || !briefly_) return;
    require(e.qpn == qpn_ && e.data.size == sizeof there_, "data travels with an answer");
    connection_ = e.connection;
    std::memcpy(&there_, e.data.bytes.data(), sizeof there_);
    require(*port_.state(qpn_) == QpState::kRts, "an established queue pair may send");
    write();
  }
  // The server is asked and has not answered.
  void give_up() {
    call(kService, "leave");
    require(port_.disconnect(attempt_).has_value(), "an attempt can be given up");
    require(!port_.disconnect(attempt_).has_value(), "once");
    require(*port_.state(qpn_) == QpState::kReset, "its queue pair may try again");
  }
  SendWr request(std::uint64_t id, WrOpcode opcode, std::uint64_t remote) {
    SendWr wr;
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.flags = kSendSignaled;
    wr.remote_address = there_.address + remote;
    wr.rkey = {there_.rkey};
    return wr;
  }
  void post(const SendWr& wr) {
    require(port_.post_send(qpn_, {&wr, 1}).taken == 1, "request " + std::to_string(wr.wr_id) + " is taken");
    port_.ring();
  }
  // A list: an unsignaled WRITE, one of nothing, one with an immediate.
  void write() {
    fill(0, kLength, 1);
    const Sge s = piece(0, kLength);
    SendWr list[3] = {request(1, WrOpcode::kWrite, 0), request(2, WrOpcode::kWrite, 0),
                      request(3, WrOpcode::kWriteImm, 0)};
    list[0].sges = {&s, 1};
    list[0].flags = 0;
    list[2].imm = kImm;
    require(port_.post_send(qpn_, list).taken == 3, "a list is taken whole");
    port_.ring();
  }
  void completed(const Completion& c) {
    if (ending_) return flushed(c);
    require(c.status == WcStatus::kSuccess, "request " + std::to_string(c.wr_id) + " succeeds");
    switch (c.wr_id) {
      case 1:
        return require(false, "an unsignaled request completes in silence");
      case 3:
        read();
        break;
      case 4:
        require(c.opcode == WcOpcode::kRead && filled(kLength, kLength, 1),
                "a READ brings what the WRITE left");
        add();
        break;
      case 5: {
        std::uint64_t old = 0;
        std::memcpy(&old, &memory_.bytes[16], 8);
        require(old == 0, "a fetch-and-add brings the value before it");
        send();
        break;
      }
      case 7:
        require(c.byte_len == 64 && filled(128, 64, 3), "the answer is what was sent");
        answered_ = true;
        break;
      default:
        break;
    }
    sent_ = sent_ || c.wr_id == 6;
    if (answered_ && sent_) fail_on_purpose();
  }
  void read() {
    const Sge s = piece(kLength, kLength);
    SendWr wr = request(4, WrOpcode::kRead, 0);
    wr.sges = {&s, 1};
    post(wr);
  }
  void add() {
    const Sge s = piece(16, 8);
    SendWr wr = request(5, WrOpcode::kFetchAdd, (8 - there_.address % 8) % 8 + kLength + 1024);
    wr.sges = {&s, 1};
    wr.compare_or_add = 5;
    post(wr);
  }
  void send() {
    receive(7, 128, 64);
    require(port_.arm(cq_, false).has_value(), "a completion queue can be armed");
    fill(0, 64, 3);
    const Sge s = piece(0, 64);
    SendWr wr = request(6, WrOpcode::kSend, 0);
    wr.sges = {&s, 1};
    if (port_.facts().max_inline >= 64) wr.flags |= kSendInline;
    post(wr);
    if (port_.facts().max_inline >= 64) fill(0, 64, 99);  // inline bytes were taken when it was posted
  }
  // A key that opens nothing; what is posted behind it is flushed.
  void fail_on_purpose() {
    ending_ = true;
    require(armed_rang_ || drain_events(), "an armed completion queue rings");
    const Sge s = piece(0, 64);
    SendWr list[2] = {request(8, WrOpcode::kWrite, 0), request(9, WrOpcode::kWrite, 0)};
    for (SendWr& wr : list) wr.sges = {&s, 1};
    list[0].rkey = {there_.rkey ^ 0x00FF'FF00U};
    require(port_.post_send(qpn_, list).taken == 2, "the port does not know the peer's keys");
    port_.ring();
  }
  bool drain_events() {
    for (PortEvent e; port_.poll_event(e);) event(e);
    return armed_rang_;
  }
  void flushed(const Completion& c) {
    if (c.wr_id == 8) require(c.status == WcStatus::kRemoteAccess, "a wrong key is a remote access error");
    if (c.wr_id != 9) return;
    require(c.status == WcStatus::kFlushed, "what is behind a failure is flushed");
    require(*port_.state(qpn_) == QpState::kErr, "a queue pair that failed is in ERR");
    require(port_.disconnect(connection_).has_value(), "one may hang up");
    require(!port_.disconnect(connection_).has_value(), "once");
    require(port_.destroy_qp(qpn_).has_value(), "a queue pair can be destroyed");
    require(port_.release(memory_.lkey).has_value(), "memory can be given back");
    require(port_.destroy_cq(cq_).has_value(), "a completion queue can be destroyed");
    done_ = true;
  }

  wire::Address server_;
  Invitation there_{};
  int rejections_ = 0;
  bool briefly_ = false;
  ConnectionId attempt_{};
  bool armed_rang_ = false;
  bool answered_ = false;
  bool sent_ = false;
  bool ending_ = false;
};

}  // namespace weft::port_test
