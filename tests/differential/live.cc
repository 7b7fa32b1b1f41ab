// The real side: Shards that step through virtual time on a wire of bytes (live/engine/shard.h).
#include <deque>

#include "core/impair/impair.h"
#include "core/wire/codec.h"
#include "live/engine/shard.h"
#include "sim/nic/host_address.h"
#include "tests/differential/worlds.h"
#include "trace/text.h"

namespace weft::differential {
namespace {

struct Frame {
  Time due;
  std::vector<std::uint8_t> bytes;
};

// One end of a wire of fixed delay that loses what the simulated link loses: the same generator decides, in
// the same order. One frame per receive(), as the simulated NIC gets one packet per event; so frames of a
// train arrive alone, as on most networks. In some worlds the device turns out not to cut trains at the first
// that it gets.
class VirtualWire final : public live::Wire {
 public:
  VirtualWire(std::size_t host, const Plan& plan, std::uint64_t seed, Script& script)
      : host_(host), script_(script) {
    facts_.own.first = sim::address_of({static_cast<std::uint32_t>(host)});
    facts_.port = 4791;
    facts_.mtu = 9000;
    facts_.max_frames = 64;
    facts_.identification_counts = seed % 4 != 0;
    cuts_ = seed % 4 != 1;
    impair::ImpairConfig c;
    c.loss = plan.loss;
    c.mark = plan.mark;
    // What this end receives left through the other one's link.
    impairment_ = impair::Impairment(c, Prng(seed).fork(1 - host));
  }
  const live::WireFacts& facts() const override { return facts_; }
  int descriptor() const override { return -1; }
  void abandon(int /*nowhere*/) override {}

  std::span<const live::RxTrain> receive(Time now) override {
    while (!inbox.empty() && inbox.front().due <= now) {
      frame_ = std::move(inbox.front().bytes);
      inbox.pop_front();
      const impair::Fate v = impairment_.decide();
      if (v.copies == 0) continue;
      train_ = {};
      train_.tos = v.mark ? wire::kEcnCe : std::uint8_t{0};
      train_.data = frame_.data();
      train_.bytes = train_.frame_size = static_cast<std::uint32_t>(frame_.size());
      train_.source = peer->facts_.own.first;
      train_.source_port = 4791;
      return {&train_, 1};
    }
    return {};
  }
  live::SendStatus send(const live::TxTrain& train) override {
    if (facts_.identification_counts && !cuts_ && train.bytes.size() > train.frame_size) {
      facts_.identification_counts = false;
      return live::SendStatus::kUncut;
    }
    for (std::size_t at = 0; at < train.bytes.size(); at += train.frame_size) {
      const auto bytes =
          train.bytes.subspan(at, std::min<std::size_t>(train.frame_size, train.bytes.size() - at));
      wire::Decoded d;
      wire::DecodeError error{};
      CHECK(wire::decode(bytes, d, error));
      script_.log(host_, time, trace::to_text(d.header, d.payload));
      if (++sent_ == forget) continue;
      peer->inbox.push_back({time + kDelay, {bytes.begin(), bytes.end()}});
    }
    return live::SendStatus::kSent;
  }

  VirtualWire* peer = nullptr;
  std::deque<Frame> inbox;
  Time time{};  // of the shard that sends
  std::uint64_t forget = 0;

 private:
  std::size_t host_;
  Script& script_;
  live::WireFacts facts_;
  bool cuts_ = true;
  impair::Impairment impairment_;
  std::vector<std::uint8_t> frame_;
  live::RxTrain train_;
  std::uint64_t sent_ = 0;
};

}  // namespace

void run_live(const Plan& plan, std::uint64_t seed, Script& script, std::uint64_t forget) {
  VirtualWire wire0(0, plan, seed, script);
  VirtualWire wire1(1, plan, seed, script);
  std::array<VirtualWire*, 2> wires{&wire0, &wire1};
  wire0.peer = &wire1;
  wire1.peer = &wire0;
  wire0.forget = forget;
  live::Shard shard0(plan.devices[0], wire0.facts(), true);
  live::Shard shard1(plan.devices[1], wire1.facts(), true);
  std::array<live::Shard*, 2> shards{&shard0, &shard1};
  script.set_up({&shard0.device(), &shard1.device()}, {wire0.facts().own.first, wire1.facts().own.first});
  std::array<std::vector<std::uint8_t>, 2> memory;
  for (std::size_t h = 0; h < 2; ++h) {
    memory[h].resize(kMemory);
    shards[h]->set_region(script.memory(h).region, memory[h].data());
  }
  // A shard sends a few trains and then looks at its wire; time does not pass meanwhile here.
  const auto drain = [&](std::size_t h, Time now) {
    while (shards[h]->has_to_send() && shards[h]->transmit(now, *wires[h])) {
    }
  };
  const auto act = [&](std::size_t h, Time now) {
    wires[h]->time = now;
    if (script.act(h, now)) shards[h]->transmit(now, *wires[h]);
    drain(h, now);
  };
  for (std::size_t h = 0; h < 2; ++h) act(h, Time{});
  for (;;) {
    Time at = Time{} + seconds(5);
    const Time end = at;
    for (std::size_t h = 0; h < 2; ++h) {
      if (!wires[h]->inbox.empty()) at = std::min(at, wires[h]->inbox.front().due);
      at = std::min(at, shards[h]->next_deadline());
    }
    if (at == end) break;
    for (std::size_t h = 0; h < 2; ++h) {
      wires[h]->time = at;
      while (!wires[h]->inbox.empty() && wires[h]->inbox.front().due <= at) {
        shards[h]->step(at, *wires[h], 1);
        drain(h, at);
        act(h, at);
      }
      if (shards[h]->next_deadline() <= at) {
        shards[h]->step(at, *wires[h], 1);
        drain(h, at);
        act(h, at);
      }
    }
  }
}

}  // namespace weft::differential
