// One turn of a queue pair: a burst in Engine's scratch. Its packets have one frame size, so that a world can
// send them as a train; only the last may be shorter. Three sources fill bursts: requests (rc/requester.cc),
// answers to READs (rc/read_responder.cc), and messages that nobody acknowledges (uc/requester.cc).
//
//   next(packet, first)       header and payload of the packet that would leave next; false: none may leave
//   pieces()                  of how many pieces of memory its payload is, at most
//   gather(packet, segments)  appends these; false: a key does not allow it, and the source has dealt with
//                             that
//   left(packet)              it leaves
//
// A packet that was named may stay behind, because it does not fit; the next turn names it again.
#pragma once
#include <algorithm>

#include "core/transport/device.h"
#include "core/transport/engine.h"
#include "core/wire/codec.h"

namespace weft {

template <class Source>
Filled fill(Engine& e, Source& source, const Budget& budget) {
  const std::size_t most = std::min<std::size_t>(budget.packets, e.burst_packets.size());
  std::uint32_t n = 0;
  std::uint32_t segments = 0;
  std::uint32_t frame = 0;
  std::uint32_t total = 0;
  while (n < most) {
    wire::TxPacket& packet = e.burst_packets[n];
    if (!source.next(packet, n == 0)) break;
    const std::uint32_t bytes = wire::data_packet_bytes(packet.header, packet.payload);
    if (n == 0) frame = bytes;
    if (n > 0 && (bytes > frame || total + bytes > budget.bytes)) break;
    if (segments + source.pieces() > e.burst_segments.size()) break;
    packet.first_segment = segments;
    if (!source.gather(packet, segments)) break;
    packet.segment_count = segments - packet.first_segment;
    ++n;
    total += bytes;
    source.left(packet);
    if (bytes < frame) break;
  }
  return {n, segments};
}

}  // namespace weft
