// The simulated side: IdealNics on two links of the fabric (sim/nic/ideal_nic.h).
#include "sim/nic/ideal_nic.h"
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

struct Watcher final : sim::NicObserver {
  explicit Watcher(Script& s) : script(s) {}
  void sent(sim::HostId from, sim::HostId, const wire::TxPacket& p, Time now) override {
    script.log(from.v, now, trace::to_text(as_sent(p.header, p.payload), p.payload));
  }
  void progressed(sim::HostId h, Time now) override {
    if (script.act(h.v, now)) nics[h.v]->ring();
  }
  Script& script;
  std::array<sim::IdealNic*, 2> nics{};
};

}  // namespace

void run_simulated(const Plan& plan, std::uint64_t seed, Script& script) {
  sim::Fabric fabric;
  Exchange exchange;
  Watcher watcher(script);
  sim::PortConfig link;
  link.delay = kDelay;
  link.impair.loss = plan.loss;
  link.impair.mark = plan.mark;
  sim::Port out0(fabric, link, Prng(seed).fork(0));
  sim::Port out1(fabric, link, Prng(seed).fork(1));
  sim::IdealNic nic0(exchange, fabric, {0}, plan.devices[0], out0, sim::Framing::kWire, &watcher,
                     sim::SendOrder::kDataFirst);
  sim::IdealNic nic1(exchange, fabric, {1}, plan.devices[1], out1, sim::Framing::kWire, &watcher,
                     sim::SendOrder::kDataFirst);
  out0.connect<&sim::IdealNic::arrive>(nic1, 0);
  out1.connect<&sim::IdealNic::arrive>(nic0, 0);
  watcher.nics = {&nic0, &nic1};
  script.set_up({&nic0.device(), &nic1.device()}, {sim::address_of({0}), sim::address_of({1})});
  for (std::size_t h = 0; h < 2; ++h) {
    if (script.act(h, Time{})) watcher.nics[h]->ring();
  }
  fabric.timeline.run(Time{} + seconds(5), 10'000'000);
}

}  // namespace weft::differential
