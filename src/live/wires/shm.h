// Trains to and from other processes of this host in shared memory, and the kernel's UDP for all else: no
// system call and no copy by the kernel for a packet between two programs that poll.
//
// It is a UDP wire that takes a shorter way where there is one, train by train: services (queue pair 1),
// groups, other hosts, processes of other users and those that use another wire leave as datagrams. Both ways
// write the same identifications, so a train is sealed once.
//
// A full ring holds its writer up, as the reader takes what is in it within microseconds. If it stands still,
// the writer waits a moment longer than a crowded machine takes; after that its trains to this reader are
// lost until it moves, as a socket would lose them, and nobody else has to wait.
#pragma once
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "live/wires/shared_links.h"
#include "live/wires/udp.h"
#include "live/wires/wire_around.h"

namespace weft::live {

class ShmWire final : public WireAround<UdpWire> {
 public:
  static Result<std::unique_ptr<ShmWire>> open(const wire::Address& address, std::uint16_t port,
                                               const UdpOptions& options = {});

  const WireFacts& facts() const override { return facts_; }
  std::span<const RxTrain> receive(Time now) override;
  SendStatus send(const TxTrain& train) override;
  bool rest() override;
  void rise() override;
  void mark() override;
  bool passed() const override;
  int aside() const override { return links_ != nullptr ? links_->descriptor() : -1; }
  void abandon(int nowhere) override;
  void visit_counters(const SeeCounter& see) const override;

 private:
  using WireAround::WireAround;
  std::span<const RxTrain> read_rings();
  std::span<const RxTrain> read_socket(Time now);
  SendStatus wait_or_lose(LinkOut& link, Time now);
  void send_refused();
  void rouse();
  void stir();

  WireFacts facts_;
  std::unique_ptr<SharedLinks> links_;  // null: everything goes by UDP
  bool resting_ = false;                // a thread sleeps: bells are for it, and nobody else takes them
  bool roused_ = false;                 // somebody else has begun to look, and told the sleeper
  Time socket_at_{};                    // when to look at the socket again
  Time socket_moved_{};                 // when something came by it
  Time links_at_{};                     // when to look again who comes and goes
  bool socket_first_ = false;
  std::size_t next_ring_ = 0;
  std::vector<std::uint8_t> bytes_;
  std::vector<RxTrain> trains_;

  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t broken_ = 0;
};

}  // namespace weft::live
