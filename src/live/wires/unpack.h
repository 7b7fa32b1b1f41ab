// Trains into packets: ICRC checked, header decoded, payload left where it lies. What the network
// sends is hostile until proven otherwise: every frame either becomes a packet or adds one to the
// counter of its reason, and nothing is read outside the train.
//
// The identification problem (docs/protocol/icrc.md#the-ipv4-identification). The ICRC covers the IPv4
// identification, which a UDP socket does not show. At most one identification explains a frame, and solving
// for it costs as much as the CRC of 2 KB. Identifications are of three kinds:
//
//   expected  one more than the last, 0 at the begin of a train or if the last two were 0: no solving
//   train     any other below kMostTrainFrames: a sender's kernel cut a train, and the network delivered its
//             frames one by one, or joined them anew
//   numbered  all others: the sender numbers its packets
//
// The last kind accepts one corrupt frame in 65 536, so it is bounded: see Source and believable().
//
// Where the wire saw the header (RxTrain::header_seen) nothing is solved for: the identification is known.
// Over IPv6 there is none.
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
  X(rx_port, "dropped: from this host, but not from a soft NIC's port")              \
  X(rx_short, "dropped: shorter than the headers its opcode asks for")               \
  X(rx_opcode, "dropped: opcode unknown in its mode")                                \
  X(rx_mode, "dropped: transport version unknown")                                   \
  X(rx_pad, "dropped: pad count larger than the payload, or length not whole words") \
  X(rx_payload, "dropped: bytes behind a packet that carries none")                  \
  X(rx_icrc, "dropped: ICRC wrong")                                                  \
  X(rx_group, "dropped: sent to a group, and no datagram for its members")           \
  X(icrc_id_inferred, "accepted with an IP identification solved for")               \
  X(icrc_id_numbered, "of those, with one that only a sender who numbers packets writes")

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
  bool for_services = false;  // one of them is for the host's own queue pair (wire::kGeneralServices)
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

  void count_for_nobody() { ++counters_.rx_group; }
  const WireCounters& counters() const { return counters_; }

 private:
  // What a source has written so far. `strictness` is the evidence that a number out of sequence means
  // corruption. Frames of trains raise it, and so do frames that no identification explains, because they
  // prove that the path corrupts. Numbers in sequence lower it, and so do leaps. Whoever takes the place of
  // another begins as a strict one: its own evidence may have been lost the same way.
  struct Source {
    wire::Address address;
    std::int32_t strictness = 0;
    std::uint16_t next = 0;  // expected
    bool still = false;      // the last two were 0
    std::uint16_t last = 0;  // the last number that was believed; 0: none yet
    std::uint16_t leap = 0;  // the number that was refused last; one close to it confirms it; 0: none
  };

  bool icrc_matches(Source& source, const RxTrain& train, std::span<const std::uint8_t> frame);
  bool icrc_matches_v6(const RxTrain& train, std::span<const std::uint8_t> frame);
  bool icrc_matches_header(const RxTrain& train, std::uint32_t at, std::span<const std::uint8_t> frame);
  bool believable(Source& source, std::uint16_t identification);
  std::uint64_t& count_of(wire::DecodeError error);
  Source& source(const wire::Address& address);

  const wire::Address& destination_of(const RxTrain& train) const {
    return train.for_group() ? train.group : own_.towards(train.source);
  }

  Addresses own_;
  bool icrc_;
  IcrcSeeds seeds_;
  WireCounters counters_;
  // A source has its place in one set, the one that was heard last in front.
  static constexpr unsigned kSetBits = 8;
  static constexpr std::size_t kWays = 4;
  std::array<std::array<Source, kWays>, 1U << kSetBits> sources_{};
};

}  // namespace weft::live
