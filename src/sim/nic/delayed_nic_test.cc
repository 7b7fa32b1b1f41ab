// The contract of device.h carries a NIC whose every look-up of a queue pair takes time. This
// model is thrown away after the test: one context memory, one access at a time, each costing `kAccess`. It
// knows which queue pair the next call will touch before it calls: from the packet, from pick, from
// peek_control and from peek_timer.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "sim/nic/endpoint.h"
#include "sim/nic/ideal_nic.h"

namespace weft::sim {
namespace {

constexpr Duration kAccess = nanoseconds(300);

class DelayedNic final : public Nic {
 public:
  DelayedNic(Exchange& exchange, Fabric& fabric, HostId host, const DeviceConfig& config, Port& egress,
             PacketMarking marking, NicObserver* observer)
      : Nic(exchange, fabric, host, config, egress, marking, observer),
        access_actor_(fabric.timeline.add<&DelayedNic::on_access_done>(*this)),
        idle_actor_(fabric.timeline.add<&DelayedNic::on_wake>(*this)) {}

  void attach(Network& network) override { network.attach<&DelayedNic::arrive>(host().v, *this); }
  void arrive(const Transit& t, std::uint32_t /*link*/) {
    arrived_.push_back(t);
    next();
  }
  Outcome<void> take(Qpn qpn, const SendWr& wr) override {
    if (const auto slot = device().post_send(qpn, wr); !slot) return fail(slot.error());
    return {};
  }
  Posted post_recv(Qpn, std::span<const RecvWr>) override { return {0, fail(Errc::kUnsupported)}; }
  void ring() override { next(); }
  std::uint32_t poll(CqId cq, std::span<Completion> out) override { return device().poll_cq(cq, out); }
  const std::map<std::uint32_t, int>& accesses() const { return accesses_; }

 private:
  enum class Job { kNone, kArrival, kTimer, kControl, kTransmit };

  void begin(Job job, Qpn qpn) {
    job_ = job;
    qpn_ = qpn;
    ++accesses_[qpn.v];
    endpoint_.fabric().timeline.wake(access_actor_, endpoint_.now() + kAccess);
  }
  // Begins the look-up of the most urgent job. With no job it waits for the next time-out.
  void next() {
    if (job_ != Job::kNone) return;
    const Time now = endpoint_.now();
    if (!arrived_.empty())
      return begin(Job::kArrival, endpoint_.fabric().packets.at(arrived_.front().packet).rx.header.dest_qp);
    if (const Qpn q = device().peek_timer(now); q != kNoQpn) return begin(Job::kTimer, q);
    if (const Qpn q = device().peek_control(); q != kNoQpn) return begin(Job::kControl, q);
    if (const Qpn q = device().pick(now); q != kNoQpn) return begin(Job::kTransmit, q);
    if (const Time due = device().next_deadline(); due != kNever)
      endpoint_.fabric().timeline.wake(idle_actor_, std::max(due, now));
  }
  void on_wake(Time) { next(); }
  void on_access_done(Time now) {
    const Job job = job_;
    job_ = Job::kNone;
    switch (job) {
      case Job::kArrival: {
        const Transit t = arrived_.front();
        arrived_.pop_front();
        endpoint_.deliver(t);
        break;
      }
      case Job::kTimer:
        device().fire_timer(now);
        break;
      case Job::kControl: {
        const wire::Burst burst = device().poll_control(now);
        // The look-up was for the right queue pair, unless its entry has become void meanwhile.
        if (!burst.empty()) {
          EXPECT_EQ(burst.qpn, qpn_);
        }
        endpoint_.emit(burst);
        break;
      }
      case Job::kTransmit:
        endpoint_.emit(device().transmit(qpn_, now, {1, 65000}));
        break;
      case Job::kNone:
        break;
    }
    next();
    endpoint_.progressed();
  }

  ActorId access_actor_;
  ActorId idle_actor_;
  std::deque<Transit> arrived_;
  Job job_ = Job::kNone;
  Qpn qpn_ = kNoQpn;
  std::map<std::uint32_t, int> accesses_;
};

// Host 0 writes, host 1 does nothing; completions are counted.
struct Writer final : NicObserver {
  void progressed(HostId host, Time now) override {
    if (host.v != 0) return;
    Completion got[8];
    for (std::uint32_t n = nic->poll(cq, got); n != 0; n = nic->poll(cq, got)) {
      for (std::uint32_t i = 0; i < n; ++i) failed += got[i].status == WcStatus::kSuccess ? 0 : 1;
      completed += static_cast<int>(n);
      finished = now;
    }
  }
  void placed(HostId, const Placement& p, const wire::Header&, std::span<const std::uint8_t>, Time) override {
    bytes += p.length;
  }
  Nic* nic = nullptr;
  CqId cq{};
  int completed = 0;
  int failed = 0;
  std::uint64_t bytes = 0;
  Time finished{};
};

constexpr int kMessages = 50;
constexpr std::uint32_t kLength = 5000;

struct Outcomes {
  Writer writer;
  std::map<std::uint32_t, int> accesses;
};

void post_all(Exchange& exchange, Nic& nic0, Nic& nic1, Writer& writer, wire::Mode mode) {
  Nic* nics[2] = {&nic0, &nic1};
  PortMemory memory[2];
  ConnectEnd ends[2];
  for (int h = 0; h < 2; ++h) {
    const CqId cq = *nics[h]->create_cq(256);
    if (h == 0) writer.cq = cq;
    memory[h] = *nics[h]->allocate(kLength, kLocalWrite | kRemoteWrite, MemoryKind::kCounted);
    ends[h].address = nics[h]->address();
    ends[h].qpn = *nics[h]->create_qp({cq, cq, {64, 1, 1, 1, 0}, false});
    ends[h].terms.mode = mode;
    ends[h].terms.timeout = 8;
  }
  writer.nic = nics[0];
  ASSERT_TRUE(exchange.join(nic0, ends[0], nic1, ends[1]));
  const Sge piece{memory[0].address, kLength, memory[0].lkey};
  for (int i = 0; i < kMessages; ++i) {
    SendWr w;
    w.sges = {&piece, 1};
    w.opcode = WrOpcode::kWrite;
    w.flags = kSendSignaled;
    w.remote_address = memory[1].address;
    w.rkey = memory[1].rkey;
    ASSERT_TRUE(nic0.post_send(ends[0].qpn, {&w, 1}).refused);
  }
  nic0.ring();
}

template <class Model>
Writer run(wire::Mode mode, std::uint32_t loss, std::map<std::uint32_t, int>* accesses) {
  Fabric fabric;
  Exchange exchange;
  Writer writer;
  PortConfig link{gigabits(100), microseconds(1), {}, {}, 1};
  link.impair.loss = loss;
  Port out0(fabric, link, Prng(1));
  Port out1(fabric, link, Prng(2));
  DeviceConfig config;
  config.max_qp = 8;
  Model nic0(exchange, fabric, {0}, config, out0, Framing::kWire, &writer);
  Model nic1(exchange, fabric, {1}, config, out1, Framing::kWire, &writer);
  out0.connect<&Model::arrive>(nic1, 0);
  out1.connect<&Model::arrive>(nic0, 0);
  post_all(exchange, nic0, nic1, writer, mode);
  fabric.timeline.run(Time{} + seconds(2), 10'000'000);
  EXPECT_EQ(fabric.packets.in_use(), 0U);
  if constexpr (std::is_same_v<Model, DelayedNic>) {
    if (accesses != nullptr) *accesses = nic0.accesses();
  }
  return writer;
}

TEST(DelayedNic, EveryLookUpMayTakeTime) {
  for (const wire::Mode mode : {wire::Mode::kRoce, wire::Mode::kIrn}) {
    for (const std::uint32_t loss : {0U, 30'000U}) {
      SCOPED_TRACE(std::string(mode == wire::Mode::kRoce ? "roce" : "irn") + " loss " + std::to_string(loss));
      std::map<std::uint32_t, int> accesses;
      const Writer slow = run<DelayedNic>(mode, loss, &accesses);
      const Writer fast = run<IdealNic>(mode, loss, nullptr);
      for (const Writer* w : {&slow, &fast}) {
        EXPECT_EQ(w->completed, kMessages);
        EXPECT_EQ(w->failed, 0);
      }
      EXPECT_GE(slow.bytes, std::uint64_t{kMessages} * kLength);
      // 250 packets out and as many ACKs in, each after a look-up of 300 ns.
      EXPECT_GT(slow.finished.ps, 2 * 250 * kAccess.ps);
      if (loss == 0) {
        EXPECT_LT(fast.finished, slow.finished);
      }
      EXPECT_EQ(accesses.size(), 1U) << "a look-up of a queue pair that does not exist";
    }
  }
}

}  // namespace
}  // namespace weft::sim
