// Two Devices and a byte string that plays their users, the network, the clock and an attacker who has seen
// packets: operations are posted, packets carried, lost, repeated, held, altered and made up, memory faults,
// and queue pairs, regions, windows and queues come and go in between.
//
// What must hold (device_host.h): nothing lands outside registered memory, every emitted packet is one,
// completions are in order and none twice, invariants hold after every step, and in the end everything that
// was lent is back. Delivery is the swarm's business: with an attacker on the wire nothing can be promised
// about it.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/transport/cc/controller.h"
#include "core/transport/device.h"
#include "core/transport/loss/scheme.h"
#include "core/verbs/ladder.h"
#include "tests/fuzz/device_host.h"
#include "tests/fuzz/device_packets.h"
#include "tests/fuzz/input.h"

namespace {

using namespace weft;
using fuzz::alter;
using fuzz::any_opcode;
using fuzz::as_decoded;
using fuzz::Frame;
using fuzz::Host;
using fuzz::Input;
using fuzz::Queue;

constexpr std::size_t kWire = 64;  // frames under way to one host; the oldest is lost
constexpr std::size_t kSeen = 16;  // frames that the attacker remembers
constexpr std::uint8_t kAllRights = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kMwBind;

DeviceConfig config_of(Input& in) {
  DeviceConfig c;
  c.max_qp = 6;
  c.max_cq = 4;
  c.max_mr = 12;
  c.max_pd = 2;
  c.max_srq = 2;
  c.max_path = 3;
  c.max_ring = 8;
  c.max_cqe = 64;
  c.control_ring = 8;
  c.qpn_bits = 4;
  c.window_packets = 64;
  c.bdp_cap = 1U + in.below(20);
  c.loss_blocks = in.below(4);
  c.ack_coalesce = in.flag();
  c.burst_packets = 1U + in.below(8);
  c.rto = static_cast<Rto>(in.below(3));
  if (c.rto == Rto::kFloored) c.rto_floor = milliseconds(1);
  if (in.flag()) c.read_chunk = 512;
  if (in.flag()) c.path_credit = {4096};
  c.controller = static_cast<std::uint8_t>(in.below(static_cast<std::uint32_t>(controllers().size())));
  c.nack_threshold = std::min(1U + in.below(3), c.bdp_cap);
  c.strict_write_order = in.below(4) == 1;
  if (in.flag()) c.pacing_quantum = microseconds(10);
  if (in.flag()) c.line_rate = megabits(20);  // slow enough that controllers pace
  c.recovery = loss_schemes()[in.below(static_cast<std::uint32_t>(loss_schemes().size()))];
  return c;
}

struct World {
  explicit World(Input& in) : hosts{Host(1, config_of(in)), Host(2, config_of(in))} {}
  Host hosts[2];
  std::vector<Frame> wire[2];  // to host i
  std::vector<Frame> seen;
  Time now{};

  Host& other(const Host& h) { return &h == &hosts[0] ? hosts[1] : hosts[0]; }
  std::vector<Frame>& to(const Host& h) { return wire[&h == &hosts[0] ? 0 : 1]; }
  void carry(Host& from, const wire::Burst& burst) {
    std::vector<Frame>& out = to(other(from));
    const std::size_t before = out.size();
    from.send(burst, out);
    for (std::size_t i = before; i < out.size(); ++i) {
      if (seen.size() == kSeen) seen.erase(seen.begin());
      seen.push_back(out[i]);
    }
    if (out.size() > kWire) out.erase(out.begin(), out.end() - kWire);
  }
};

template <class T>
T any_of(const std::vector<T>& all, Input& in, T none) {
  return all.empty() ? none : all[in.u8() % all.size()];
}
Queue any_queue(const Host& h, Input& in) { return any_of(h.queues, in, Queue{}); }

// --- resources -----------------------------------------------------------------------------------

void add_region(Host& h, Input& in, std::uint64_t length, std::uint8_t access) {
  const auto mr = h.device.register_mr(h.pds[in.below(8) == 7 ? 1 : 0], Host::kBase, length, access);
  if (!mr.has_value()) return;
  h.regions[mr->region] = {length, false};
  h.mrs.push_back(*mr);
}

void remove_region(Host& h, Input& in) {
  if (h.mrs.empty()) return;
  const std::size_t i = in.u8() % h.mrs.size();
  if (!h.device.deregister_mr(h.mrs[i].lkey).has_value()) return;
  h.regions.erase(h.mrs[i].region);
  h.mrs.erase(h.mrs.begin() + static_cast<std::ptrdiff_t>(i));
}

void create(World& w, Host& h, Input& in) {
  QpInit init;
  const std::uint32_t type = in.below(8);
  init.type = type == 0 ? QpType::kUc : type == 1 ? QpType::kUd : QpType::kRc;
  init.pd = h.pds[in.below(8) == 7 ? 1 : 0];
  init.send_cq = any_of(h.cqs, in, CqId{});
  init.recv_cq = any_of(h.cqs, in, CqId{});
  init.caps = {1U + in.below(8), 1U + in.below(8), 1U + in.below(3), 1U + in.below(3), in.flag() ? 64U : 0U};
  init.signal_all = in.flag();
  if (in.below(4) == 0) init.srq = any_of(h.srqs, in, kNoSrq);
  const auto qpn = h.device.create_qp(init);
  if (!qpn.has_value()) return;
  h.queues.push_back({*qpn, *h.device.query_qp_init(*qpn)});
  if (init.type != QpType::kUd) return;
  const auto ah = h.device.create_ah(h.pds[0], *h.device.open_path({w.other(h).address}));
  if (ah.has_value()) h.handles.push_back(*ah);
}

void destroy(Host& h, Input& in) {
  if (h.queues.empty()) return;
  const std::size_t i = in.u8() % h.queues.size();
  CHECK(h.device.destroy_qp(h.queues[i].qpn).has_value());
  h.queues.erase(h.queues.begin() + static_cast<std::ptrdiff_t>(i));
}

QpAttr attributes(World& w, Host& h, Qpn peer, Input& in) {
  QpAttr a;
  a.mode = static_cast<wire::Mode>(in.below(wire::kModeCount));
  a.mtu = 256U << in.below(2);
  a.access = in.below(4) == 0 ? in.u8() & 15U : kRemoteWrite | kRemoteRead | kRemoteAtomic;
  a.path = *h.device.open_path({w.other(h).address});
  a.dest_qpn = peer;
  a.rq_psn = a.sq_psn = {0xFFFFF0};
  a.max_rd_atomic = static_cast<std::uint8_t>(1U + in.below(4));
  a.max_dest_rd_atomic = static_cast<std::uint8_t>(1U + in.below(4));
  a.timeout = static_cast<std::uint8_t>(in.below(16));
  a.retry_count = static_cast<std::uint8_t>(in.below(8));
  a.rnr_retry = static_cast<std::uint8_t>(in.below(8));
  return a;
}

void to_rts(World& w, Host& h, const Queue& q, QpAttr a) {
  // Whatever becomes of a step, the next one is tried.
  for (const LadderStep& step : ladder(q.init.type)) {
    a.state = step.state;
    static_cast<void>(h.device.modify_qp(q.qpn, a, step.mask, w.now));
  }
}

void connect(World& w, Input& in) {
  const Queue x = any_queue(w.hosts[0], in), y = any_queue(w.hosts[1], in);
  QpAttr a = attributes(w, w.hosts[0], y.qpn, in);
  to_rts(w, w.hosts[0], x, a);
  if (in.below(4) == 0) a = attributes(w, w.hosts[1], x.qpn, in);
  a.dest_qpn = x.qpn;
  a.path = *w.hosts[1].device.open_path({w.hosts[0].address});
  to_rts(w, w.hosts[1], y, a);
}

void modify(World& w, Host& h, Input& in) {
  QpAttr a = attributes(w, h, {in.u8()}, in);
  a.state = static_cast<QpState>(in.below(7));
  a.current_state = static_cast<QpState>(in.below(7));
  a.sqd_notify = in.flag();
  std::uint32_t mask = kAttrState;
  if (in.flag()) mask |= in.u32() & ((1U << 21U) - 1U);
  static_cast<void>(h.device.modify_qp(any_queue(h, in).qpn, a, mask, w.now));
}

void window(Host& h, Input& in) {
  if (in.flag()) {
    const auto key = h.device.alloc_window(h.pds[0], in.flag() ? WindowType::k1 : WindowType::k2);
    if (key.has_value()) h.windows.push_back(*key);
  } else if (!h.windows.empty()) {
    const std::size_t i = in.u8() % h.windows.size();
    if (h.device.dealloc_window(h.windows[i]).has_value())
      h.windows.erase(h.windows.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void queues(Host& h, Input& in) {
  switch (in.below(7)) {
    case 0:
      if (const auto cq = h.device.create_cq(1U + in.below(64)); cq.has_value()) h.cqs.push_back(*cq);
      break;
    case 1: {
      const CqId cq = any_of(h.cqs, in, CqId{});
      if (h.cqs.size() > 1 && h.device.destroy_cq(cq).has_value()) std::erase(h.cqs, cq);
      break;
    }
    case 2:
      static_cast<void>(h.device.resize_cq(any_of(h.cqs, in, CqId{}), in.u8()));
      break;
    case 3: {
      const auto srq = h.device.create_srq(h.pds[0], {in.below(10), in.below(4), in.below(4)});
      if (srq.has_value()) h.srqs.push_back(*srq);
      break;
    }
    case 4: {
      const SrqId srq = any_of(h.srqs, in, kNoSrq);
      if (h.device.destroy_srq(srq).has_value()) std::erase(h.srqs, srq);
      break;
    }
    case 5:
      if (!h.handles.empty() && h.device.destroy_ah(h.handles.back()).has_value()) h.handles.pop_back();
      break;
    default:
      static_cast<void>(h.device.set_srq_limit(any_of(h.srqs, in, kNoSrq), in.below(8)));
  }
}

// --- work ----------------------------------------------------------------------------------------

// Somewhere in a region of `length` bytes; one time in four at its very end, or a byte or two beyond.
std::uint64_t any_address(const Host& h, const MrInfo& mr, std::uint64_t bytes, Input& in) {
  const auto region = h.regions.find(mr.region);
  const std::uint64_t length = region == h.regions.end() ? 4096 : region->second.length;
  const bool at_the_end = in.below(4) == 0;
  const std::uint16_t where = in.u16();
  if (at_the_end) return Host::kBase + length - std::min(length, bytes) + where % 3U;
  return Host::kBase + (length == 0 ? 0 : where % length);
}

Sge any_sge(const Host& h, Input& in) {
  const MrInfo mr = any_of(h.mrs, in, MrInfo{});
  Sge s;
  s.length = in.below(16) == 0 ? in.u32() : in.u16() % 1500U;
  s.lkey = in.below(16) == 0 ? Key{in.u32()} : mr.lkey;
  s.address = any_address(h, mr, s.length, in);
  return s;
}

void post_send(World& w, Host& h, Input& in) {
  const Queue q = any_queue(h, in);
  const Host& peer = w.other(h);
  Sge sges[3];
  const std::size_t n = in.below(4);
  for (std::size_t i = 0; i < n; ++i) sges[i] = any_sge(h, in);
  SendWr wr;
  wr.wr_id = h.next_id++;
  wr.opcode = static_cast<WrOpcode>(in.below(10));
  wr.flags = in.u8() & 15U;
  const bool atomic = wr.opcode == WrOpcode::kCompareSwap || wr.opcode == WrOpcode::kFetchAdd;
  if (atomic && n == 1 && in.below(8) != 0) sges[0].length = 8;
  if ((wr.flags & kSendInline) != 0) {
    for (Sge& s : sges) s.length %= 64;
  }
  wr.sges = {sges, n};
  const MrInfo remote = any_of(peer.mrs, in, MrInfo{});
  wr.imm = in.flag() ? any_of(peer.windows, in, Key{}).v : in.u32();
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < n; ++i) total += sges[i].length;
  wr.remote_address = any_address(peer, remote, atomic ? 8 : total, in);
  if (atomic && in.below(8) != 0) wr.remote_address = (wr.remote_address + 7) & ~std::uint64_t{7};
  wr.rkey = in.below(8) == 0 ? any_of(peer.windows, in, Key{in.u32()}) : remote.rkey;
  wr.compare_or_add = in.u8();
  if (wr.opcode == WrOpcode::kBindWindow) {
    wr.bind = {any_of(h.windows, in, Key{}), any_of(h.mrs, in, MrInfo{}).lkey, Host::kBase + in.u8(),
               in.u16(), static_cast<std::uint8_t>(in.u8() & kAllRights)};
  }
  if (q.init.type == QpType::kUd) {
    if (in.below(8) != 0) wr.opcode = in.flag() ? WrOpcode::kSend : WrOpcode::kSendImm;
    wr.ah = any_of(h.handles, in, AhId{});
    wr.remote_qpn = any_queue(peer, in).qpn;
    wr.remote_qkey = in.below(8) == 0 ? in.u32() : 0;
  }
  static_cast<void>(h.device.post_send(q.qpn, wr));
}

void post_receive(Host& h, Input& in) {
  Sge sges[3];
  const std::size_t n = in.below(4);
  for (std::size_t i = 0; i < n; ++i) sges[i] = any_sge(h, in);
  const RecvWr wr{h.next_id++ | Host::kReceiveId, {sges, n}};
  if (in.below(4) == 0) {
    static_cast<void>(h.device.post_srq_recv(any_of(h.srqs, in, kNoSrq), wr));
  } else {
    static_cast<void>(h.device.post_recv(any_queue(h, in).qpn, wr));
  }
}

// --- the network ---------------------------------------------------------------------------------

void deliver(World& w, Host& h, Input& in) {
  std::vector<Frame>& wire = w.to(h);
  std::vector<wire::RxPacket> batch;
  for (std::uint32_t n = 1U + in.below(6); n > 0; --n) {
    const std::uint32_t fate = in.below(16);
    if (wire.empty()) continue;
    const std::size_t i = fate == 1 ? in.u8() % wire.size() : 0;
    wire::RxPacket p = wire[i].packet;
    wire.erase(wire.begin() + static_cast<std::ptrdiff_t>(i));
    if (fate == 0) continue;                  // lost
    if (fate == 2) wire.push_back(Frame{p});  // and once more, later
    if (fate == 3) p.tos = wire::kEcnCe;
    if (fate == 4) alter(p, in);
    if (!as_decoded(p)) continue;
    batch.push_back(p);
  }
  h.receive(w.now, batch, in.below(32) == 31);
}

void attack(World& w, Host& h, Input& in) {
  wire::RxPacket p;
  p.source = in.below(8) == 0 ? wire::Address::v4(6, 6, 6, 6) : w.other(h).address;
  if (!w.seen.empty() && in.flag()) {
    p = w.seen[in.u8() % w.seen.size()].packet;
  } else {
    p.header.opcode = any_opcode(in);
    p.header.mode = static_cast<wire::Mode>(in.below(wire::kModeCount));
    p.header.dest_qp = any_queue(h, in).qpn;
    p.header.psn = {0xFFFFF0U + in.below(32)};
    const MrInfo mr = any_of(h.mrs, in, MrInfo{});
    p.payload = in.below(600);
    p.header.dma_len = in.flag() ? p.payload : in.u16();
    p.header.va = any_address(h, mr, p.header.dma_len, in);
    p.header.rkey = mr.rkey;
  }
  for (std::uint32_t n = in.below(3); n > 0; --n) {
    alter(p, in);
  }
  if (as_decoded(p)) h.receive(w.now, {&p, 1}, false);
}

void send(World& w, Host& h, Input& in) {
  const Budget budget{1U + in.below(16), 256U + in.u16() % 60000U};
  const std::uint32_t how = in.below(16);
  if (how == 0) {
    const Qpn q = h.device.pick(w.now);
    if (q != kNoQpn) h.device.put_back(q);
    return;
  }
  const wire::Burst burst = h.device.poll_transmit(w.now, budget);
  if (burst.empty()) return;
  if (how == 1) {
    h.device.gather_failed(burst, in.below(static_cast<std::uint32_t>(burst.packets.size())), w.now);
    return;
  }
  w.carry(h, burst);
}

void pass_time(World& w, Input& in) {
  const std::uint32_t how = in.below(4);
  if (how == 0) w.now = w.now.after(microseconds(1) * in.u16());
  if (how == 1) w.now = w.now.after(nanoseconds(100) * in.u8());
  Time next = std::min(w.hosts[0].device.next_deadline(), w.hosts[1].device.next_deadline());
  if (how >= 2 && next != kNever) w.now = std::max(w.now, next);
  for (Host& h : w.hosts) {
    h.device.on_timer(w.now, how == 1 && in.below(8) == 0 ? Duration{} : kForever);
  }
}

void step(World& w, Input& in) {
  const std::uint32_t what = in.below(32);
  Host& h = w.hosts[what & 1U];
  switch (what / 2) {
    case 0:
      create(w, h, in);
      break;
    case 1:
      connect(w, in);
      break;
    case 2:
      in.below(4) == 0 ? destroy(h, in) : modify(w, h, in);
      break;
    case 3:
      in.flag() ? add_region(h, in, in.u16() % 9000U, in.u8() & kAllRights) : remove_region(h, in);
      break;
    case 4:
      in.flag() ? window(h, in) : queues(h, in);
      break;
    case 5:
    case 6:
      post_send(w, h, in);
      break;
    case 7:
      post_receive(h, in);
      break;
    case 8:
    case 9:
      send(w, h, in);
      break;
    case 10:
      w.carry(h, h.device.poll_control(w.now));
      break;
    case 11:
    case 12:
      deliver(w, h, in);
      break;
    case 13:
      attack(w, h, in);
      break;
    case 14:
      pass_time(w, in);
      break;
    default: {
      const CqId cq = any_of(h.cqs, in, CqId{});
      if (in.below(4) == 0) static_cast<void>(h.device.request_notify(cq, in.flag()));
      h.poll(cq);
      for (DeviceEvent e; h.device.poll_event(e);) {
      }
      if (in.below(16) == 0 && !h.regions.empty()) h.regions.begin()->second.faulty ^= true;
    }
  }
  for (const Host& each : w.hosts) each.device.check_invariants();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in({data, size});
  World w(in);
  // Every run begins with one pair of connected queue pairs, so that few bytes already move data.
  for (Host& h : w.hosts) {
    add_region(h, in, 8000, kAllRights);
    QpInit init;
    init.pd = h.pds[0];
    init.send_cq = init.recv_cq = h.cqs[0];
    init.caps = {8, 8, 2, 2, 64};
    h.queues.push_back({*h.device.create_qp(init), init});
  }
  connect(w, in);
  for (int steps = 0; steps < 300 && !in.empty(); ++steps) step(w, in);
  for (Host& h : w.hosts) h.finish();
  return 0;
}
