// The simulated side: IdealNics on links of the fabric (sim/nic/ideal_nic.h), and the services of their hosts
// (sim/nic/services.h) on links of their own.
#include <algorithm>
#include <memory>

#include "sim/nic/ideal_nic.h"
#include "sim/nic/services.h"
#include "tests/differential/worlds.h"
#include "trace/text.h"

namespace weft::differential {
namespace {

// What the header is once its packet has been bytes: fields that its layout does not carry are zero.
wire::Header as_sent(const wire::Header& h, std::uint32_t payload) {
  std::array<std::uint8_t, wire::kMaxHeaderBytes + 4096 + 8> bytes{};
  std::size_t n = wire::encode(h, payload, bytes);
  n += payload + wire::pad_bytes(payload) + wire::kIcrcBytes;
  wire::Decoded d;
  wire::DecodeError error{};
  CHECK(wire::decode({bytes.data(), n}, d, error));
  return d.header;
}

class SimulatedHost final : public Host {
 public:
  SimulatedHost(Exchange& exchange, sim::Fabric& fabric, std::uint32_t n, const WorldPlan& plan,
                sim::NicObserver& observer)
      : fabric_(fabric),
        out_(fabric, link(plan, Lane::kDevice), Prng(plan.seed).fork(n)),
        services_out_(fabric, link(plan, Lane::kServices), Prng(plan.seed).fork(2 + n)),
        nic_(exchange, fabric, {n}, plan.devices[n], out_, sim::Framing::kWire, &observer,
             sim::SendOrder::kDataFirst),
        wake_actor_(fabric.timeline.add<&SimulatedHost::on_wake>(*this)),
        observer_(observer) {
    if (!plan.services) return;
    services_ = std::make_unique<sim::Services>(nic_.endpoint(), services_out_, plan.services->managers[n],
                                                plan.services->discoveries[n]);
    foreign_ = plan.services->foreign[n];
  }
  void lead_to(SimulatedHost& peer) {
    out_.connect<&SimulatedHost::arrive>(peer, 0);
    services_out_.connect<&SimulatedHost::arrive>(peer, 1);
  }

  Device& device() override { return nic_.device(); }
  wire::Address address() const override { return sim::address_of(nic_.host()); }
  cm::Cm& manager() override { return services_->manager(); }
  cm::Discovery& discovery() override { return services_->discovery(); }
  void set_region(RegionId region, std::uint8_t* bytes) override {
    nic_.memory().adopt(region, {bytes, kMemory});
  }
  void wake(Time at) {
    if (at >= wake_asked_) return;
    wake_asked_ = at;
    fabric_.timeline.wake(wake_actor_, std::max(at, fabric_.timeline.now()));
  }
  // Device and services are woken apart, each at its deadline. A program is told when everything that is due
  // was looked at, as the soft NIC tells it.
  bool more_is_due(Time now) {
    if (acts_first_ || services_ == nullptr) return false;
    return std::min({device().next_deadline(), manager().next_deadline(), discovery().next_deadline()}) <=
           now;
  }
  void send() override {
    nic_.ring();
    if (services_ != nullptr) services_->pump();
  }

 private:
  static sim::PortConfig link(const WorldPlan& plan, Lane lane) {
    sim::PortConfig c;
    c.delay = kDelays[static_cast<std::size_t>(lane)];
    c.impair = plan.networks[static_cast<std::size_t>(lane)];
    return c;
  }
  void arrive(const sim::Transit& t, std::uint32_t lane) {
    const sim::Packet& p = fabric_.packets.at(t.packet);
    if (foreign_ && lane == 1 && !is_managers(fabric_.payloads.bytes(p.payload).first(wire::kMadBytes)))
      return fabric_.release(t.packet);
    acts_first_ = true;
    nic_.arrive(t, lane);
    acts_first_ = false;
  }
  void on_wake(Time now) {
    if (now < wake_asked_) return;  // a wake-up for an earlier time has replaced this one
    wake_asked_ = kNever;
    acts_first_ = true;
    observer_.progressed(nic_.host(), now);
    acts_first_ = false;
  }

  sim::Fabric& fabric_;
  sim::Port out_;
  sim::Port services_out_;
  sim::IdealNic nic_;
  std::unique_ptr<sim::Services> services_;
  bool foreign_ = false;
  sim::ActorId wake_actor_;
  Time wake_asked_ = kNever;
  bool acts_first_ = false;  // something arrived, or the program woke by itself: it acts before what is due
  sim::NicObserver& observer_;
};

struct Watcher final : sim::NicObserver {
  explicit Watcher(Programs& p) : programs(p) {}
  void sent(sim::HostId from, sim::HostId, const wire::TxPacket& p, Time now) override {
    programs.log(from.v, Lane::kDevice, now, trace::to_text(as_sent(p.header, p.payload), p.payload));
  }
  void said(sim::HostId from, sim::HostId, const wire::Header& h, std::span<const std::uint8_t> mad,
            Time now) override {
    programs.log(from.v, Lane::kServices, now, mad_text(as_sent(h, wire::kMadBytes), mad));
  }
  void progressed(sim::HostId h, Time now) override {
    if (hosts[h.v]->more_is_due(now)) return;
    programs.act(h.v, now);
    hosts[h.v]->send();
    const Time wake = programs.next_wake(h.v);
    if (wake != kNever) hosts[h.v]->wake(wake);
  }
  Programs& programs;
  std::array<SimulatedHost*, 2> hosts{};
};

}  // namespace

void run_simulated(const WorldPlan& plan, Programs& programs) {
  sim::Fabric fabric;
  Exchange exchange;
  Watcher watcher(programs);
  SimulatedHost host0(exchange, fabric, 0, plan, watcher);
  SimulatedHost host1(exchange, fabric, 1, plan, watcher);
  host0.lead_to(host1);
  host1.lead_to(host0);
  watcher.hosts = {&host0, &host1};
  programs.set_up({&host0, &host1});
  for (std::uint32_t h = 0; h < 2; ++h) watcher.progressed({h}, Time{});
  fabric.timeline.run(plan.end, 10'000'000);
  programs.leave(plan.end);
}

}  // namespace weft::differential
