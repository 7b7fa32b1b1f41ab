// UC and UD as a property: random traffic between two hosts over a network that loses, duplicates and
// overtakes, judged by a checker that knows only what was posted, which packets arrived, and what the
// programs saw.
//
//   UC   a delivered message equals one that was sent, all of it arrived, and numbers of delivered messages
//        ascend: in order, at most once. Where nothing is overtaken or duplicated, what arrived whole was
//        delivered. A WRITE's place holds its bytes or what was there before, and all of its bytes if all of
//        it arrived.
//   UD   a datagram is delivered as often as the network delivered it, behind the right GRH.
//   both every request completes, once and in order; nothing else is touched; all path credit comes back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "core/base/prng.h"
#include "core/impair/impair.h"
#include "core/transport/device.h"
#include "core/verbs/ladder.h"
#include "core/wire/codec.h"
#include "core/wire/ip.h"

namespace weft {
namespace {

constexpr std::uint64_t kBase = 0x7000'0000;
constexpr std::uint32_t kSlot = 4096;  // bytes of one message's source, target or receive
constexpr std::uint32_t kMessages = 240;
constexpr std::uint32_t kReceives = 8;  // per queue pair
constexpr std::size_t kHosts = 2;
constexpr std::size_t kEach = 4;  // queue pairs of a host: two of each service
constexpr std::uint32_t kSources = 0;
constexpr std::uint32_t kTargets = kSources + kMessages * kSlot;
constexpr std::uint32_t kReceived = kTargets + kMessages * kSlot;
constexpr std::uint32_t kMemory = kReceived + kEach * kReceives * kSlot;
constexpr std::uint8_t kBefore = 0xA5;
constexpr std::uint32_t kQkey = 0x77;

struct Message {
  WrOpcode op{};
  std::size_t from = 0;  // queue pairs, counted over both hosts
  std::size_t to = 0;
  std::uint32_t length = 0;
  bool signaled = false;
  std::vector<std::uint32_t> arrivals;  // of each of its packets
  std::uint32_t delivered = 0;
  bool whole() const {
    return std::all_of(arrivals.begin(), arrivals.end(), [](std::uint32_t n) { return n > 0; });
  }
};

std::uint8_t byte_of(std::uint64_t id, std::uint32_t i) {
  return static_cast<std::uint8_t>(i < 8 ? id >> (8 * i) : id * 31 + i * 7 + i / 256);
}
bool with_imm(WrOpcode op) { return op == WrOpcode::kSendImm || op == WrOpcode::kWriteImm; }
bool is_write(WrOpcode op) { return op == WrOpcode::kWrite || op == WrOpcode::kWriteImm; }

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {
    impair::ImpairConfig c;
    c.loss = static_cast<std::uint32_t>(random_.below(3) == 0 ? 0 : random_.below(300'000));
    in_order_ = random_.below(2) == 0;
    if (!in_order_) {
      c.duplicate = static_cast<std::uint32_t>(random_.below(100'000));
      c.reorder = static_cast<std::uint32_t>(random_.below(200'000));
      c.reorder_by = microseconds(5);
    }
    c.delay = microseconds(2);
    network_ = impair::Impairment(c, random_.fork(1));
    constexpr std::uint32_t kMtus[] = {256, 512, 1024};
    mtu_ = kMtus[random_.below(3)];
    for (std::size_t h = 0; h < kHosts; ++h) add_host(h);
    for (std::size_t q = 0; q < kHosts * kEach; ++q) start(q);
  }

  void run() {
    std::uint64_t posted = 0;
    for (int turns = 0; turns < 200'000; ++turns) {
      while (posted < kMessages && random_.below(4) != 0 && post(posted)) ++posted;
      const bool sent = pump();
      Time next = kNever;
      if (!flights_.empty()) next = flights_.begin()->first;
      for (const auto& h : hosts_) next = std::min(next, h->device.next_deadline());
      if (next == kNever && !sent && posted == kMessages) break;
      if (next != kNever) now_ = std::max(now_, next);
      for (auto& h : hosts_) h->device.on_timer(now_);
      while (!flights_.empty() && flights_.begin()->first <= now_) {
        const Flight f = flights_.begin()->second;
        flights_.erase(flights_.begin());
        arrive(f);
      }
    }
    ASSERT_EQ(posted, kMessages);
    judge_the_end();
  }
  std::uint64_t delivered() const { return delivered_; }

 private:
  struct Host {
    explicit Host(const DeviceConfig& c) : device(c), memory(kMemory, kBefore) {}
    Device device;
    std::vector<std::uint8_t> memory;
    PdId pd{};
    MrInfo mr;
    std::vector<AhId> handles;  // to each host
  };
  struct End {
    std::size_t host = 0;
    bool datagram = false;
    Qpn qpn{};
    CqId send_cq{};
    CqId recv_cq{};
    std::uint32_t next_psn = 0;
    std::deque<std::uint64_t> completing;  // signaled requests not yet reported
    std::uint64_t delivered_below = 0;     // UC: ids from here on are still to come
  };
  struct Flight {
    std::size_t from = 0;
    std::size_t to_host = 0;
    std::vector<std::uint8_t> datagram;  // BTH to ICRC, the ICRC zero
    std::uint64_t message = 0;
    std::uint32_t packet = 0;
  };
  struct Memory {
    Host& host;
    const std::uint8_t* payload;
    bool place(const Placement& p) {
      put(p.offset, payload + p.payload_offset, p.length);
      return true;
    }
    bool place_value(const ValuePlacement& v) {
      std::uint8_t bytes[8];
      std::memcpy(bytes, &v.value, sizeof bytes);
      put(v.offset, bytes + v.value_offset, v.length);
      return true;
    }
    AtomicResult execute(const AtomicRequest&) { return {}; }
    void put(std::uint64_t at, const std::uint8_t* from, std::uint32_t length) {
      ASSERT_GE(at, kTargets) << "sources are not for writing";
      ASSERT_LE(at + length, kMemory);
      std::copy_n(from, length, host.memory.begin() + static_cast<std::ptrdiff_t>(at));
    }
  };

  static wire::Address address_of(std::size_t host) {
    return wire::Address::v4(10, 0, 0, static_cast<std::uint8_t>(host + 1));
  }

  void add_host(std::size_t h) {
    DeviceConfig c;
    c.max_qp = 16;
    c.qpn_bits = 5;
    c.seed = random_.next();
    c.address = address_of(h);
    c.port_mtu = mtu_;
    c.burst_packets = static_cast<std::uint32_t>(1 + random_.below(8));
    c.path_credit = {random_.below(2) == 0 ? 0 : 600 + random_.below(8000)};
    c.path_overhead = {random_.below(100)};
    c.presumed_flight = microseconds(static_cast<std::int64_t>(1 + random_.below(30)));
    Host& host = *hosts_.emplace_back(std::make_unique<Host>(c));
    host.pd = *host.device.alloc_pd();
    host.mr = *host.device.register_mr(host.pd, kBase, kMemory, kLocalWrite | kRemoteWrite);
    for (std::size_t to = 0; to < kHosts; ++to)
      host.handles.push_back(*host.device.create_ah(host.pd, *host.device.open_path({address_of(to)})));
    const SrqId srq = random_.below(3) == 0 ? *host.device.create_srq(host.pd, {64, 1, 0}) : kNoSrq;
    for (std::size_t i = 0; i < kEach; ++i) {
      End e;
      e.host = h;
      e.datagram = i >= kEach / 2;
      e.send_cq = *host.device.create_cq(1024);
      e.recv_cq = *host.device.create_cq(1024);
      QpInit init;
      init.type = e.datagram ? QpType::kUd : QpType::kUc;
      init.pd = host.pd;
      init.send_cq = e.send_cq;
      init.recv_cq = e.recv_cq;
      init.caps = {16, kReceives, 2, 1, 0};
      init.srq = srq;
      e.qpn = *host.device.create_qp(init);
      e.next_psn = static_cast<std::uint32_t>(random_.next()) & kPsnMask;
      ends_.push_back(e);
    }
  }

  // UC: queue pair i of one host is connected to queue pair i of the other.
  std::size_t peer_of(std::size_t q) const { return (q + kEach) % (kHosts * kEach); }

  void start(std::size_t q) {
    End& e = ends_[q];
    Device& d = hosts_[e.host]->device;
    QpAttr t;
    t.qkey = kQkey;
    t.access = kRemoteWrite;
    t.mtu = mtu_;
    t.path = *d.open_path({address_of(1 - e.host)});
    t.dest_qpn = ends_[peer_of(q)].qpn;
    t.rq_psn = {ends_[peer_of(q)].next_psn};
    t.sq_psn = {e.next_psn};
    ASSERT_TRUE(climb(e.datagram ? QpType::kUd : QpType::kUc, t, [&](const QpAttr& at, std::uint32_t mask) {
      return d.modify_qp(e.qpn, at, mask, now_).has_value();
    }));
    for (std::uint32_t i = 0; i < kReceives; ++i) post_receive(q, receive_place(q, i));
  }
  // Where receive i of a queue pair lies: its wr_id.
  std::uint64_t receive_place(std::size_t q, std::uint32_t i) const {
    return kReceived + (q % kEach * kReceives + i) * kSlot;
  }
  void post_receive(std::size_t q, std::uint64_t place) {
    Host& h = *hosts_[ends_[q].host];
    const Sge sge{kBase + place, kSlot, h.mr.lkey};
    const SrqId srq = h.device.query_qp_init(ends_[q].qpn)->srq;
    const RecvWr wr{place, {&sge, 1}};
    ASSERT_TRUE(
        (srq == kNoSrq ? h.device.post_recv(ends_[q].qpn, wr) : h.device.post_srq_recv(srq, wr)).has_value());
  }

  bool post(std::uint64_t id) {
    Message m;
    m.from = random_.below(ends_.size());
    End& e = ends_[m.from];
    Host& h = *hosts_[e.host];
    constexpr WrOpcode kOps[] = {WrOpcode::kSend, WrOpcode::kSendImm, WrOpcode::kWrite, WrOpcode::kWriteImm};
    m.op = kOps[random_.below(e.datagram ? 2 : 4)];
    m.to = e.datagram ? random_.below(kHosts) * kEach + kEach / 2 + random_.below(2) : peer_of(m.from);
    const std::uint32_t most = e.datagram ? mtu_ : std::min(kSlot, 4 * mtu_);
    m.length = static_cast<std::uint32_t>(8 + random_.below(most - 7));
    if (m.op != WrOpcode::kSend && random_.below(8) == 0) m.length = 0;  // a SEND is known by its bytes
    m.signaled = random_.below(4) != 0;
    m.arrivals.resize(std::max(1U, (m.length + mtu_ - 1) / mtu_));
    const std::uint64_t place = kSources + id * kSlot;
    for (std::uint32_t i = 0; i < m.length; ++i) h.memory[place + i] = byte_of(id, i);
    const auto cut = static_cast<std::uint32_t>(random_.below(m.length + 1));
    const Sge pieces[2] = {{kBase + place, cut, h.mr.lkey}, {kBase + place + cut, m.length - cut, h.mr.lkey}};
    SendWr wr;
    wr.wr_id = id;
    wr.sges = pieces;
    wr.opcode = m.op;
    wr.flags = m.signaled ? std::uint8_t{kSendSignaled} : std::uint8_t{0};
    wr.imm = static_cast<std::uint32_t>(id);
    wr.remote_address = kBase + kTargets + id * kSlot;
    wr.rkey = hosts_[ends_[m.to].host]->mr.rkey;
    wr.ah = h.handles[ends_[m.to].host];
    wr.remote_qpn = ends_[m.to].qpn;
    wr.remote_qkey = kQkey;
    if (!h.device.post_send(e.qpn, wr)) return false;  // its queue is full; another draw next time
    if (m.signaled) e.completing.push_back(id);
    for (std::uint32_t k = 0; k < m.arrivals.size(); ++k) {
      packets_[{m.from, e.next_psn}] = {id, k};
      e.next_psn = (e.next_psn + 1) & kPsnMask;
    }
    messages_.push_back(std::move(m));
    return true;
  }

  bool pump() {
    bool any = false;
    for (std::size_t h = 0; h < kHosts; ++h) {
      Device& d = hosts_[h]->device;
      const Budget budget{static_cast<std::uint32_t>(1 + random_.below(16)), 65'000};
      for (wire::Burst b = d.poll_transmit(now_, budget); !b.empty(); b = d.poll_transmit(now_, budget)) {
        any = true;
        for (const wire::TxPacket& p : b.packets) launch(h, b, p);
      }
      EXPECT_TRUE(d.poll_control(now_).empty()) << "nothing is ever answered";
      d.check_invariants();
    }
    for (std::size_t q = 0; q < ends_.size(); ++q) look(q);
    return any;
  }

  void launch(std::size_t h, const wire::Burst& b, const wire::TxPacket& p) {
    Flight f;
    f.from = SIZE_MAX;
    for (std::size_t q = 0; q < ends_.size(); ++q) {
      if (ends_[q].host == h && ends_[q].qpn == b.qpn) f.from = q;
    }
    const auto known = packets_.find({f.from, p.header.psn.v});
    ASSERT_NE(known, packets_.end()) << "a packet that nobody asked for, or one sent twice";
    f.message = known->second.first;
    f.packet = known->second.second;
    packets_.erase(known);
    const Message& m = messages_[f.message];
    f.to_host = ends_[m.to].host;
    ASSERT_EQ(hosts_[h]->device.path(b.path).peer, address_of(f.to_host));
    ASSERT_EQ(p.header.dest_qp, ends_[m.to].qpn);
    f.datagram.resize(wire::kMaxHeaderBytes);
    f.datagram.resize(wire::encode(p.header, p.payload, f.datagram));
    for (const wire::Segment& s : b.segments.subspan(p.first_segment, p.segment_count)) {
      const auto from = hosts_[h]->memory.begin() + static_cast<std::ptrdiff_t>(s.offset);
      f.datagram.insert(f.datagram.end(), from, from + s.length);
    }
    f.datagram.resize(f.datagram.size() + wire::pad_bytes(p.payload) + wire::kIcrcBytes);
    const impair::Fate v = network_.decide();
    for (std::uint8_t copy = 0; copy < v.copies; ++copy)
      flights_.emplace(now_.after(copy == 0 ? v.delay : v.duplicate_delay), f);
  }

  void arrive(const Flight& f) {
    wire::Decoded d;
    wire::DecodeError error{};
    ASSERT_TRUE(wire::decode(f.datagram, d, error));
    wire::RxPacket p;
    p.header = d.header;
    p.payload = d.payload;
    p.source = address_of(ends_[f.from].host);
    Host& h = *hosts_[f.to_host];
    ++messages_[f.message].arrivals[f.packet];
    Memory sink{h, f.datagram.data() + d.payload_offset};
    h.device.on_packets(now_, {&p, 1}, sink);
    for (std::size_t q = 0; q < ends_.size(); ++q) look(q);
  }

  void look(std::size_t q) {
    End& e = ends_[q];
    Device& d = hosts_[e.host]->device;
    Completion c[64];
    for (std::uint32_t i = 0, n = d.poll_cq(e.send_cq, c); i < n; ++i) {
      ASSERT_FALSE(e.completing.empty());
      ASSERT_EQ(c[i].wr_id, e.completing.front());
      ASSERT_EQ(c[i].status, WcStatus::kSuccess);
      e.completing.pop_front();
    }
    for (std::uint32_t i = 0, n = d.poll_cq(e.recv_cq, c); i < n; ++i) {
      received(q, c[i]);
      post_receive(q, c[i].wr_id);
    }
  }

  void received(std::size_t q, const Completion& c) {
    End& e = ends_[q];
    const std::vector<std::uint8_t>& memory = hosts_[e.host]->memory;
    const std::uint32_t skip = e.datagram ? static_cast<std::uint32_t>(wire::kGrhBytes) : 0;
    ASSERT_EQ(c.status, WcStatus::kSuccess);
    std::uint64_t id = c.imm;
    if ((c.flags & kWcWithImm) == 0) std::memcpy(&id, &memory[c.wr_id + skip], sizeof id);
    ASSERT_LT(id, messages_.size());
    Message& m = messages_[id];
    ASSERT_EQ(m.to, q) << "message " << id;
    ASSERT_EQ((c.flags & kWcWithImm) != 0, with_imm(m.op));
    ASSERT_EQ(c.byte_len, m.length + skip);
    ASSERT_TRUE(m.whole());
    const std::uint64_t at = is_write(m.op) ? kTargets + id * kSlot : c.wr_id + skip;
    for (std::uint32_t i = 0; i < m.length; ++i)
      ASSERT_EQ(memory[at + i], byte_of(id, i)) << "message " << id;
    ++m.delivered;
    ++delivered_;
    if (e.datagram) {
      ASSERT_EQ(c.flags & kWcGrh, kWcGrh);
      ASSERT_EQ(c.src_qp, ends_[m.from].qpn);
      wire::IpHeader ip;
      ASSERT_TRUE(wire::read_grh(std::span<const std::uint8_t, wire::kGrhBytes>(&memory[c.wr_id], 40), ip));
      ASSERT_EQ(ip.source, address_of(ends_[m.from].host));
      ASSERT_EQ(ip.destination, address_of(e.host));
    } else {
      ASSERT_GE(id, e.delivered_below) << "again, or out of order";
      e.delivered_below = id + 1;
    }
  }

  void judge_the_end() {
    EXPECT_TRUE(packets_.empty()) << "posted and never sent";
    for (const End& e : ends_) EXPECT_TRUE(e.completing.empty());
    for (std::uint64_t id = 0; id < messages_.size(); ++id) {
      SCOPED_TRACE("message " + std::to_string(id));
      const Message& m = messages_[id];
      const bool consumes = m.op != WrOpcode::kWrite;
      if (ends_[m.from].datagram) {
        ASSERT_EQ(m.delivered, m.arrivals[0]);
      } else if (in_order_ && consumes) {
        ASSERT_EQ(m.delivered, m.whole() ? 1U : 0U);
      }
      const std::uint8_t* const target = &hosts_[ends_[m.to].host]->memory[kTargets + id * kSlot];
      for (std::uint32_t i = 0; i < kSlot; ++i) {
        const bool mine = is_write(m.op) && i < m.length;
        ASSERT_TRUE(target[i] == kBefore || (mine && target[i] == byte_of(id, i))) << "byte " << i;
        if (mine && in_order_ && m.whole()) {
          ASSERT_EQ(target[i], byte_of(id, i)) << "byte " << i;
        }
      }
    }
    for (const auto& h : hosts_) {
      EXPECT_EQ(h->device.next_deadline(), kNever);
      for (std::uint32_t path = 0; path < kHosts; ++path) EXPECT_EQ(h->device.path_in_flight({path}).n, 0U);
      EXPECT_EQ(h->device.counters().get(Counter::drop_no_receive), 0U) << "there is always one posted";
    }
  }

  Prng random_;
  impair::Impairment network_;
  bool in_order_ = true;
  std::uint32_t mtu_ = 0;
  Time now_{};
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<End> ends_;
  std::vector<Message> messages_;
  std::map<std::pair<std::size_t, std::uint32_t>, std::pair<std::uint64_t, std::uint32_t>> packets_;
  std::multimap<Time, Flight> flights_;
  std::uint64_t delivered_ = 0;
};

TEST(UnreliableTest, WhatArrivesIsDeliveredAndNothingElse) {
  std::uint64_t delivered = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    world.run();
    if (HasFatalFailure() || HasNonfatalFailure()) return;
    delivered += world.delivered();
  }
  EXPECT_GT(delivered, 300U * 80U);
}

}  // namespace
}  // namespace weft
