#include "live/wires/unpack.h"

#include <algorithm>
#include <utility>

#include "core/wire/codec.h"
#include "core/wire/icrc.h"
#include "core/wire/mad.h"

namespace weft::live {
namespace {

constexpr std::uint32_t kUdpHeaderBytes = 8;
constexpr std::int32_t kStrictest = 256;
constexpr std::int32_t kLeap = 64;  // frames of a train weigh 1
// A number is close to another if it is at most kAhead ahead of it (the sender numbers packets for others,
// too), or kBehind behind it.
constexpr std::uint16_t kAhead = 4096;
constexpr std::uint16_t kBehind = 256;

// `last` is 0 while there is none: every number of the kind `numbered` is larger.
bool close_to(std::uint16_t identification, std::uint16_t last) {
  return last != 0 && static_cast<std::uint16_t>(identification - last + kBehind) < kAhead + kBehind;
}

std::uint32_t load_le(const std::uint8_t* p) {
  std::uint32_t v = 0;
  for (unsigned i = 0; i < 4; ++i) v |= static_cast<std::uint32_t>(p[i]) << (8U * i);
  return v;
}

}  // namespace

Unpacker::Unpacker(const WireFacts& facts, bool icrc) : own_(facts.own), icrc_(icrc) {}

Unpacker::Source& Unpacker::source(const wire::Address& address) {
  const std::uint32_t mixed = load_le(&address.bytes[12]) * 0x9E37'79B1U;
  auto& set = sources_[mixed >> (32U - kSetBits)];
  if (set[0].address == address) return set[0];
  auto at = std::find_if(set.begin(), set.end(), [&](const Source& s) { return s.address == address; });
  if (at == set.end()) {
    --at;
    const bool replaces = at->address != wire::Address{};
    *at = Source{.address = address, .strictness = replaces ? kStrictest : 0};
  }
  std::rotate(set.begin(), at, at + 1);
  return set[0];
}

bool Unpacker::believable(Source& s, std::uint16_t identification) {
  const std::uint16_t leap = s.leap;
  s.leap = 0;
  if (identification < kMostTrainFrames) {
    s.strictness = std::min(kStrictest, s.strictness + 1);
    return true;
  }
  if (close_to(identification, s.last)) {
    s.strictness = std::max(0, s.strictness - 1);
  } else {
    const bool believed = s.strictness == 0 || close_to(identification, leap);
    s.strictness = std::max(0, s.strictness - kLeap);
    if (!believed) {
      s.leap = identification;
      return false;
    }
  }
  s.last = identification;
  return true;
}

bool Unpacker::icrc_matches(Source& s, const RxTrain& train, std::span<const std::uint8_t> frame) {
  const std::size_t covered = frame.size() - wire::kIcrcBytes;
  const std::uint32_t received = load_le(frame.data() + covered);
  const wire::IpFacts ip{.source = train.source,
                         .destination = destination_of(train),
                         .source_port = train.source_port,
                         .udp_length = static_cast<std::uint16_t>(kUdpHeaderBytes + frame.size()),
                         .identification = s.next};
  wire::Icrc icrc = seeds_.get(ip);
  icrc.packet(frame.first(covered));
  std::uint16_t difference = 0;
  const bool inferred = icrc.value() != received;
  // The difference of two CRCs is that of their identifications, wound back.
  if (inferred && !wire::solve_identification(icrc.value(), received,
                                              wire::bytes_after_identification(ip.udp_length), difference)) {
    s.strictness = std::min(kStrictest, s.strictness + kLeap);
    return false;
  }
  const auto identification = static_cast<std::uint16_t>(s.next ^ difference);
  if (!believable(s, identification)) return false;
  if (inferred) ++counters_.icrc_id_inferred;
  if (inferred && identification >= kMostTrainFrames) ++counters_.icrc_id_numbered;
  s.still = identification == 0 && (s.still || s.next == 1);
  s.next = s.still ? std::uint16_t{0} : static_cast<std::uint16_t>(identification + 1);
  return true;
}

bool Unpacker::icrc_matches_v6(const RxTrain& train, std::span<const std::uint8_t> frame) {
  const std::size_t covered = frame.size() - wire::kIcrcBytes;
  wire::Icrc icrc = seeds_.get({.source = train.source,
                                .destination = destination_of(train),
                                .source_port = train.source_port,
                                .udp_length = static_cast<std::uint16_t>(kUdpHeaderBytes + frame.size())});
  icrc.packet(frame.first(covered));
  return icrc.value() == load_le(frame.data() + covered);
}

// The frame at byte `at` of a train whose IPv4 header the wire saw. What the kernel joined was numbered one
// by one, or, by a sender that numbers nothing, all alike.
bool Unpacker::icrc_matches_header(const RxTrain& train, std::uint32_t at,
                                   std::span<const std::uint8_t> frame) {
  const std::size_t covered = frame.size() - wire::kIcrcBytes;
  const std::uint32_t received = load_le(frame.data() + covered);
  wire::IpFacts ip{.source = train.source,
                   .destination = destination_of(train),
                   .source_port = train.source_port,
                   .udp_length = static_cast<std::uint16_t>(kUdpHeaderBytes + frame.size()),
                   .identification = static_cast<std::uint16_t>(train.identification + at / train.frame_size),
                   .dont_fragment = train.dont_fragment};
  const auto matches = [&] {
    // Remembered is the usual header, which asks not to be fragmented.
    wire::Icrc icrc = ip.dont_fragment ? seeds_.get(ip) : wire::Icrc(ip);
    icrc.packet(frame.first(covered));
    return icrc.value() == received;
  };
  if (matches()) return true;
  if (ip.identification == train.first) return false;
  ip.identification = train.first;
  return matches();
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
  if (train.stray) {
    const std::uint32_t frames = (train.bytes + train.frame_size - 1) / train.frame_size;
    counters_.rx_frames += frames;
    counters_.rx_port += frames;
    return train.bytes;
  }
  const bool v4 = wire::is_v4_mapped(train.source);
  const wire::Address* const to = train.for_group() ? &train.group : own_.second_if_towards(train.source);
  Source& s = source(train.source);
  if (from == 0 && train.bytes > train.frame_size) {
    s.next = 0;
    s.still = false;
  }
  std::uint32_t at = from;
  while (at < train.bytes && !out.full()) {
    const std::uint32_t size = std::min(train.frame_size, train.bytes - at);
    const std::span<const std::uint8_t> frame(train.data + at, size);
    const std::uint32_t frame_at = std::exchange(at, at + size);
    ++counters_.rx_frames;
    wire::Decoded decoded;
    wire::DecodeError error{};
    if (!wire::decode(frame, decoded, error)) {
      ++count_of(error);
      continue;
    }
    const auto right = [&] {
      if (!v4) return icrc_matches_v6(train, frame);
      return train.header_seen ? icrc_matches_header(train, frame_at, frame) : icrc_matches(s, train, frame);
    };
    if (icrc_ && !right()) {
      ++counters_.rx_icrc;
      continue;
    }
    wire::RxPacket& p = out.packets[out.size];
    p.header = decoded.header;
    if (p.header.dest_qp == wire::kGeneralServices) [[unlikely]]
      out.for_services = true;
    p.source = train.source;
    p.payload = decoded.payload;
    p.tos = train.tos;
    p.ttl = train.ttl;
    p.group = to;
    out.payloads[out.size] = frame.data() + decoded.payload_offset;
    ++out.size;
  }
  return at;
}

}  // namespace weft::live
