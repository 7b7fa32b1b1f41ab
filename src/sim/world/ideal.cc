#include "sim/world/ideal.h"

#include <algorithm>

#include "sim/fabric/frame.h"
#include "sim/tcp/frame.h"

namespace weft::sim {
namespace {

std::uint32_t frame(wire::Mode mode, std::uint8_t opcode, std::uint32_t payload) {
  wire::Header h;
  h.mode = mode;
  h.opcode = opcode;
  h.syndrome = wire::kSyndromeAck;
  return frame_bytes(h, payload, Framing::kWire);
}

struct Opcodes {
  std::uint8_t first, middle, last, only;
};
Opcodes opcodes(WrOpcode op) {
  switch (op) {
    case WrOpcode::kRead:
      return {wire::kReadResponseFirst, wire::kReadResponseMiddle, wire::kReadResponseLast,
              wire::kReadResponseOnly};
    case WrOpcode::kSend:
      return {wire::kSendFirst, wire::kSendMiddle, wire::kSendLast, wire::kSendOnly};
    default:
      return {wire::kWriteFirst, wire::kWriteMiddle, wire::kWriteLast, wire::kWriteOnly};
  }
}

Duration one_packet(const std::vector<const Port*>& way, std::uint32_t bytes) {
  Duration t{};
  for (const Port* p : way) t += p->serialisation(bytes) + p->config().delay;
  return t;
}

// The last packet's arrival. What comes before it is a train of equal frames, which the slowest link spaces
// out; the last one follows as closely as the train lets it.
Duration train(const std::vector<const Port*>& way, std::uint32_t first, std::uint32_t middle,
               std::uint32_t last, std::uint64_t packets) {
  Duration slowest{};
  Duration front{};  // when the train's last frame has left the link
  Duration end{};    // when the last packet has
  for (std::size_t i = 0; i < way.size(); ++i) {
    const Duration each = way[i]->serialisation(middle);
    if (i == 0) {
      front = way[0]->serialisation(first) + each * static_cast<std::int64_t>(packets - 2);
      end = front + way[0]->serialisation(last);
    } else {
      const Duration delay = way[i - 1]->config().delay;
      front += delay + way[i]->serialisation(packets == 2 ? first : middle);
      if (each > slowest) front += (each - slowest) * static_cast<std::int64_t>(packets - 2);
      end = std::max(end + delay, front) + way[i]->serialisation(last);
    }
    slowest = std::max(slowest, each);
  }
  return end + way.back()->config().delay;
}

}  // namespace

IdealTime ideal_time(const Network& network, const TransportSpec& t, const NicSpec& nic, const Arrival& f) {
  const auto there = network.way(f.from, f.to);
  const auto back = network.way(f.to, f.from);
  const std::uint64_t packets = f.bytes == 0 ? 1 : (f.bytes + t.mtu - 1) / t.mtu;
  const auto rest = static_cast<std::uint32_t>(f.bytes - (packets - 1) * t.mtu);
  if (t.tcp) {
    const std::uint32_t full = tcp::frame_bytes(t.mtu, 0);
    const std::uint32_t last = tcp::frame_bytes(rest, 0);
    return {packets == 1 ? one_packet(there, last) : train(there, full, full, last, packets),
            one_packet(back, tcp::frame_bytes(0, 0))};
  }
  const Opcodes o = opcodes(f.op);
  const Duration data = packets == 1
                            ? one_packet(there, frame(t.mode, o.only, rest))
                            : train(there, frame(t.mode, o.first, t.mtu), frame(t.mode, o.middle, t.mtu),
                                    frame(t.mode, o.last, rest), packets);
  if (f.op == WrOpcode::kRead) return {data, one_packet(back, frame(t.mode, wire::kReadRequest, 0))};
  const std::uint32_t ack = nic.ack_bytes != 0 ? nic.ack_bytes : frame(t.mode, wire::kAcknowledge, 0);
  return {data, one_packet(back, ack)};
}

}  // namespace weft::sim
