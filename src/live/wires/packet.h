// RoCEv2 as raw Ethernet frames: whole headers written and read by us, past the kernel's UDP. It needs
// CAP_NET_RAW and an address of an Ethernet interface. Two wires in one, which differ in how they receive:
//
//   packet   by AF_PACKET, trains as the kernel has joined them, or has not cut them
//   xdp      by AF_XDP: frames leave the driver, or its nearest neighbour, before the kernel makes anything
//   of
//            them. Twice as fast where frames arrive one by one, slower where a virtual link hands trains
//            over whole. Needs more rights, and has its interface for itself
//
// Both send by AF_PACKET, because the kernel cuts trains for it (xdp_socket.h has the figures).
//
// Two ways lead out and in, and a frame takes one of them:
//
//   frames      requests and answers between queue pairs, to and from other hosts of this interface. The IPv4
//   header is
//               seen, so the ICRC is checked with the identification that was sent, and nothing is solved for
//   the kernel  a UdpWire of its own, for what the kernel does better: services (queue pair 1), groups,
//               peers on this host or behind another interface, and a peer whose Ethernet address is not
//               known yet. So loopback stays loopback, several processes share an address as they do there,
//               and the kernel's own resolution keeps the neighbour table right (next_hop.h)
//
// Which way a received frame comes is said once (wanted.h), to both sockets, so that each comes by one. Both
// ways write the same identifications, so a frame may change its way at any time and is sealed only once.
//
// The UDP socket stays bound: it holds the port, keeps the kernel from answering our frames with "port
// unreachable", and is what decides which process has the address. Its filter drops the kernel's copy of what
// came as a frame.
#pragma once
#include <array>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "live/packet_io/frame.h"
#include "live/packet_io/next_hop.h"
#include "live/packet_io/packet_socket.h"
#include "live/packet_io/xdp_receiver.h"
#include "live/wires/udp.h"
#include "live/wires/wire_around.h"

namespace weft::live {

class PacketWire final : public WireAround<UdpWire> {
 public:
  enum class Receive : std::uint8_t { kPacket, kXdp };
  static Result<std::unique_ptr<PacketWire>> open(const wire::Address& address, std::uint16_t port,
                                                  const UdpOptions& options = {},
                                                  Receive receive = Receive::kPacket);

  const WireFacts& facts() const override { return facts_; }
  std::span<const RxTrain> receive(Time now) override;
  SendStatus send(const TxTrain& train) override;
  int descriptor() const override { return xdp_ != nullptr ? xdp_->descriptor() : socket_->descriptor(); }
  int aside() const override { return inner_->descriptor(); }
  void abandon(int nowhere) override;
  void visit_counters(const SeeCounter& see) const override;

 private:
  using WireAround::WireAround;
  std::span<const RxTrain> read_frames();
  std::span<const RxTrain> read_aside(Time now);
  bool take(const RawFrame& frame, RxTrain& train);
  SendStatus send_frames(const TxTrain& train, const NextHops::Hop& hop);
  FrameHeaders headers(const TxTrain& train, const NextHops::Hop& hop, std::size_t payload,
                       std::uint16_t identification) const;

  static constexpr std::size_t kMostTrains = 64;

  WireFacts facts_;
  std::unique_ptr<PacketSocket> socket_;  // with xdp: for sending only
  std::unique_ptr<XdpReceiver> xdp_;
  std::unique_ptr<NextHops> hops_;
  Time now_{};          // of the last receive
  Time aside_at_{};     // when to look at the kernel's way again
  Time aside_moved_{};  // when something came by it
  bool aside_first_ = false;
  std::array<RxTrain, kMostTrains> trains_{};

  std::uint64_t frames_read_ = 0;
  std::uint64_t trains_by_kernel_ = 0;
  std::array<std::uint64_t, kFrameErrorTexts.size()> refused_{};
};

}  // namespace weft::live
