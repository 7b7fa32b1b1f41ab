#include "wan/box/line_parity.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "core/wire/ip.h"

namespace weft::wan {
namespace {

constexpr std::size_t kIp = kEthernetBytes;
constexpr std::size_t kBth = kHeadersBytes;
constexpr std::size_t kPayload = kBth + wire::kBthBytes;  // of a parity frame

// Where the fields lie that do not count, in a frame.
constexpr std::size_t kTos = kIp + 1;
constexpr std::size_t kTtl = kIp + 8;
constexpr std::size_t kIpChecksum = kIp + 10;
constexpr std::size_t kUdpChecksum = kIp + wire::kIpv4Bytes + 6;

struct Changing {
  std::uint8_t tos;
  std::uint8_t ttl;
  std::array<std::uint8_t, 2> ip_checksum;
  std::array<std::uint8_t, 2> udp_checksum;

  static Changing take(std::uint8_t* frame) {
    Changing c;
    c.tos = frame[kTos];
    c.ttl = frame[kTtl];
    std::memcpy(c.ip_checksum.data(), frame + kIpChecksum, 2);
    std::memcpy(c.udp_checksum.data(), frame + kUdpChecksum, 2);
    Changing{}.put(frame);
    return c;
  }
  void put(std::uint8_t* frame) const {
    frame[kTos] = tos;
    frame[kTtl] = ttl;
    std::memcpy(frame + kIpChecksum, ip_checksum.data(), 2);
    std::memcpy(frame + kUdpChecksum, udp_checksum.data(), 2);
  }
};

// Of a frame that the box took: its IP header is there, and all of its bytes.
std::span<std::uint8_t> block_of(std::uint8_t* frame) {
  return {frame + kIp, wire::load_be16(frame + kIp + 2)};
}

}  // namespace

std::uint32_t LineParity::covered(std::uint32_t line_mtu) {
  // Of the frame that is covered: IP and UDP, the longest headers, pad and ICRC.
  constexpr std::uint32_t kAround = kAroundPacket + wire::kMaxHeaderBytes + 4 + wire::kIcrcBytes;
  return line_mtu <= kLongerBy + kAround ? 0 : line_mtu - kLongerBy - kAround;
}

LineParity::LineParity(ParityTerms terms, std::uint32_t longest_frame)
    : encoder_(std::max<std::uint32_t>(terms.repair, 1), longest_frame), decoder_(longest_frame) {}

void LineParity::cover(std::uint8_t member, std::uint8_t* frame) {
  if (member == 0) encoder_.begin();
  const Changing as_it_is = Changing::take(frame);
  encoder_.add(member, block_of(frame));
  as_it_is.put(frame);
}

std::uint32_t LineParity::write(const Out& parity, const EthernetHeader& ethernet, std::uint16_t from_port,
                                std::span<std::uint8_t> out) {
  const std::span<const std::uint8_t> coded = encoder_.row(parity.row);
  CHECK(kPayload + parity.parity.size() + coded.size() + wire::kIcrcBytes <= out.size());
  std::uint8_t* bth = out.data() + kBth;
  std::memset(bth, 0, wire::kBthBytes);
  bth[0] = kParityOpcode;
  wire::store_be16(bth + 2, parity.frame.header.pkey);
  wire::store_be24(bth + 5, parity.frame.header.dest_qp.v);
  wire::store_be24(bth + 9, parity.frame.header.psn.v);
  std::uint8_t* p = std::copy(parity.parity.begin(), parity.parity.end(), out.data() + kPayload);
  p = std::copy(coded.begin(), coded.end(), p);
  return static_cast<std::uint32_t>(
      close_frame(parity.frame, static_cast<std::size_t>(p - bth), ethernet, from_port, out));
}

void LineParity::restore(Time now, Box& box, Bodies& bodies, Senders& senders) {
  for (Restore r; box.poll_restore(r);) {
    // What is here has its changing fields back before anybody else looks.
    std::uint8_t* open = nullptr;
    Changing as_it_is{};
    const auto close = [&] {
      if (open != nullptr) as_it_is.put(open);
      open = nullptr;
    };
    const std::uint8_t* parity = bodies.at(r.row[0].body);
    const bool fits = compute(
        r, decoder_,
        [&](BodyId body) {
          close();
          open = bodies.at(body);
          as_it_is = Changing::take(open);
          return std::span<const std::uint8_t>(block_of(open));
        },
        [&](const Restore::Row& row) {
          const std::uint8_t* frame = bodies.at(row.body);
          const std::size_t end = kIp + wire::load_be16(frame + kIp + 2) - wire::kIcrcBytes;
          return std::span(frame, end).subspan(kPayload + r.header_bytes);
        },
        [&](std::span<const std::uint8_t> block) {
          close();
          put(now, block, parity, box, bodies, senders);
        });
    close();
    if (!fits) ++broken_;
  }
}

void LineParity::put(Time now, std::span<const std::uint8_t> block, const std::uint8_t* parity, Box& box,
                     Bodies& bodies, Senders& senders) {
  const std::size_t length = block.size() < wire::kIpv4Bytes ? 0 : wire::load_be16(block.data() + 2);
  const bool whole = length >= kBth - kIp && length <= block.size() && kIp + length <= bodies.slot_bytes();
  const BodyId body = whole ? bodies.take() : kNoBody;
  if (body == kNoBody) {
    ++broken_;
    return;
  }
  std::uint8_t* p = bodies.at(body);
  std::memcpy(p + kIp, block.data(), length);
  bodies.length(body) = static_cast<std::uint32_t>(kIp + length);
  p[kTos] = parity[kTos];
  p[kTtl] = parity[kTtl];
  wire::store_be16(p + kIpChecksum, wire::internet_checksum(wire::internet_sum({p + kIp, wire::kIpv4Bytes})));
  // The Ethernet header is that of the parity frame, unless frames between these two were seen.
  EthernetHeader ethernet;
  std::copy_n(parity, kEthernetBytes, ethernet.begin());
  std::copy(ethernet.begin(), ethernet.end(), p);
  Frame f;
  std::span<const std::uint8_t> mad;
  Stranger reason{};
  if (!understand({p, kIp + length}, f, mad, reason)) {
    ++broken_;
    bodies.give_back(body);
    return;
  }
  std::uint16_t port = 0;
  if (senders.header(f.source, f.destination, ethernet, port)) std::copy(ethernet.begin(), ethernet.end(), p);
  f.body = body;
  box.on_restored(now, f);
}

}  // namespace weft::wan
