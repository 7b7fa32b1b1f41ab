// Trains into packets: ICRC checked, header decoded, payload left where it lies. What the network
// sends is hostile until proven otherwise: every frame either becomes a packet or adds one to the
// counter of its reason, and nothing is read outside the train.
//
// The identification problem (docs/protocol/icrc.md#the-ipv4-identification). The ICRC covers the IPv4
// identification, which a UDP socket does not show. We try the frame's index in its train, then 0: a
// weft peer always sends one of them. If neither explains the CRC we solve for the one that does and
// accept if it exists, counted: that is what rxe and hardware, which number their packets, need. The
// price is that solving accepts one corrupt packet in 65 536, so a source that keeps proving itself
// the exact way is not given the benefit: it earns trust with every exact match and loses much more
// of it with every mismatch, and inference is open to it only without trust.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/wire/codec.h"
#include "core/wire/packet.h"
#include "live/wires/icrc_seeds.h"
#include "live/wires/wire.h"

namespace weft::live {

// X(name, sentence)
#define WEFT_WIRE_COUNTERS(X)                                                        \
  X(rx_frames, "frames received")                                                    \
  X(rx_short, "dropped: shorter than the headers its opcode asks for")               \
  X(rx_opcode, "dropped: opcode unknown in its mode")                                \
  X(rx_mode, "dropped: transport version unknown")                                   \
  X(rx_pad, "dropped: pad count larger than the payload, or length not whole words") \
  X(rx_payload, "dropped: bytes behind a packet that carries none")                  \
  X(rx_icrc, "dropped: ICRC wrong")                                                  \
  X(icrc_id_inferred, "accepted with an IP identification solved for")

struct WireCounters {
#define WEFT_X(name, text) std::uint64_t name = 0;
  WEFT_WIRE_COUNTERS(WEFT_X)
#undef WEFT_X
};

// Packets ready for Device::on_packets and, beside each, its payload.
struct RxBatch {
  static constexpr std::size_t kCapacity = 128;
  std::array<wire::RxPacket, kCapacity> packets;
  std::array<const std::uint8_t*, kCapacity> payloads;
  std::size_t size = 0;
  bool full() const { return size == kCapacity; }
  std::span<const wire::RxPacket> view() const { return {packets.data(), size}; }
};

class Unpacker {
 public:
  // `local` and `icrc` as the Packer at the other end has them.
  Unpacker(const WireFacts& facts, bool icrc);

  // Takes frames of the train from byte `from` on until the batch is full or the train ends; returns
  // the byte to go on from, or the train's length.
  std::uint32_t unpack(const RxTrain& train, std::uint32_t from, RxBatch& out);

  const WireCounters& counters() const { return counters_; }

 private:
  struct Trust {
    wire::Address source;
    std::int32_t level = 0;
  };

  bool icrc_matches(const RxTrain& train, std::span<const std::uint8_t> frame, std::uint32_t index);
  bool infer(const wire::Address& source, std::uint32_t with_zero, std::uint32_t received,
             std::uint32_t bytes_after);
  std::uint64_t& count_of(wire::DecodeError error);
  Trust& trust(const wire::Address& source);

  wire::Address local_;
  bool icrc_;
  IcrcSeeds seeds_;
  WireCounters counters_;
  std::array<Trust, 64> trust_{};
};

}  // namespace weft::live
