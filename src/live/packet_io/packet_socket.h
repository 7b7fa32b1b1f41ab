// Whole frames in and out of one Ethernet interface, by AF_PACKET. It needs CAP_NET_RAW, and nothing else of
// the system. Written for the packet wire (live/wires/packet.h); a box on the path may use it as well.
//
// Frames travel with the kernel's own note about them (PACKET_VNET_HDR): a train is sent as one piece,
// headers once, and the kernel or the device cuts it, exactly as it does for a UDP socket; and what receive
// offloads have joined arrives as one piece, with the length to cut it at.
//
// Considered instead, and measured over a virtual Ethernet that cuts trains (frames of 1 KB, one way, two
// cores): rings in shared memory (PACKET_MMAP) are no faster, 0.55 against 0.60 M/s, because the copy then
// falls to the core that sends, and on a link that cuts nothing they are less than half as fast; sending
// frames one by one past the queueing discipline (PACKET_QDISC_BYPASS) makes the kernel's receive path run
// once a frame: 0.35 M/s.
//
// A packet socket sees frames before any firewall does. What a filter lets through is judged here alone.
#pragma once
#include <linux/filter.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/result.h"

namespace weft::live {

// The bytes are the socket's until its next receive(); the reader may change them.
struct RawFrame {
  std::uint8_t* data = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t segment = 0;      // several frames as one: UDP payload of each but the last; 0: one frame
  bool checksum_vouched = false;  // nobody needs to look at the UDP checksum
};

struct PacketOptions {
  std::uint32_t receive_buffer = 32U << 20U;  // asked for; the system may grant less. 0: receives nothing
  std::uint32_t send_buffer = 4U << 20U;
};

class PacketSocket {
 public:
  enum class Sent : std::uint8_t { kYes, kFull, kFailed };

  // Receives the IPv4 frames of this interface that the filter accepts, without its own outgoing ones.
  static Result<std::unique_ptr<PacketSocket>> open(std::uint32_t interface,
                                                    std::span<const sock_filter> filter,
                                                    const PacketOptions& options = {});
  ~PacketSocket();
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;

  std::span<const RawFrame> receive();
  Sent send(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload);
  // Payloads of `segment` bytes each, the last may be shorter, behind one header for all
  // (write_train_headers). kFailed with may_cut() false from then on: this kernel does not cut them, and
  // nothing was sent.
  Sent send_train(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payloads,
                  std::uint32_t segment);
  bool may_cut() const { return may_cut_; }

  int descriptor() const { return fd_; }
  std::uint64_t receive_buffer() const;  // bytes of kernel memory that may wait, as granted
  std::uint64_t lost();                  // frames that found no room, since it was opened
  void abandon(int nowhere);             // in a forked child: its descriptor becomes that one's

 private:
  struct Buffers;
  PacketSocket();

  int fd_ = -1;
  bool may_cut_ = true;
  std::uint32_t batch_ = 1;  // messages per call, adapted to their size
  std::uint64_t lost_ = 0;
  std::unique_ptr<Buffers> buffers_;
};

// Why a raw socket was refused, with what to do about it. `errno` is what the system said.
Error raw_socket_refused(const char* what);

}  // namespace weft::live
