// The wire of the live worlds, in virtual time.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/wire/codec.h"
#include "core/wire/mad.h"
#include "live/wires/wire.h"
#include "sim/nic/host_address.h"
#include "tests/differential/worlds.h"
#include "trace/text.h"

namespace weft::differential {

// One end of a wire that does to frames what the simulated links do to packets: the same generators decide,
// in the same order. One frame per receive(), as the simulated NIC gets one packet per event; so frames of a
// train arrive alone, as on most networks. In some worlds the device turns out not to cut trains at the first
// that it gets.
class VirtualWire final : public live::Wire {
 public:
  // `now` is the world's. Somebody is told what is sent before anything is.
  VirtualWire(std::size_t host, const WorldPlan& plan, const Time& now) : host_(host), now_(now) {
    facts_.own.first = sim::address_of({static_cast<std::uint32_t>(host)});
    facts_.port = 4791;
    facts_.mtu = 9000;
    facts_.max_frames = 64;
    facts_.identification_counts = plan.seed % 4 != 0;
    cuts_ = plan.seed % 4 != 1;
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes_[lane] = impair::Impairment(plan.networks[lane], Prng(plan.seed).fork(2 * lane + host));
    // Where nothing corrupts, the receiver solves for identifications; a broken frame would pass now and then
    // (docs/protocol/icrc.md#the-ipv4-identification).
    shows_headers_ = plan.networks[0].corrupt + plan.networks[1].corrupt != 0;
    foreign_ = plan.services && plan.services->foreign[host];
  }
  const live::WireFacts& facts() const override { return facts_; }
  int descriptor() const override { return descriptor_; }
  void abandon(int /*nowhere*/) override {}

  // Two frames came at one instant by different lanes, and no world owes them an order.
  bool tied() const { return tied_; }
  Time next_arrival() const { return inbox_.empty() ? kNever : inbox_.begin()->first; }

  std::span<const live::RxTrain> receive(Time now) override {
    if (next_arrival() > now) {
      if (when_empty) when_empty();
      return {};
    }
    frame_ = std::move(inbox_.begin()->second);
    tied_ = tied_ || (inbox_.begin()->first == last_arrival_ && frame_.lane != last_lane_);
    last_arrival_ = inbox_.begin()->first;
    last_lane_ = frame_.lane;
    inbox_.erase(inbox_.begin());
    train_ = {};
    train_.tos = frame_.marked ? wire::kEcnCe : std::uint8_t{0};
    train_.data = frame_.bytes.data();
    train_.bytes = train_.frame_size = static_cast<std::uint32_t>(frame_.bytes.size());
    train_.source = peer->facts_.own.first;
    train_.source_port = 4791;
    train_.header_seen = shows_headers_;
    train_.identification = train_.first = frame_.identification;
    return {&train_, 1};
  }
  live::SendStatus send(const live::TxTrain& train) override {
    if (facts_.identification_counts && !cuts_ && train.bytes.size() > train.frame_size) {
      facts_.identification_counts = false;
      return live::SendStatus::kUncut;
    }
    std::uint16_t index = 0;
    for (std::size_t at = 0; at < train.bytes.size(); at += train.frame_size)
      send_frame(train.bytes.subspan(at, std::min<std::size_t>(train.frame_size, train.bytes.size() - at)),
                 facts_.identification_counts ? index++ : std::uint16_t{0});
    return live::SendStatus::kSent;
  }

  void tell(Programs& programs, const Sabotage& sabotage) {
    programs_ = &programs;
    sabotage_ = sabotage;
  }

  VirtualWire* peer = nullptr;
  // Somebody looked and nothing was there.
  std::function<void()> when_empty;
  // What a sleeper watches; the owner's.
  void set_descriptor(int fd) { descriptor_ = fd; }

 private:
  struct Frame {
    std::vector<std::uint8_t> bytes;
    std::uint16_t identification = 0;
    Lane lane{};
    bool marked = false;
  };

  void send_frame(std::span<const std::uint8_t> bytes, std::uint16_t identification) {
    wire::Decoded d;
    wire::DecodeError error{};
    CHECK(wire::decode(bytes, d, error));
    const bool says = wire::carries_mad(d.header, d.payload);
    const Lane lane = says ? Lane::kServices : Lane::kDevice;
    const auto payload = bytes.subspan(wire::header_bytes(d.header), d.payload);
    programs_->log(host_, lane, now_,
                   says ? mad_text(d.header, payload) : trace::to_text(d.header, d.payload));
    const std::uint64_t number = ++sent_[static_cast<std::size_t>(lane)];
    if (lane == sabotage_.lane && number == sabotage_.forget) return;
    const impair::Fate fate = lanes_[static_cast<std::size_t>(lane)].decide();
    if (fate.copies == 0 || (says && peer->foreign_ && !is_managers(payload))) return;
    const Time arrival = now_ + kDelays[static_cast<std::size_t>(lane)];
    Frame frame{{bytes.begin(), bytes.end()}, identification, lane, false};
    if (fate.copies == 2) peer->inbox_.emplace(arrival + fate.duplicate_delay, frame);
    frame.marked = fate.mark;
    if (fate.corrupt) flip(frame.bytes, fate.corrupt_draw);
    peer->inbox_.emplace(arrival + fate.delay, std::move(frame));
  }
  // One bit that the ICRC covers: all of a byte of the BTH is left out of it.
  static void flip(std::vector<std::uint8_t>& bytes, std::uint32_t draw) {
    constexpr std::size_t kNotCovered = 4;
    std::size_t at = draw / 8 % bytes.size();
    if (at == kNotCovered) ++at;
    bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ 1U << draw % 8);
  }

  std::size_t host_;
  const Time& now_;
  Programs* programs_ = nullptr;
  int descriptor_ = -1;
  Sabotage sabotage_;
  live::WireFacts facts_;
  bool cuts_ = true;
  bool foreign_ = false;
  bool shows_headers_ = false;
  std::array<impair::Impairment, kLanes> lanes_;
  std::array<std::uint64_t, kLanes> sent_{};
  std::multimap<Time, Frame> inbox_;  // those of one time in the order in which they were sent
  Frame frame_;
  Time last_arrival_{};
  Lane last_lane_{};
  bool tied_ = false;
  live::RxTrain train_;
};

}  // namespace weft::differential
