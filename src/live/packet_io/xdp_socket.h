// Frames in and out of one queue of a network interface by AF_XDP: rings in memory that we share with the
// kernel, so that a frame costs no system call. Reusable: the xdp wire receives by it (live/wires/packet.h),
// and a box on the path may send by it, too. An XDP program says which frames come here (xdp_program.h). It
// needs CAP_NET_RAW; the program needs more.
//
//   our memory (umem)   | chunk | chunk | ...                 4096 bytes each
//   fill ring           chunks that the kernel may fill       we write
//   receive ring        chunks that it has filled             we read
//   transmit ring       chunks that it shall send             we write; with XdpOptions::transmit
//   completion ring     chunks that it has sent               we read
//
// A frame longer than a chunk comes in several, where the kernel can (6.6): it is then copied together.
//
// Measured over a virtual Ethernet, where the kernel copies each frame into a chunk (frames of 1 KB, one way,
// two cores, the sender's kernel cuts trains): 0.88 to 0.98 M/s, where a packet socket receives 0.60 and a
// UDP socket 0.43 to 0.47. Sending by AF_XDP is slower there than a packet socket's trains, 0.50 M/s: each
// frame is an skb and a run of the receive path of its own. A driver that needs no copy turns that around.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "live/packet_io/packet_socket.h"

struct sockaddr_xdp;

namespace weft::live {

struct XdpOptions {
  std::uint32_t chunks = 4096;  // for receiving: a power of two
  bool transmit = false;        // as many more for sending
};

class XdpSocket {
 public:
  static constexpr std::size_t kMostFrames = 64;  // of one receive
  static constexpr std::uint32_t kChunk = 4096;
  // In front of a frame that the kernel fills in.
  static constexpr std::uint32_t kHeadroom = 256;

  static Result<std::unique_ptr<XdpSocket>> open(std::uint32_t interface, std::uint32_t queue,
                                                 const XdpOptions& options = {});
  ~XdpSocket();
  XdpSocket(const XdpSocket&) = delete;
  XdpSocket& operator=(const XdpSocket&) = delete;

  // Valid until the next receive(). Nobody has looked at a checksum: a frame of this host's may even lack it,
  // because a virtual device adds none.
  std::span<const RawFrame> receive();

  // Takes a copy; false: there is no room. What was taken leaves with ring(), at the latest.
  bool transmit(std::span<const std::uint8_t> frame);
  void ring();

  int descriptor() const { return fd_; }
  bool zero_copy() const { return zero_copy_; }
  bool long_frames() const { return long_frames_; }  // longer than a chunk
  std::uint64_t lost() const;  // frames for which there was no chunk, or no place in the ring
  void abandon(int nowhere);

 private:
  // One ring, as it is mapped. Our own index runs ahead of what the other side sees.
  struct Ring {
    void* mapped = nullptr;
    std::size_t bytes = 0;
    std::uint32_t* producer = nullptr;
    std::uint32_t* consumer = nullptr;
    std::uint32_t* flags = nullptr;
    void* entries = nullptr;
    std::uint32_t mask = 0;
    std::uint32_t own = 0;
  };
  XdpSocket() = default;
  Result<void> make(std::uint32_t interface, std::uint32_t queue, const XdpOptions& options);
  bool map(Ring& ring, const void* offsets, std::uint64_t page, std::uint32_t entries, std::size_t entry);
  bool bind_to(sockaddr_xdp& to);
  void give_back();
  void reap();

  int fd_ = -1;
  std::uint8_t* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  Ring fill_;
  Ring receive_;
  Ring transmit_;
  Ring completion_;
  bool zero_copy_ = false;
  bool long_frames_ = false;
  std::array<std::uint64_t, kMostFrames * 4> lent_{};  // chunks of the last receive
  std::size_t lent_count_ = 0;
  std::array<RawFrame, kMostFrames> frames_{};
  std::vector<std::uint8_t> joined_;   // frames of several chunks
  std::vector<std::uint64_t> unused_;  // chunks for sending
};

}  // namespace weft::live
