#include "live/wires/packet.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/wire/ip.h"
#include "live/packet_io/wanted.h"

namespace weft::live {
namespace {

// The kernel's way is looked at this often, and always for a while after something came by it: a call that
// finds nothing costs as much as a small datagram.
constexpr Duration kAsideEvery = microseconds(50);
constexpr Duration kAsideLately = milliseconds(2);
constexpr std::uint32_t kMostReads = 16;
// A chunk holds one frame, however short. A path's credit counts a frame's bytes and 768 more, and is half of
// what a receiver has (live/engine/sizing.cc): so no more frames are on their way than there are chunks.
constexpr std::uint64_t kCreditAChunk = 2 * 768;

SendStatus status_of(PacketSocket::Sent sent) {
  switch (sent) {
    case PacketSocket::Sent::kYes:
      return SendStatus::kSent;
    case PacketSocket::Sent::kFull:
      return SendStatus::kFull;
    case PacketSocket::Sent::kFailed:
      break;
  }
  return SendStatus::kFailed;
}

}  // namespace

Result<std::unique_ptr<PacketWire>> PacketWire::open(const wire::Address& address, std::uint16_t port,
                                                     const UdpOptions& options, Receive receive) {
  if (!wire::is_v4_mapped(address))
    return fail("raw frames at " + to_text(address) +
                ": the wires packet and xdp speak IPv4 only; take --wire udp, or an IPv4 address");
  auto udp = UdpWire::open(address, port, options);
  if (!udp) return tl::unexpected(udp.error());
  const auto interface = find_ethernet(address);
  if (!interface) {
    const Error& e = interface.error();
    return tl::unexpected(Error{"raw frames at " + to_text(address) + ": " + e.message, e.number});
  }
  std::unique_ptr<PacketWire> wire(new PacketWire(std::move(*udp)));
  WireFacts& facts = wire->facts_;
  facts = wire->inner_->facts();
  facts.mtu = interface->mtu;
  const Wanted wanted{.address = address, .port = port, .slot = facts.slot};
  auto socket =
      PacketSocket::open(interface->index, packet_filter(wanted),
                         {.receive_buffer = receive == Receive::kPacket ? options.receive_buffer : 0,
                          .send_buffer = options.send_buffer});
  if (!socket) return tl::unexpected(socket.error());
  wire->socket_ = std::move(*socket);
  if (receive == Receive::kPacket)
    facts.receive_buffer = std::min(facts.receive_buffer, wire->socket_->receive_buffer());
  auto hops = NextHops::open(*interface, address);
  if (!hops) return tl::unexpected(hops.error());
  wire->hops_ = std::move(*hops);
  // Last, what parts the two ways. What XDP takes leaves no copy.
  if (receive == Receive::kXdp) {
    auto xdp = XdpReceiver::open(*interface, wanted);
    if (!xdp) return tl::unexpected(xdp.error());
    wire->xdp_ = std::move(*xdp);
    facts.receive_buffer = std::min(facts.receive_buffer, wire->xdp_->chunks() * kCreditAChunk);
    return wire;
  }
  const auto left = wire->inner_->leave_alone(udp_filter(wanted, interface->index));
  if (!left) return tl::unexpected(left.error());
  return wire;
}

void PacketWire::abandon(int nowhere) {
  inner_->abandon(nowhere);
  socket_->abandon(nowhere);
  hops_->abandon(nowhere);
  if (xdp_ != nullptr) xdp_->abandon(nowhere);
}

void PacketWire::visit_counters(const SeeCounter& see) const {
  see("raw_frames", "received as raw frames, joined ones counted once", frames_read_);
  see("raw_lost", "raw frames for which there was no room", xdp_ != nullptr ? xdp_->lost() : socket_->lost());
  see("sent_by_kernel",
      "trains that left by the kernel's UDP: to this host, to groups, or before the peer's Ethernet address "
      "was known",
      trains_by_kernel_);
  for (std::size_t i = 0; i < refused_.size(); ++i)
    see(kFrameErrorCounters[i], kFrameErrorTexts[i], refused_[i]);
  inner_->visit_counters(see);
}

std::span<const RxTrain> PacketWire::receive(Time now) {
  now_ = now;
  const bool due = now >= aside_at_;
  // In turns: neither way hides the other.
  if (due && std::exchange(aside_first_, !aside_first_)) {
    if (const auto trains = read_aside(now); !trains.empty()) return trains;
    return read_frames();
  }
  if (const auto trains = read_frames(); !trains.empty()) return trains;
  return due ? read_aside(now) : std::span<const RxTrain>{};
}

std::span<const RxTrain> PacketWire::read_aside(Time now) {
  const std::span<const RxTrain> trains = inner_->receive(now);
  if (!trains.empty()) aside_moved_ = now;
  aside_at_ = now - aside_moved_ < kAsideLately ? now : now + kAsideEvery;
  return trains;
}

std::span<const RxTrain> PacketWire::read_frames() {
  // What one read refused, or handed to others, must not look like an empty socket.
  for (std::uint32_t reads = 0; reads < kMostReads; ++reads) {
    const std::span<const RawFrame> frames = xdp_ != nullptr ? xdp_->receive() : socket_->receive();
    if (frames.empty()) break;
    std::size_t count = 0;
    for (const RawFrame& frame : frames) {
      DCHECK(count < trains_.size());
      if (take(frame, trains_[count])) ++count;
    }
    const std::span<const RxTrain> ours = inner_->keep_own({trains_.data(), count});
    if (!ours.empty()) return ours;
  }
  return {};
}

bool PacketWire::take(const RawFrame& frame, RxTrain& train) {
  ++frames_read_;
  Datagram d;
  FrameError error{};
  const bool vouched = frame.checksum_vouched || frame.segment != 0;
  bool good =
      read_frame({frame.data, frame.bytes}, vouched ? UdpChecksum::kVouched : UdpChecksum::kLook, d, error);
  // No host of the network has an address of this one.
  if (good && inner_->of_this_host(d.ip.source)) {
    error = FrameError::kSource;
    good = false;
  }
  if (!good) {
    ++refused_[static_cast<std::size_t>(error)];
    return false;
  }
  train = {};
  train.data = frame.data + d.payload_offset;
  train.bytes = d.payload;
  train.frame_size = frame.segment != 0 ? std::min(frame.segment, d.payload) : d.payload;
  train.source = d.ip.source;
  train.source_port = d.source_port;
  train.tos = d.ip.tos;
  train.ttl = d.ip.ttl;
  train.header_seen = true;
  train.dont_fragment = d.dont_fragment;
  train.identification = train.first = d.ip.identification;
  return true;
}

FrameHeaders PacketWire::headers(const TxTrain& train, const NextHops::Hop& hop, std::size_t payload,
                                 std::uint16_t identification) const {
  return {.to = hop.to,
          .from = hop.from,
          .ip = {.source = facts_.own.first,
                 .destination = train.destination,
                 .udp_length = static_cast<std::uint16_t>(wire::kUdpBytes + payload),
                 .identification = identification,
                 .tos = train.ip.traffic_class,
                 .ttl = train.ip.hop_limit,
                 .flow_label = 0},
          .source_port = facts_.port,
          .destination_port = facts_.port};
}

SendStatus PacketWire::send(const TxTrain& train) {
  if (!wire::is_group(train.destination)) {
    const NextHops::Hop& hop = hops_->towards(now_, train.destination);
    if (hop.way == NextHops::Way::kFrame) return send_frames(train, hop);
  }
  ++trains_by_kernel_;
  const SendStatus status = inner_->send(train);
  facts_.identification_counts = inner_->facts().identification_counts;
  return status;
}

SendStatus PacketWire::send_frames(const TxTrain& train, const NextHops::Hop& hop) {
  std::array<std::uint8_t, kFrameHeaders> bytes;
  const std::size_t all = train.bytes.size();
  const bool counts = facts_.identification_counts;
  if (train.frame_size < all && counts && socket_->may_cut()) {
    write_train_headers(headers(train, hop, all, 0), bytes);
    const auto sent = socket_->send_train(bytes, train.bytes, train.frame_size);
    if (socket_->may_cut()) return status_of(sent);
  }
  // Each by itself, with the identification for which it was sealed. A train that only partly fitted counts
  // as sent: loss recovery knows better than a queue here.
  std::uint16_t index = 0;
  for (std::size_t at = 0; at < all; at += train.frame_size, ++index) {
    const std::size_t size = std::min<std::size_t>(train.frame_size, all - at);
    write_frame_headers(headers(train, hop, size, counts ? index : std::uint16_t{0}), bytes);
    const auto sent = socket_->send(bytes, train.bytes.subspan(at, size));
    if (sent != PacketSocket::Sent::kYes) return index == 0 ? status_of(sent) : SendStatus::kSent;
  }
  return SendStatus::kSent;
}

}  // namespace weft::live
