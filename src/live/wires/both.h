// A process with an address of each family: a UDP wire for each, and one way out for a packet, because only
// one of them is of its destination's family. What comes in comes from one socket and then from the other, in
// turns, so that neither hides the other.
//
// Both have the same slot (neighbours.h), because queue pair numbers are the process's. A thread sleeps on
// the first one's descriptors and on one that stands for all of the second's.
//
// What both can do is what each can: the smaller packet, the shorter train. Only the first's and the second's
// cutting of trains differ by themselves: it decides the identifications of IPv4 and means nothing to IPv6,
// so IPv4's is told, and a train over IPv6 that the kernel stops cutting is simply sent again.
#pragma once
#include <array>
#include <memory>

#include "core/base/result.h"
#include "live/wires/udp.h"

namespace weft::live {

class BothWire final : public Wire {
 public:
  // The two addresses are of different families.
  static Result<std::unique_ptr<BothWire>> open(const Addresses& own, std::uint16_t port,
                                                const UdpOptions& options = {});
  ~BothWire() override;

  const WireFacts& facts() const override { return facts_; }
  std::span<const RxTrain> receive(Time now) override;
  SendStatus send(const TxTrain& train) override;
  void mark() override;
  bool passed() const override;
  void show_headers() override;
  Outcome<void> join(const wire::Address& group) override;
  void leave(const wire::Address& group) override;
  int descriptor() const override { return sides_[0].wire->descriptor(); }
  int mailbox() const override { return sides_[0].wire->mailbox(); }
  int aside() const override { return second_; }
  int groups() const override { return sides_[0].wire->groups(); }
  Neighbours* neighbours() override { return sides_[0].wire->neighbours(); }
  void abandon(int nowhere) override;
  Time next_due() const override;
  void visit_counters(const SeeCounter& see) const override;

 private:
  struct Side {
    std::unique_ptr<UdpWire> wire;
    // Since mark(): whether it was found empty, and how much was read of it.
    bool emptied = true;
    std::uint64_t read = 0;
  };
  BothWire() = default;
  std::span<const RxTrain> read(Side& side, Time now);
  Side& towards(const wire::Address& peer) { return sides_[facts_.own.index_of(facts_.own.towards(peer))]; }
  bool watch(int fd) const;

  std::array<Side, 2> sides_;
  WireFacts facts_;
  std::size_t turn_ = 0;
  int second_ = -1;  // epoll
  bool watches_groups_ = false;
};

}  // namespace weft::live
