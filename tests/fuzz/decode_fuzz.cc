// Any bytes as a UDP payload: decode must not crash nor read outside, and what it accepts must be stable:
//
//   bytes --decode--> header, payload --encode--> bytes' --decode--> the same header and payload
//
// bytes' may differ from bytes where the format says "ignored": reserved bits are cleared, payload and pad
// are not looked at. So encode may only clear bits of the headers that came in, never set one. The ICRC and
// the text form take the same bytes, as they would from a socket.
//
// The same bytes are read as an Ethernet frame, too, as they are and behind the headers of one, and what is
// read lies inside.
//
// The seeds in corpus/decode are the UDP payloads of data/vectors/packets.txt, written by make_corpus.py.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/wire/codec.h"
#include "core/wire/icrc.h"
#include "live/packet_io/frame.h"
#include "trace/text.h"

namespace {

using namespace weft;

// A whole packet with these headers around a payload of zeros.
std::vector<std::uint8_t> packet_of(const wire::Header& h, std::uint32_t payload) {
  std::vector<std::uint8_t> bytes(wire::kMaxHeaderBytes);
  bytes.resize(wire::encode(h, payload, bytes));
  bytes.resize(bytes.size() + payload + wire::pad_bytes(payload) + wire::kIcrcBytes, 0);
  return bytes;
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> input(data, size);
  read_as_frame(input);
  read_inside_a_frame(input);
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
