// The live receive path, from a datagram to the program's memory. Two hosts with the engine's own Nic,
// Context, Shard and Device, and a byte string that plays their programs, the network, the clock, and an
// attacker that has seen packets and knows every key: it repeats, alters, cuts, joins and makes up frames,
// seals them with the right ICRC or a wrong one, and gives them an address, a group and an IP header of its
// choice. They come in by a wire of the test, and in every fourth input also through the kernel and through a
// ring of shared memory, whose bytes the attacker may write (live_doors.h).
//
// What must hold (live_memory.h, live_host.h): no byte changes that no right and no request had opened;
// completions are of what was posted, once and in order; an error leaves its queue pair in ERR; invariants
// hold after every step. In the end the network is good again: then whatever was sent completes in bounded
// time, a new pair of queue pairs carries a message both ways, and what was posted to a queue pair that fails
// is flushed.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/live_coverage.h"
#include "tests/fuzz/live_network.h"

namespace {

using namespace weft;
using fuzz::Block;
using fuzz::Host;
using fuzz::Input;
using fuzz::Queue;
using fuzz::World;

constexpr int kMostSteps = 200;
constexpr int kMostRounds = 3000;  // until everything has completed
constexpr std::int64_t kStart = 1'000'000'000'000'000;
constexpr std::size_t kMostQueues = 14;  // there is room for the last pair

fuzz::Doors* doors = nullptr;

Queue& any_queue(Host& h, Input& in) { return *h.queues[in.u8() % h.queues.size()]; }

// One byte tells them; zero is what most programs ask for.
QpAttr attributes(const World& w, Qpn peer, std::uint8_t how) {
  QpAttr a;
  a.mode = w.mode;
  a.mtu = 256U << (how & 1U);
  a.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  if ((how & 2U) != 0) a.access = static_cast<std::uint8_t>(how >> 4U) & a.access;
  a.qkey = fuzz::kQkey;
  a.dest_qpn = peer;
  a.rq_psn = a.sq_psn = {fuzz::kFirstPsn};
  a.max_rd_atomic = a.max_dest_rd_atomic = static_cast<std::uint8_t>((how & 4U) != 0 ? 1 : 4);
  a.min_rnr_timer = 1;
  a.timeout = 8;  // 1 ms
  a.retry_count = a.rnr_retry = static_cast<std::uint8_t>((how & 8U) != 0 ? 0 : 3);
  return a;
}

// A queue pair on either host, each other's peer.
void add_pair(World& w, QpType type, bool draws, Input& in) {
  if (w.host(0).queues.size() >= kMostQueues || w.host(1).queues.size() >= kMostQueues) return;
  Queue* const a = w.host(0).create(type, draws);
  Queue* const b = w.host(1).create(type, draws);
  if (a == nullptr || b == nullptr) return;
  const std::uint8_t how = in.u8();
  w.host(0).climb(*a, attributes(w, b->qpn, how), w.address(w.host(1)));
  w.host(1).climb(*b, attributes(w, a->qpn, how), w.address(w.host(0)));
}

void begin(World& w, Input& in) {
  add_pair(w, QpType::kRc, false, in);
  add_pair(w, QpType::kRc, true, in);
  add_pair(w, QpType::kUd, false, in);
  if (in.flag()) add_pair(w, QpType::kUc, false, in);
  for (std::size_t i = 0; i < 2; ++i) {
    Host& h = w.host(i);
    const auto ah = h.context->create_ah(h.pd, {.peer = w.address(w.other(h))});
    if (ah) h.handles.push_back(*ah);
    const auto group = h.context->create_ah(h.pd, {.peer = fuzz::kGroup});
    if (group && !w.v6) h.handles.push_back(*group);
    static_cast<void>(h.context->attach(h.queues[2]->qp, fuzz::kGroup));
  }
}

// --- the programs --------------------------------------------------------------------------------

Sge any_sge(Host& h, Input& in, bool within) {
  const Block& b = h.block(in.below(Host::kBlocks));
  Sge s;
  s.length = in.u16() % 1500U;
  s.lkey = in.below(16) == 1 ? Key{in.u32()} : b.mr.lkey;
  s.address = fuzz::any_address(b, s.length, in);
  if (!within) return s;
  // What leaves inline is read when it is posted, wherever the program says, so there it says what is true.
  static constexpr std::uint8_t kInline[40] = {};
  s.length %= sizeof kInline;
  s.address = reinterpret_cast<std::uint64_t>(kInline);
  return s;
}

void post_send(World& w, Host& h, Input& in) {
  Queue& q = any_queue(h, in);
  Host& peer = w.other(h);
  SendWr wr;
  wr.opcode = static_cast<WrOpcode>(in.below(10));
  wr.flags = in.below(4) == 1 ? in.u8() & 15U : std::uint8_t{kSendSignaled};
  Sge sges[3];
  const std::size_t n = in.below(4);
  for (std::size_t i = 0; i < n; ++i) sges[i] = any_sge(h, in, (wr.flags & kSendInline) != 0);
  const bool atomic = wr.opcode == WrOpcode::kCompareSwap || wr.opcode == WrOpcode::kFetchAdd;
  if (atomic && n == 1) sges[0].length = 8;
  wr.sges = {sges, n};
  const Block& remote = peer.block(in.below(Host::kBlocks));
  wr.remote_address = fuzz::any_address(remote, atomic ? 8 : 600, in);
  wr.rkey = remote.mr.rkey;
  wr.imm = in.below(8) == 1 ? peer.block(in.u8()).mr.rkey.v : in.u8();
  wr.compare_or_add = in.u8();
  if (wr.opcode == WrOpcode::kBindWindow) return;  // the device target binds windows
  if (q.type == QpType::kUd) {
    if (in.below(8) != 1) wr.opcode = in.flag() ? WrOpcode::kSend : WrOpcode::kSendImm;
    wr.ah = fuzz::any_of(h.handles, in, AhId{});
    wr.remote_qpn = in.below(4) == 1 ? fuzz::any_qpn(peer, in) : peer.queues[2]->qpn;
    wr.remote_qkey = in.below(8) == 1 ? in.u32() : fuzz::kQkey;
  }
  h.post_send(q, wr);
}

void post_receive(Host& h, Input& in) {
  Sge sges[3];
  const std::size_t n = in.below(4);
  for (std::size_t i = 0; i < n; ++i) {
    sges[i] = any_sge(h, in, false);
    if (in.below(4) == 1) continue;  // most lie where they may
    const Block& b = h.block(Host::kLocal);
    sges[i].lkey = b.mr.lkey;
    sges[i].address = fuzz::any_address(b, sges[i].length, in);
  }
  h.post_receive(in.below(4) == 1 ? nullptr : &any_queue(h, in), {0, {sges, n}});
}

void change(World& w, Host& h, Input& in) {
  Queue& q = any_queue(h, in);
  switch (in.below(8)) {
    case 0:
      h.fail(q);
      break;
    case 1:
      h.reset(q);
      if (q.qp != nullptr) h.climb(q, q.attr, w.address(w.other(h)));
      break;
    case 2:
      h.destroy(q);
      break;
    case 3:
      add_pair(w, in.flag() ? QpType::kRc : QpType::kUc, in.flag(), in);
      break;
    case 4: {
      Block& b = h.block(in.u8());
      if (b.registered && h.context->deregister_mr(b.mr.lkey)) b.forbid();
      break;
    }
    case 5:
      if (q.qp != nullptr) {
        static_cast<void>(in.flag() ? h.context->attach(q.qp, fuzz::kGroup)
                                    : h.context->detach(q.qp, fuzz::kGroup));
      }
      break;
    case 6: {
      const live::Owned owned(h.nic->ownership());
      static_cast<void>(h.nic->shard().services().discovery().look_up(
          w.now(), w.address(h), w.address(w.other(h)), fuzz::any_qpn(w.other(h), in)));
      break;
    }
    default:
      if (h.wire->doors() != nullptr && in.below(4) != 0) return fuzz::lie(*h.wire->doors(), in);
      h.wire->next = static_cast<live::SendStatus>(in.below(4));
      h.wire->together = 1U + in.below(4);
  }
}

void connections(World& w, Host& h, Input& in) {
  fuzz::Party& p = *w.parties[w.index(h)];
  const std::uint32_t how = in.below(8);
  const bool room = h.queues.size() < kMostQueues;
  if (how == 0 && room) return p.connect(w.address(h), w.address(w.other(h)));
  if (how == 1) return p.resolve(w.address(h), w.address(w.other(h)));
  if (room) p.act(in);
}

void attack(World& w, Host& h, Input& in) {
  const bool alone = h.wire->nothing_waits() && !h.nic->shard().has_to_send();
  const bool harmless = fuzz::forge(w, h, in);
  h.memory.frozen = harmless && alone;
  h.poll();
  h.memory.check();
  h.memory.frozen = false;
}

void pass_time(World& w, Input& in) {
  const std::uint32_t how = in.below(4);
  if (how == 0) fuzz::virtual_ns += 1000 * std::int64_t{in.u16()};
  if (how == 1) fuzz::virtual_ns += 100 * std::int64_t{in.u8()};
  const Time next = std::min(w.host(0).next_deadline(), w.host(1).next_deadline());
  if (how >= 2 && next != kNever) w.wait_until(next);
}

void step(World& w, Input& in) {
  const std::uint32_t what = in.below(32);
  Host& h = w.host(what);
  switch (what / 2) {
    case 0:
    case 1:
    case 2:
      post_send(w, h, in);
      break;
    case 3:
      post_receive(h, in);
      break;
    case 4:
      change(w, h, in);
      break;
    case 5:
      connections(w, h, in);
      break;
    case 6:
      pass_time(w, in);
      break;
    case 7:
    case 8:
    case 9:
    case 10:
      attack(w, w.host(what < 20 ? 0 : 1), in);
      break;
    case 11:
      h.step();
      break;
    case 12:
      h.poll();
      break;
    case 13:
      fuzz::carry_well(w, h);
      w.other(h).poll();
      break;
    default:
      fuzz::carry(w, h, in);
      w.other(h).poll();
  }
  for (const auto& each : w.hosts) each->judge();
}

// --- the end -------------------------------------------------------------------------------------

// The network is good, and time passes, until nothing is awaited.
void settle(World& w) {
  for (const auto& h : w.hosts) h->wire->next = live::SendStatus::kSent;
  for (int round = 0;; ++round) {
    CHECK_OP(round, <, kMostRounds);
    bool moved = false;
    for (const auto& h : w.hosts) {
      moved = h->step() || moved;
      moved = h->poll() || moved;
    }
    for (const auto& h : w.hosts) {
      moved = moved || !h->wire->sent.empty();
      fuzz::carry_well(w, *h);
    }
    if (moved) continue;
    if (!w.host(0).waits() && !w.host(1).waits()) break;
    const Time next = std::min(w.host(0).next_deadline(), w.host(1).next_deadline());
    CHECK(next != kNever);
    w.wait_until(next);
  }
  for (const auto& h : w.hosts) h->judge();
}

// The train that left last goes on behind a message to queue pair 1, in one train with it: what is for the
// host's services is taken out of the middle of a batch.
void put_behind_a_question(const World& w, Host& from, const Host& to) {
  if (from.wire->sent.empty()) return;
  fuzz::Sent& last = from.wire->sent.back();
  wire::Mad question;
  encode(wire::Capability{.modes = wire::kAllModes}, question);
  fuzz::Bytes bytes = fuzz::mad_frame(question, 0);
  fuzz::seal(bytes, w.address(from), w.address(to), fuzz::kPort, 0);
  if (last.destination != w.address(to) || last.bytes.size() != last.frame_size ||
      last.frame_size > bytes.size())
    return;
  last.frame_size = static_cast<std::uint32_t>(bytes.size());
  bytes.insert(bytes.end(), last.bytes.begin(), last.bytes.end());
  last.bytes = std::move(bytes);
}

// Whatever happened: who connects now is served.
void greet(World& w, Host& from, Queue& by, Host& to, Queue& at) {
  static constexpr char kGreeting[] = "a message of more than one packet is not what this has to be";
  Host* const ends[] = {&from, &to};
  Sge places[2];
  for (int i = 0; i < 2; ++i) {
    Block& b = *ends[i]->memory.blocks.back();
    places[i] = {b.address(0), sizeof kGreeting, b.mr.lkey};
  }
  std::uint8_t* const there = to.memory.blocks.back()->data();
  std::memcpy(from.memory.blocks.back()->data(), kGreeting, sizeof kGreeting);
  CHECK(to.post_receive(&at, {0, {&places[1], 1}}));
  const std::uint64_t receive = to.last_id();
  SendWr wr;
  wr.flags = kSendSignaled;
  wr.sges = {&places[0], 1};
  CHECK(from.post_send(by, wr));
  put_behind_a_question(w, from, to);
  settle(w);
  CHECK(from.state(by) == QpState::kRts);
  CHECK(!to.is_posted(receive));
  CHECK(std::memcmp(there, kGreeting, sizeof kGreeting) == 0);
}

void finish(World& w) {
  Queue* pair[2];
  for (std::size_t i = 0; i < 2; ++i) {
    Host& h = w.host(i);
    h.add_block(64, kLocalWrite, 0);
    h.memory.blocks.back()->to_network = true;  // the program writes into it
    pair[i] = h.create(QpType::kRc, false);
    CHECK(pair[i] != nullptr);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    QpAttr a = attributes(w, pair[i ^ 1U]->qpn, 0);
    a.retry_count = a.rnr_retry = 6;
    CHECK(w.host(i).climb(*pair[i], a, w.address(w.host(i ^ 1U))));
  }
  greet(w, w.host(1), *pair[1], w.host(0), *pair[0]);
  greet(w, w.host(0), *pair[0], w.host(1), *pair[1]);
  for (const auto& h : w.hosts) {
    for (const auto& q : h->queues) h->fail(*q);
  }
  settle(w);
  for (const auto& h : w.hosts) {
    while (h->poll()) {
    }
    h->check_flushed();
    for (const auto& q : h->queues) h->destroy(*q);
    CHECK_OP(h->nic->device().loss_blocks_in_use(), ==, 0U);
    h->judge();
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  setenv("WEFT_STAT", "0", 1);  // no page of statistics for each input
  // libFuzzer weighs inputs by how rare their features are, and with as many features as this target has that
  // takes more than half of its time. What is asked for comes later, so it counts.
  static char plain_weights[] = "-entropic=0";
  static std::vector<char*> all;
  all.assign(*arguments, *arguments + *count);
  all.insert(all.begin() + 1, plain_weights);
  *count = static_cast<int>(all.size());
  all.push_back(nullptr);
  *arguments = all.data();
  doors = fuzz::Doors::open();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::virtual_ns = kStart;
  fuzz::Coverage coverage;
  {
    Input in({data, size});
    World w(in, doors);
    begin(w, in);
    fuzz::Coverage::begin();
    for (int steps = 0; steps < kMostSteps && !in.empty(); ++steps) step(w, in);
    settle(w);
    coverage.keep();
    finish(w);
  }
  coverage.put_back();
  fuzz::virtual_ns = fuzz::kSystemClock;
  return 0;
}
