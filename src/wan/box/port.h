// An interface as a box sees it: whole Ethernet frames, in batches, in both directions. packet_port.h is the
// one that there is; tests have one of their own.
//
// A sender may leave work to its device: to fill in a checksum, to cut a train of packets into frames. On a
// virtual Ethernet nobody ever does it, and what arrives still says what is left to do. So Offload travels
// with the frame: it is what the kernel calls struct virtio_net_hdr, field by field.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weft::wan {

struct Offload {
  static constexpr std::uint8_t kNeedsChecksum = 1;  // in `flags`
  static constexpr std::uint8_t kUdpTrain = 5;       // in `cut_as`
  static constexpr std::uint8_t kCutAsMask = 0x7F;

  std::uint8_t flags = 0;
  std::uint8_t cut_as = 0;  // 0: one frame
  std::uint16_t header_bytes = 0;
  std::uint16_t piece = 0;  // payload of each frame but the last
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;

  bool is_train() const { return (cut_as & kCutAsMask) != 0; }
  bool is_udp_train() const { return (cut_as & kCutAsMask) == kUdpTrain; }
  bool operator==(const Offload&) const = default;
};
static_assert(sizeof(Offload) == 10);

// As it came; the bytes are the port's until done(), and the reader may change them.
struct RxFrame {
  std::uint8_t* data = nullptr;
  std::uint32_t bytes = 0;
  Offload offload;
};

struct TxFrame {
  const std::uint8_t* data = nullptr;
  std::uint32_t bytes = 0;
  Offload offload;
};

// X(name, sentence)
#define WEFT_PORT_COUNTERS(X)                                                                              \
  X(rx_frames, "frames received")                                                                          \
  X(rx_bytes, "bytes received")                                                                            \
  X(rx_missed, "frames that the kernel dropped: this program was too slow, or it could not describe them") \
  X(rx_torn, "frames dropped: longer than their place, and the kernel kept no copy")                       \
  X(tx_frames, "frames sent")                                                                              \
  X(tx_bytes, "bytes sent")                                                                                \
  X(tx_full, "frames dropped: the device had no room")                                                     \
  X(tx_failed, "frames dropped: the system refused them")

struct PortCounters {
#define WEFT_X(name, text) std::uint64_t name = 0;
  WEFT_PORT_COUNTERS(WEFT_X)
#undef WEFT_X
};

struct PortFacts {
  std::string name;
  std::uint32_t mtu = 0;  // IP header and all that follows
};

class Port {
 public:
  static constexpr std::size_t kBatch = 64;

  Port() = default;
  virtual ~Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  virtual const PortFacts& facts() const = 0;
  // Up to kBatch frames, in the order in which they came; none of our own.
  virtual std::span<const RxFrame> receive() = 0;
  virtual void done() = 0;
  // Up to kBatch frames. What cannot be sent is dropped and counted.
  virtual void send(std::span<const TxFrame> frames) = 0;
  // Readable when receive() has something.
  virtual int descriptor() const = 0;
  // Up to date with what the kernel knows.
  virtual const PortCounters& counters() = 0;
};

}  // namespace weft::wan
