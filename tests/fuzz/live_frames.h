// Frames of the live target: what is made up, what is altered, and the ICRC that makes either believable.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/wire/codec.h"
#include "core/wire/icrc.h"
#include "core/wire/mad.h"
#include "live/wires/wire.h"
#include "tests/fuzz/device_packets.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/live_wire.h"

namespace weft::fuzz {

// BTH to ICRC, the ICRC zero. Requires an opcode that its mode has.
inline Bytes frame_of(const wire::Header& h, std::span<const std::uint8_t> payload) {
  Bytes f(wire::header_bytes(h));
  wire::encode(h, static_cast<std::uint32_t>(payload.size()), f);
  f.insert(f.end(), payload.begin(), payload.end());
  f.resize(f.size() + wire::pad_bytes(static_cast<std::uint32_t>(payload.size())) + wire::kIcrcBytes);
  return f;
}

inline Bytes mad_frame(const wire::Mad& mad, std::uint32_t psn) {
  return frame_of(wire::mad_packet({psn}), mad);
}

// As the sender of this frame would have sealed it.
inline void seal(Bytes& frame, const wire::Address& from, const wire::Address& to, std::uint16_t port,
                 std::uint16_t identification) {
  if (frame.size() < wire::kBthBytes + wire::kIcrcBytes) return;
  wire::Icrc icrc({.source = from,
                   .destination = to,
                   .source_port = port,
                   .udp_length = static_cast<std::uint16_t>(8 + frame.size()),
                   .identification = identification});
  const std::size_t covered = frame.size() - wire::kIcrcBytes;
  icrc.packet(std::span(frame).first(covered));
  for (unsigned i = 0; i < wire::kIcrcBytes; ++i)
    frame[covered + i] = static_cast<std::uint8_t>(icrc.value() >> (8U * i));
}

// The frames of a train, one by one.
inline std::vector<Bytes> frames_of(std::span<const std::uint8_t> train, std::uint32_t frame_size) {
  std::vector<Bytes> frames;
  while (!train.empty()) {
    const auto one = train.first(std::min<std::size_t>(frame_size, train.size()));
    frames.emplace_back(one.begin(), one.end());
    train = train.subspan(one.size());
  }
  return frames;
}

// One field of its header becomes something else, and the frame is again one that decodes.
inline void alter_header(Bytes& frame, Input& in) {
  wire::Decoded d;
  wire::DecodeError error{};
  if (!wire::decode(frame, d, error)) return;
  wire::RxPacket p;
  p.header = d.header;
  p.payload = d.payload;
  alter(p, in);
  if (!as_decoded(p)) return;
  Bytes payload(frame.begin() + d.payload_offset, frame.begin() + d.payload_offset + d.payload);
  payload.resize(p.payload, 0xAB);
  frame = frame_of(p.header, payload);
}

// Bytes of it become others, or it ends elsewhere.
inline void alter_bytes(Bytes& frame, Input& in) {
  const std::uint32_t how = in.below(4);
  if (how == 0) {
    frame.resize(in.u16() % (frame.size() + 1));
  } else if (how == 1) {
    frame.resize(frame.size() + in.u8(), 0);
  } else if (!frame.empty()) {
    const std::uint16_t at = in.u16();
    // Headers matter more than payload.
    const std::size_t most = how == 2 ? std::min<std::size_t>(frame.size(), 48) : frame.size();
    frame[at % most] ^= static_cast<std::uint8_t>(1U + in.u8());
  }
}

// A message of the connection manager: some of it right, some of it the input's.
inline wire::Mad any_cm_message(const wire::Address& from, const wire::Address& to, Qpn qpn, Input& in) {
  wire::CmMessage m;
  m.kind = static_cast<wire::CmKind>(0x10 + in.below(9));
  m.local_id = in.below(4);
  m.remote_id = static_cast<std::uint32_t>(in.below(4) == 0 ? in.u32() : Doors::kSlot << 24U | in.below(8));
  m.transaction = in.below(3);
  m.service_id = wire::service_id(in.flag() ? wire::PortSpace::kTcp : wire::PortSpace::kUdp, 7);
  m.mtu = static_cast<std::uint8_t>(1 + in.below(5));
  m.qpn = qpn;
  m.starting_psn = {in.u8()};
  m.responder_resources = m.initiator_depth = in.u8();
  m.retry_count = m.rnr_retry = static_cast<std::uint8_t>(in.below(8));
  m.reason = static_cast<std::uint16_t>(in.below(30));
  m.local_gid = from;
  m.remote_gid = to;
  if (in.flag()) {
    m.vendor_id = wire::kEceVendor;
    m.modifier = wire::encode_ece({.irn = in.flag(), .srnic = in.flag()});
  }
  wire::write_address_header({.source_port = 1, .source = from, .destination = to}, m.private_data);
  wire::Mad mad;
  encode(m, mad);
  for (std::uint32_t n = in.below(4); n > 1; --n) mad[in.u8()] = in.u8();
  return mad;
}

inline wire::Mad any_capability(Qpn target, Input& in) {
  wire::Capability c;
  c.reply = in.flag();
  c.status = in.below(4) == 3 ? 1 : 0;
  c.transaction = in.flag() ? in.u64() : std::uint64_t{Doors::kSlot} << 56U;
  c.modes = static_cast<std::uint16_t>(in.below(8));
  c.target = target;
  c.instance = in.u8();
  c.buffer_share = in.u32();
  c.mtu = in.u16();
  wire::Mad mad;
  encode(c, mad);
  return mad;
}

}  // namespace weft::fuzz
