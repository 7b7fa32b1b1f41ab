// A packet inside the simulated fabric: the decoded header itself plus what switches look at. Nothing
// is ever serialised; a frame is a number of bytes (frame.h).
//
//   line 0   header                                            the two ends
//   line 1   source, payload, ToS | frame, destination, ...    every switch on the way
//
// Two cache lines, of which a switch touches one. The first 88 bytes are an RxPacket, so that the
// receiving Device reads the packet where it lies.
//
// Packets live in a pool and are named by 32-bit references: half a pointer, and stable when the pool
// grows. Whoever holds a reference passes it on or releases it; `in_use` at the end of a run is the
// leak check. The pool grows in chunks to the largest number of packets ever in flight and stays there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/wire/packet.h"

namespace weft::sim {

using HostId = Id<struct HostTag, std::uint32_t>;
using PacketRef = Id<struct PacketTag, std::uint32_t>;
using PayloadRef = Id<struct PayloadTag, std::uint32_t>;
inline constexpr PayloadRef kNoPayload{0xFFFF'FFFF};

struct alignas(64) Packet {
  wire::RxPacket rx;
  std::uint32_t frame = 0;  // bytes this packet occupies a link for
  HostId destination{};
  std::uint32_t flow = 0;  // same for all packets of a queue pair towards one host: entropy for routing
  PayloadRef payload = kNoPayload;  // real bytes, where a run carries them (payload.h)
  bool corrupt = false;             // a bit flipped on the way; the receiver's ICRC will not match
  bool retransmission = false;
};
static_assert(sizeof(Packet) <= 128);
static_assert(offsetof(Packet, frame) >= 64 && offsetof(Packet, rx.source) >= 64);

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
