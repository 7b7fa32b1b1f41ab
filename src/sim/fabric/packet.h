// A packet inside the simulated fabric. Nothing is ever serialised; a frame is a number of bytes (frame.h).
//
//   Packet    the decoded header and its sender: two cache lines that only the two ends touch. The first
//             88 bytes are an RxPacket, so that the receiving Device reads the packet where it lies, or a
//             Segment of TCP. Both ends know which; links and switches look at neither.
//   Transit   what links and switches look at: 16 bytes that travel by value from queue to queue, so that
//             a hop costs no cache miss on the packet itself. Congestion marks ride here until delivery.
//
// Packets live in a pool and are named by 32-bit references: half a pointer, and stable when the pool
// grows. The holder of a reference passes it on or releases it; `in_use` at the end of a run is the
// leak check. The pool grows in chunks to the largest number of packets ever in flight and stays there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/wire/packet.h"
#include "sim/fabric/segment.h"

namespace weft::sim {

using HostId = Id<struct HostTag, std::uint32_t>;
using PacketRef = Id<struct PacketTag, std::uint32_t>;
using PayloadRef = Id<struct PayloadTag, std::uint32_t>;
inline constexpr PayloadRef kNoPayload{0xFFFF'FFFF};

struct alignas(64) Packet {
  Packet() : rx() {}
  union {
    wire::RxPacket rx;
    Segment segment;
  };
  std::uint32_t frame = 0;  // bytes this packet occupies a link for
  HostId destination{};
  std::uint32_t flow = 0;  // same for all packets of a queue pair towards one host: entropy for routing
  std::uint8_t traffic_class = 0;
  bool ecn_capable = false;
  bool control = false;             // an ACK, NAK or CNP
  PayloadRef payload = kNoPayload;  // real bytes, where a run carries them (payload.h)
  bool corrupt = false;             // a bit flipped on the way; the receiver's ICRC will not match
  bool retransmission = false;
};
static_assert(sizeof(Packet) <= 128);
static_assert(sizeof(Segment) <= sizeof(wire::RxPacket));

// Traffic classes: each has a queue of its own at every port, and PFC pauses one class of a link. The
// higher number goes first.
inline constexpr std::uint32_t kClasses = 8;

struct Transit {
  enum class Kind : std::uint8_t {
    kPacket,
    kPause,   // a PFC frame, X-OFF for the class ...
    kResume,  // ... and X-ON
    kCredit,  // `flow` bytes of credit go back to the sender (port.h)
  };
  PacketRef packet{};
  HostId destination{};
  std::uint32_t flow = 0;   // hash of the flow's ends: per-flow routing looks at nothing else
  std::uint16_t bytes = 0;  // on the wire
  std::uint8_t traffic_class = 0;
  Kind kind : 2 = Kind::kPacket;
  bool ecn_capable : 1 = false;
  bool congested : 1 = false;  // a switch marked it (ECN CE)
  bool is_pfc() const { return kind == Kind::kPause || kind == Kind::kResume; }
  bool is_packet() const { return kind == Kind::kPacket; }
};
static_assert(sizeof(Transit) == 16);

class PacketPool {
 public:
  PacketPool() = default;
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  PacketRef acquire() {
    if (free_.empty()) grow();
    const PacketRef ref = free_.back();
    free_.pop_back();
    return ref;
  }
  void release(PacketRef ref) { free_.push_back(ref); }
  Packet& at(PacketRef ref) { return chunks_[ref.v / kChunk][ref.v % kChunk]; }
  const Packet& at(PacketRef ref) const { return chunks_[ref.v / kChunk][ref.v % kChunk]; }

  void prefetch(PacketRef ref) const {
    const char* packet = reinterpret_cast<const char*>(&at(ref));
    __builtin_prefetch(packet, 1);
    __builtin_prefetch(packet + 64, 1);
  }
  std::size_t capacity() const { return chunks_.size() * kChunk; }
  std::size_t in_use() const { return capacity() - free_.size(); }

 private:
  static constexpr std::uint32_t kChunk = 1024;
  void grow() {
    const auto base = static_cast<std::uint32_t>(capacity());
    CHECK_OP(base, <, 1U << 30U);
    chunks_.push_back(std::make_unique<Packet[]>(kChunk));
    free_.reserve(capacity());
    for (std::uint32_t i = kChunk; i-- > 0;) free_.push_back({base + i});
  }

  std::vector<std::unique_ptr<Packet[]>> chunks_;
  std::vector<PacketRef> free_;  // last released, first reused: it is still in the cache
};

}  // namespace weft::sim
