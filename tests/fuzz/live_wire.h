// The wire of a host of the live target: what the host sends lies here until the input decides what becomes
// of it, and what the input gives comes in as trains, each in memory of exactly its size, so that a read
// beyond it is seen. A host may have real doors beside it (live_doors.h).
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "live/wires/wire.h"
#include "tests/fuzz/live_doors.h"

namespace weft::fuzz {

using Bytes = std::vector<std::uint8_t>;

// A train that left. Its source is whose wire it lies on.
struct Sent {
  Bytes bytes;
  std::uint32_t frame_size = 0;
  wire::Address destination;
  live::IpChoice ip;
};

class LinkWire final : public live::Wire {
 public:
  static constexpr std::size_t kMostSent = 64;  // the oldest is lost

  LinkWire(const live::WireFacts& facts, Doors* doors) : facts_(facts), doors_(doors) {}

  const live::WireFacts& facts() const override { return facts_; }
  int descriptor() const override { return -1; }
  void abandon(int) override {}
  live::Neighbours* neighbours() override { return doors_ != nullptr ? doors_->neighbours() : nullptr; }
  Outcome<void> join(const wire::Address&) override { return {}; }

  live::SendStatus send(const live::TxTrain& train) override {
    CHECK(!train.bytes.empty() && train.frame_size != 0);
    CHECK_OP(train.bytes.size(), <=, facts_.max_bytes);
    CHECK_OP((train.bytes.size() - 1) / train.frame_size, <, facts_.max_frames);
    const live::SendStatus status = std::exchange(next, live::SendStatus::kSent);
    if (status == live::SendStatus::kUncut) facts_.identification_counts = false;
    if (status != live::SendStatus::kSent) return status;
    if (sent.size() == kMostSent) sent.pop_front();
    sent.push_back({{train.bytes.begin(), train.bytes.end()}, train.frame_size, train.destination, train.ip});
    return status;
  }

  std::span<const live::RxTrain> receive(Time) override {
    if (doors_ != nullptr) {
      if (const auto trains = doors_->receive(); !trains.empty()) return trains;
    }
    shown_.clear();
    held_.clear();
    for (std::size_t n = together; n > 0 && !inbox.empty(); --n) {
      auto& [train, bytes] = inbox.front();
      auto copy = std::make_unique<std::uint8_t[]>(bytes.size());
      std::copy(bytes.begin(), bytes.end(), copy.get());
      train.data = copy.get();
      shown_.push_back(train);
      held_.push_back(std::move(copy));
      inbox.pop_front();
    }
    return shown_;
  }
  void give(live::RxTrain train, Bytes bytes) {
    train.bytes = static_cast<std::uint32_t>(bytes.size());
    inbox.push_back({train, std::move(bytes)});
  }
  Doors* doors() const { return doors_; }
  // With doors nobody knows: what was sent through the kernel may come later.
  bool nothing_waits() const { return inbox.empty() && doors_ == nullptr; }

  std::deque<Sent> sent;
  std::deque<std::pair<live::RxTrain, Bytes>> inbox;
  live::SendStatus next = live::SendStatus::kSent;  // of the next train
  std::size_t together = 1;                         // trains that one receive gives

 private:
  live::WireFacts facts_;
  Doors* const doors_;
  std::vector<live::RxTrain> shown_;
  std::vector<std::unique_ptr<std::uint8_t[]>> held_;
};

}  // namespace weft::fuzz
