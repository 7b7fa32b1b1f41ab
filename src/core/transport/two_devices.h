// For tests: two Devices side by side, a wire between them that the test can cut, and memory that really
// holds bytes. Time moves only when nothing is left to carry, to the next deadline.
//
// Smaller than pair/: no referee, no random worlds. One connected queue pair each side to begin with.
#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/transport/device.h"
#include "core/verbs/ladder.h"

namespace weft {

struct Side {
  struct Frame {
    wire::RxPacket packet;
    std::vector<std::uint8_t> payload;
  };
  struct Copier {
    Side& side;
    const std::vector<std::uint8_t>* payload;
    bool place(const Placement& p) {
      std::copy_n(payload->begin() + p.payload_offset, p.length,
                  side.memory.at(p.region.v).begin() + static_cast<std::ptrdiff_t>(p.offset));
      return true;
    }
    bool place_value(const ValuePlacement& v) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(&v.value) + v.value_offset;
      std::copy_n(bytes, v.length,
                  side.memory.at(v.region.v).begin() + static_cast<std::ptrdiff_t>(v.offset));
      return true;
    }
    AtomicResult execute(const AtomicRequest& a) {
      if (side.atomics_fail) return {};
      ++side.atomics_executed;
      const std::uint64_t old = side.word(a.region, a.offset);
      if (!a.compare_swap) side.set_word(a.region, a.offset, old + a.swap_or_add);
      if (a.compare_swap && old == a.compare) side.set_word(a.region, a.offset, a.swap_or_add);
      return {true, old};
    }
  };

  explicit Side(std::uint8_t n, const DeviceConfig& config)
      : device(at_home(config, n)), address(device.config().address) {
    pd = *device.alloc_pd();
    cq = *device.create_cq(1024);
    mr = region(4096 * 16, kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kMwBind);
  }

  static DeviceConfig at_home(DeviceConfig c, std::uint8_t n) {
    c.address = wire::Address::v4(10, 0, 0, n);
    return c;
  }
  static constexpr std::uint64_t kBase = 0x10000;
  static constexpr std::uint32_t kInline = 64;
  MrInfo region(std::uint32_t bytes, std::uint8_t access) {
    const MrInfo info = *device.register_mr(pd, kBase, bytes, access);
    memory[info.region.v].resize(bytes);
    return info;
  }
  std::uint64_t word(RegionId r, std::uint64_t offset) {
    std::uint64_t v = 0;
    std::memcpy(&v, memory.at(r.v).data() + offset, sizeof v);
    return v;
  }
  void set_word(RegionId r, std::uint64_t offset, std::uint64_t v) {
    std::memcpy(memory.at(r.v).data() + offset, &v, sizeof v);
  }
  std::vector<std::uint8_t>& bytes() { return memory.at(mr.region.v); }
  std::vector<Completion> completions() {
    std::vector<Completion> got(64);
    got.resize(device.poll_cq(cq, got));
    return got;
  }
  std::vector<WcStatus> statuses() {
    std::vector<WcStatus> got;
    for (const Completion& c : completions()) got.push_back(c.status);
    return got;
  }
  std::vector<DeviceEvent> events() {
    std::vector<DeviceEvent> got;
    for (DeviceEvent e; device.poll_event(e);) {
      if (e.kind != DeviceEventKind::kCommEstablished) got.push_back(e);
    }
    return got;
  }
  Qpn create(SrqId srq = kNoSrq, QpType type = QpType::kRc) {
    QpInit init;
    init.type = type;
    init.pd = pd;
    init.send_cq = init.recv_cq = cq;
    init.caps = {64, 64, 4, 4, kInline};
    init.srq = srq;
    const Qpn q = *device.create_qp(init);
    inlined[q.v].resize(std::size_t{64} * kInline);
    return q;
  }
  // The next step of the ladder.
  Outcome<void> step(Qpn q, QpAttr t, const LadderStep& s) {
    t.state = s.state;
    return device.modify_qp(q, t, s.mask, {});
  }
  // To a state, or to none if the mask is not that step's.
  bool step(Qpn q, QpAttr t, QpState to, std::uint32_t mask) {
    t.state = to;
    return device.modify_qp(q, t, mask | kAttrState, {}).has_value();
  }
  // A receive that its key does not allow to be written.
  void receive_nowhere(Qpn q, std::uint64_t id) {
    const Sge wrong{kBase, 2048, {mr.lkey.v ^ 1U}};
    CHECK(device.post_recv(q, {id, {&wrong, 1}}));
  }
  // Posts, and keeps the bytes of an inline request as a world must.
  Outcome<std::uint32_t> post(Qpn q, const SendWr& w) {
    const auto slot = device.post_send(q, w);
    if (!slot || (w.flags & kSendInline) == 0) return slot;
    auto to = inlined.at(q.v).begin() + static_cast<std::ptrdiff_t>(std::size_t{*slot} * kInline);
    for (const Sge& s : w.sges)
      to = std::copy_n(bytes().begin() + static_cast<std::ptrdiff_t>(s.address - kBase), s.length, to);
    return slot;
  }
  void collect(const wire::Burst& burst, std::vector<Frame>& out) {
    for (const wire::TxPacket& p : burst.packets) {
      Frame f;
      f.packet.header = p.header;
      f.packet.source = address;
      f.packet.payload = p.payload;
      for (std::uint32_t i = 0; i < p.segment_count; ++i) {
        const wire::Segment& s = burst.segments[p.first_segment + i];
        const auto& memory_of =
            s.region == wire::kInlineRegion ? inlined.at(burst.qpn.v) : memory.at(s.region.v);
        const auto from = memory_of.begin() + static_cast<std::ptrdiff_t>(s.offset);
        f.payload.insert(f.payload.end(), from, from + s.length);
      }
      out.push_back(std::move(f));
    }
  }

  Device device;
  wire::Address address;
  PdId pd{};
  CqId cq{};
  MrInfo mr;
  AhId handle{};                                               // UD, to the other side
  std::map<std::uint32_t, std::vector<std::uint8_t>> memory;   // by region
  std::map<std::uint32_t, std::vector<std::uint8_t>> inlined;  // by queue pair
  int atomics_executed = 0;
  bool atomics_fail = false;  // their memory is gone
};

// Sees every packet that is not lost, and may change its header.
struct Onlooker {
  virtual ~Onlooker() = default;
  virtual void arrives(wire::Header&) {}
  virtual void arrived() {}
};

class TwoDevices {
 public:
  explicit TwoDevices(wire::Mode m, const DeviceConfig& config = DeviceConfig{}, QpType t = QpType::kRc)
      : a(1, config), b(2, config), mode(m), mode_of_b(m), type(t) {
    qa = a.create(kNoSrq, type);
    qb = b.create(kNoSrq, type);
    connect(qa, qb);
    if (type == QpType::kUd) to_b = *a.device.create_ah(a.pd, *a.device.open_path({b.address}));
  }

  void connect(Qpn x, Qpn y) {
    connect_one(a, x, b, y);
    connect_one(b, y, a, x);
  }

  SendWr request(WrOpcode opcode, std::uint64_t offset, std::uint32_t length, std::uint64_t remote,
                 std::uint8_t flags = kSendSignaled) {
    sges_.push_back({Side::kBase + offset, length, a.mr.lkey});
    SendWr w;
    w.wr_id = next_id++;
    w.opcode = opcode;
    w.flags = flags;
    w.sges = {&sges_.back(), 1};
    w.remote_address = Side::kBase + remote;
    w.rkey = b.mr.rkey;
    w.ah = to_b;
    w.remote_qpn = qb;
    w.remote_qkey = kQkey;
    return w;
  }
  void post(const SendWr& w) { CHECK(a.post(qa, w)); }
  RecvWr receive(Side& s, std::uint64_t offset, std::uint32_t length, std::uint64_t id) {
    sges_.push_back({Side::kBase + offset, length, s.mr.lkey});
    return {id, {&sges_.back(), 1}};
  }

  // Carries packets until neither side has any, then fires timers; until nothing is due before `limit`.
  void run(Duration limit = milliseconds(2000)) {
    const Time end = now.after(limit);
    for (int turns = 0; turns < 100'000; ++turns) {
      if (turn() || release()) continue;
      const Time next = std::min(a.device.next_deadline(), b.device.next_deadline());
      if (next > end) break;
      now = std::max(now, next);
      a.device.on_timer(now);
      b.device.on_timer(now);
    }
    a.device.check_invariants();
    b.device.check_invariants();
  }
  // One burst from each side.
  bool turn() {
    now = now.after(microseconds(1));
    const bool x = carry(a, b);
    const bool y = carry(b, a);
    return x || y;
  }

  Side a;
  Side b;
  // What is ready to leave, taken off the wire; and what arrives, by hand.
  std::vector<Side::Frame> intercept(Side& from) {
    std::vector<Side::Frame> frames;
    for (std::size_t before = SIZE_MAX; frames.size() != before;) {
      before = frames.size();
      from.collect(from.device.poll_transmit(now, {}), frames);
    }
    return frames;
  }
  void deliver(Side& to, Side::Frame f) {
    if (onlooker != nullptr) onlooker->arrives(f.packet.header);
    Side::Copier sink{to, &f.payload};
    if (mark_all && !f.payload.empty()) f.packet.tos = wire::kEcnCe;
    to.device.on_packets(now, {&f.packet, 1}, sink);
    if (onlooker != nullptr) onlooker->arrived();
  }

  wire::Mode mode;
  wire::Mode mode_of_b;  // of what b sends on queue pairs connected from now on
  QpType type;
  Qpn qa{};
  Qpn qb{};
  AhId to_b{};
  static constexpr std::uint32_t kQkey = 0x1234;
  Time now{};
  std::uint64_t next_id = 0;
  std::uint8_t timeout = 0;        // of queue pairs connected from now on; 0: as their mode needs
  std::uint8_t retry_count = 7;    // likewise
  std::uint8_t rnr_retry = 7;      // of queue pairs connected from now on
  std::uint8_t service_level = 0;  // likewise
  int sent = 0;                    // packets, by both sides
  bool mark_all = false;           // the network marks everything that carries bytes
  int lose_packet = 0;             // this one, counted from 1; 0 loses none
  std::uint64_t lose_pattern = 0;  // bit i: the packet after i others
  std::uint64_t copy_pattern = 0;  // likewise: this one arrives twice
  int late_packet = 0;             // this one, counted from 1, arrives only after `late_by` others
  int late_by = 0;
  Onlooker* onlooker = nullptr;

 private:
  void connect_one(Side& s, Qpn q, Side& peer, Qpn remote) {
    QpAttr t;
    t.qkey = kQkey;
    t.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    t.path = *s.device.open_path({peer.address});
    t.service_level = service_level;
    t.mtu = 256;
    t.dest_qpn = remote;
    t.rq_psn = t.sq_psn = {0xFFFFFE};  // wraps at once
    t.max_rd_atomic = t.max_dest_rd_atomic = 4;
    t.mode = &s == &a ? mode : mode_of_b;
    t.timeout = timeout != 0                  ? timeout
                : t.mode == wire::Mode::kRoce ? 8
                                              : 12;  // longer than irn's own back-off
    t.retry_count = retry_count;
    t.rnr_retry = rnr_retry;
    CHECK(climb(type, t, [&](const QpAttr& at, std::uint32_t mask) {
      return s.device.modify_qp(q, at, mask, now).has_value();
    }));
  }
  bool carry(Side& from, Side& to) {
    std::vector<Side::Frame> frames;
    from.collect(from.device.poll_transmit(now, {}), frames);
    from.collect(from.device.poll_control(now), frames);
    const bool any = !frames.empty();
    for (Side::Frame& f : frames) {
      const int index = sent++;
      if (sent == lose_packet || (index < 64 && (lose_pattern >> index & 1U) != 0)) continue;
      if (sent == late_packet && late_by > 0) {
        late_ = std::move(f);
        held_for_ = &to;
        late_left_ = late_by;
        continue;
      }
      deliver(to, f);
      if (index < 64 && (copy_pattern >> index & 1U) != 0) deliver(to, f);
      if (held_for_ != nullptr && --late_left_ == 0) release();
    }
    return any;
  }
  // The late packet arrives; also when nothing else moves any more.
  bool release() {
    if (held_for_ == nullptr) return false;
    Side& to = *std::exchange(held_for_, nullptr);
    deliver(to, late_);
    return true;
  }

  std::deque<Sge> sges_;
  Side::Frame late_;
  Side* held_for_ = nullptr;
  int late_left_ = 0;
};

}  // namespace weft
