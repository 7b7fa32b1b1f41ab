#include "live/wires/unpack.h"

#include <algorithm>

#include "core/wire/codec.h"
#include "core/wire/icrc.h"

namespace weft::live {
namespace {

constexpr std::uint32_t kUdpHeaderBytes = 8;
constexpr std::int32_t kTrustMost = 256;
constexpr std::int32_t kMismatchCosts = 8;

std::uint32_t load_le(const std::uint8_t* p) {
  std::uint32_t v = 0;
  for (unsigned i = 0; i < 4; ++i) v |= static_cast<std::uint32_t>(p[i]) << (8U * i);
  return v;
}

}  // namespace

Unpacker::Unpacker(const WireFacts& facts, bool icrc) : local_(facts.address), icrc_(icrc) {}

Unpacker::Trust& Unpacker::trust(const wire::Address& source) {
  Trust& t = trust_[(source.bytes[15] + source.bytes[14] * 7U) % trust_.size()];
  if (t.source != source) t = Trust{source, 0};
  return t;
}

bool Unpacker::infer(const wire::Address& source, std::uint32_t with_zero, std::uint32_t received,
                     std::uint32_t bytes_after) {
  Trust& t = trust(source);
  const bool exact_only = t.level > 0;
  t.level = std::max(0, t.level - kMismatchCosts);
  std::uint16_t identification = 0;
  if (exact_only || !wire::solve_identification(with_zero, received, bytes_after, identification))
    return false;
  ++counters_.icrc_id_inferred;
  return true;
}

bool Unpacker::icrc_matches(const RxTrain& train, std::span<const std::uint8_t> frame, std::uint32_t index) {
  const std::size_t covered = frame.size() - wire::kIcrcBytes;
  const std::uint32_t received = load_le(frame.data() + covered);
  wire::IpFacts ip{.source = train.source,
                   .destination = local_,
                   .source_port = train.source_port,
                   .udp_length = static_cast<std::uint16_t>(kUdpHeaderBytes + frame.size()),
                   .identification = static_cast<std::uint16_t>(index)};
  const auto compute = [&] {
    wire::Icrc icrc = seeds_.get(ip);
    icrc.packet(frame.first(covered));
    return icrc.value();
  };
  std::uint32_t computed = compute();
  if (computed != received && index != 0) {
    ip.identification = 0;
    computed = compute();
  }
  if (computed != received) {
    return infer(train.source, computed, received, wire::bytes_after_identification(ip.udp_length));
  }
  Trust& t = trust(train.source);
  t.level = std::min(kTrustMost, t.level + 1);
  return true;
}

std::uint64_t& Unpacker::count_of(wire::DecodeError error) {
  switch (error) {
    case wire::DecodeError::kUnknownOpcode:
      return counters_.rx_opcode;
    case wire::DecodeError::kUnknownMode:
      return counters_.rx_mode;
    case wire::DecodeError::kBadPad:
      return counters_.rx_pad;
    case wire::DecodeError::kUnexpectedPayload:
      return counters_.rx_payload;
    case wire::DecodeError::kTooShort:
      break;
  }
  return counters_.rx_short;
}

std::uint32_t Unpacker::unpack(const RxTrain& train, std::uint32_t from, RxBatch& out) {
  if (train.bytes == 0) {
    ++counters_.rx_frames;
    ++counters_.rx_short;
    return 0;
  }
  std::uint32_t index = train.first_index + from / train.frame_size;
  std::uint32_t at = from;
  for (; at < train.bytes && !out.full(); ++index) {
    const std::uint32_t size = std::min(train.frame_size, train.bytes - at);
    const std::span<const std::uint8_t> frame(train.data + at, size);
    at += size;
    ++counters_.rx_frames;
    wire::Decoded decoded;
    wire::DecodeError error{};
    if (!wire::decode(frame, decoded, error)) {
      ++count_of(error);
      continue;
    }
    if (icrc_ && !icrc_matches(train, frame, index)) {
      ++counters_.rx_icrc;
      continue;
    }
    wire::RxPacket& p = out.packets[out.size];
    p.header = decoded.header;
    p.source = train.source;
    p.payload = decoded.payload;
    p.tos = train.tos;
    out.payloads[out.size] = frame.data() + decoded.payload_offset;
    ++out.size;
  }
  return at;
}

}  // namespace weft::live
