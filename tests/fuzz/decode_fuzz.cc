// Any bytes as a UDP payload: decode must not crash nor read outside, and what it accepts must be stable:
//
//   bytes --decode--> header, payload --encode--> bytes' --decode--> the same header and payload
//
// bytes' may differ from bytes where the format says "ignored": reserved bits are cleared, payload and pad
// are not looked at. So encode may only clear bits of the headers that came in, never set one. The ICRC and
// the text form take the same bytes, as they would from a socket.
//
// The same bytes come as a train, over IPv4 and over IPv6, to a process that has an address of each: what is
// taken of it lies inside. As the 40 bytes in front of a datagram they are no header, or the same one when it
// is written again.
//
// The same bytes are read as an Ethernet frame, too, as they are and behind the headers of one, and what is
// read lies inside.
//
// The seeds in corpus/decode are the UDP payloads of data/vectors/packets.txt, written by make_corpus.py.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/wire/codec.h"
#include "core/wire/icrc.h"
#include "core/wire/ip.h"
#include "live/packet_io/frame.h"
#include "live/wires/unpack.h"
#include "trace/text.h"
#include "wan/logic/config.h"
#include "wan/logic/parity_frame.h"

namespace {

using namespace weft;

// A whole packet with these headers around a payload of zeros.
std::vector<std::uint8_t> packet_of(const wire::Header& h, std::uint32_t payload) {
  std::vector<std::uint8_t> bytes(wire::kMaxHeaderBytes);
  bytes.resize(wire::encode(h, payload, bytes));
  bytes.resize(bytes.size() + payload + wire::pad_bytes(payload) + wire::kIcrcBytes, 0);
  return bytes;
}

// The header of a parity frame: what is read is what would be written, but for the signature.
void read_as_parity(std::span<const std::uint8_t> input) {
  static const wan::Hmac key(std::vector<std::uint8_t>{1});
  wan::ParityHeader h;
  if (!wan::decode(input, h)) return;
  CHECK_OP(h.members(), <=, wan::ParityTerms::kMostData);
  (void)wan::authentic(input, key);
  wan::ParityBytes bytes;
  const std::uint32_t n = wan::encode(h, key, bytes);
  CHECK_OP(n, <=, input.size());
  wan::ParityHeader back;
  CHECK(wan::decode(bytes, back) && back == h && wan::authentic(bytes, key));
}

void read_as_frame(std::span<const std::uint8_t> frame) {
  for (const auto checksum : {live::UdpChecksum::kLook, live::UdpChecksum::kVouched}) {
    live::Datagram d;
    live::FrameError error{};
    if (!live::read_frame(frame, checksum, d, error)) {
      CHECK_OP(static_cast<std::size_t>(error), <, live::kFrameErrorTexts.size());
      continue;
    }
    CHECK_OP(std::size_t{d.payload_offset} + d.payload, <=, frame.size());
    wire::Decoded decoded;
    wire::DecodeError why{};
    wire::decode(frame.subspan(d.payload_offset, d.payload), decoded, why);
  }
}

// With its first bytes as the IPv4 header's, mended so that they are looked at.
void read_inside_a_frame(std::span<const std::uint8_t> input) {
  if (input.size() > 60'000) return;
  std::vector<std::uint8_t> frame(live::kFrameHeaders + input.size());
  live::write_frame_headers({.to = {},
                             .from = {},
                             .ip = {.source = wire::Address::v4(10, 0, 0, 1),
                                    .destination = wire::Address::v4(10, 0, 0, 2),
                                    .udp_length = static_cast<std::uint16_t>(wire::kUdpBytes + input.size())},
                             .source_port = 4791,
                             .destination_port = 4791},
                            std::span(frame).first<live::kFrameHeaders>());
  std::copy(input.begin(), input.end(), frame.begin() + live::kFrameHeaders);
  live::Datagram d;
  live::FrameError error{};
  CHECK(live::read_frame(frame, live::UdpChecksum::kLook, d, error));
  CHECK_OP(d.payload, ==, input.size());
  if (input.size() < 4) return;
  frame[live::kEthernetBytes + input[0] % 28U] = input[1];
  frame.resize(frame.size() - input[2] % frame.size());
  frame.shrink_to_fit();
  read_as_frame(frame);
}

wire::Address v6_host(std::uint8_t n) {
  wire::Address a;
  a.bytes[0] = 0xFD;
  a.bytes[15] = n;
  return a;
}

// Frames of any size, with their ICRC looked at and without.
void read_as_train(std::span<const std::uint8_t> input) {
  if (input.size() < 2) return;
  std::vector<std::uint8_t> bytes(input.begin() + 1, input.end());
  live::WireFacts facts;
  facts.own = {wire::Address::v4(10, 0, 0, 2), v6_host(2)};
  for (const wire::Address& source : {wire::Address::v4(10, 0, 0, 1), v6_host(1)}) {
    for (const bool icrc : {false, true}) {
      const auto unpacker = std::make_unique<live::Unpacker>(facts, icrc);
      live::RxTrain t;
      t.data = bytes.data();
      t.bytes = static_cast<std::uint32_t>(bytes.size());
      t.frame_size = 1 + input[0] * 8U;
      t.source = source;
      t.source_port = 4791;
      t.header_seen = (input[0] & 1U) != 0;
      std::uint32_t at = 0;
      while (at < t.bytes) {
        const auto batch = std::make_unique<live::RxBatch>();
        const std::uint32_t next = unpacker->unpack(t, at, *batch);
        CHECK(next > at && next <= t.bytes);
        at = next;
        for (std::size_t i = 0; i < batch->size; ++i) {
          CHECK(batch->payloads[i] >= bytes.data());
          CHECK(batch->payloads[i] + batch->packets[i].payload <= bytes.data() + bytes.size());
          // It came to our address of its source's family, which is the second over IPv6.
          CHECK((batch->packets[i].group != nullptr) == !wire::is_v4_mapped(source));
        }
      }
    }
  }
}

void read_as_grh(std::span<const std::uint8_t> input) {
  if (input.size() < wire::kGrhBytes) return;
  wire::IpHeader first;
  if (!wire::read_grh(input.first<wire::kGrhBytes>(), first)) return;
  const bool v4 = wire::is_v4_mapped(first.source) && wire::is_v4_mapped(first.destination);
  if (v4 && input[0] >> 4U == 6) return;  // IPv6 between mapped addresses, which is written as IPv4
  std::array<std::uint8_t, wire::kGrhBytes> again;
  wire::write_grh(first, again);
  wire::IpHeader second;
  CHECK(wire::read_grh(again, second));
  CHECK(second == first);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> input(data, size);
  read_as_train(input);
  read_as_grh(input);
  read_as_frame(input);
  read_inside_a_frame(input);
  read_as_parity(input);
  wire::Icrc as_frame(input);
  as_frame.packet(input);

  wire::Decoded first;
  wire::DecodeError error{};
  if (!wire::decode(input, first, error)) return 0;
  const std::size_t headers = wire::header_bytes(first.header);
  CHECK_OP(first.payload_offset, ==, headers);
  CHECK_OP(headers + first.payload + wire::pad_bytes(first.payload) + wire::kIcrcBytes, ==, size);
  CHECK(!wire::opcode_name(first.header.opcode).empty());
  CHECK(!trace::to_text(first.header, first.payload).empty());

  const std::vector<std::uint8_t> bytes = packet_of(first.header, first.payload);
  CHECK_OP(bytes.size(), ==, size);
  wire::Decoded second;
  CHECK(wire::decode(bytes, second, error));
  CHECK(second.header == first.header);
  CHECK_OP(second.payload, ==, first.payload);
  CHECK(packet_of(second.header, second.payload) == bytes);
  // Whatever encode wrote was in the input; encode only ever clears bits.
  for (std::size_t i = 0; i < headers; ++i)
    CHECK_OP(bytes[i] & static_cast<unsigned>(~data[i]) & 0xFFU, ==, 0U);
  return 0;
}
