// For tests: a Port whose frames are put in and taken out by hand, and RoCEv2 frames to put in.
#pragma once
#include <deque>
#include <utility>
#include <vector>

#include "wan/box/ethernet.h"
#include "wan/box/port.h"

namespace weft::wan {

class FakePort final : public Port {
 public:
  using Bytes = std::vector<std::uint8_t>;
  explicit FakePort(const char* name, std::uint32_t mtu = 4200) : facts_{name, mtu} {}

  const PortFacts& facts() const override { return facts_; }
  std::span<const RxFrame> receive() override {
    taken_.clear();
    batch_.clear();
    while (!coming.empty() && batch_.size() < kBatch) {
      taken_.push_back(std::move(coming.front()));
      coming.pop_front();
      batch_.push_back(
          {nullptr, static_cast<std::uint32_t>(taken_.back().first.size()), taken_.back().second});
    }
    for (std::size_t i = 0; i < batch_.size(); ++i) batch_[i].data = taken_[i].first.data();
    return batch_;
  }
  // What the reader still holds afterwards is not there any more.
  void done() override {
    for (auto& t : taken_) std::fill(t.first.begin(), t.first.end(), std::uint8_t{0xEE});
  }
  void send(std::span<const TxFrame> frames) override {
    for (const TxFrame& f : frames) left.emplace_back(Bytes(f.data, f.data + f.bytes), f.offload);
  }
  int descriptor() const override { return -1; }
  const PortCounters& counters() override { return counters_; }

  void comes(Bytes frame, const Offload& offload = {}) { coming.emplace_back(std::move(frame), offload); }
  std::deque<std::pair<Bytes, Offload>> coming;
  std::vector<std::pair<Bytes, Offload>> left;

 private:
  PortFacts facts_;
  PortCounters counters_;
  std::vector<std::pair<Bytes, Offload>> taken_;
  std::vector<RxFrame> batch_;
};

inline constexpr wire::Address kHere = wire::Address::v4(10, 0, 0, 1);
inline constexpr wire::Address kThere = wire::Address::v4(10, 0, 0, 2);
inline constexpr EthernetHeader kOutward{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0};
inline constexpr EthernetHeader kHomeward{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0};

// A WRITE of `payload` bytes, or an acknowledgement, as an endpoint sends it.
inline FakePort::Bytes packet(std::uint8_t opcode, std::uint32_t psn, std::uint32_t payload,
                              bool outward = true) {
  Frame f;
  f.header.opcode = opcode;
  f.header.psn = {psn};
  f.header.dest_qp = {outward ? 21U : 11U};
  f.header.bits = wire::kAckReq;
  f.header.dma_len = payload;
  if (opcode == wire::kAcknowledge) f.header.set_aeth(wire::kSyndromeAck, psn & 0xFF'FFFFU);
  f.source = outward ? kHere : kThere;
  f.destination = outward ? kThere : kHere;
  const FakePort::Bytes bytes(payload, static_cast<std::uint8_t>(psn));
  FakePort::Bytes out(kMostWritten);
  out.resize(write_frame(f, bytes, outward ? kOutward : kHomeward, 4791, out));
  return out;
}

}  // namespace weft::wan
