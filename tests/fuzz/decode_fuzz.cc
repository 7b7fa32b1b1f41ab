// Any bytes as a UDP payload: decode must not crash nor read outside, and what it accepts must be stable:
//
//   bytes --decode--> header, payload --encode--> bytes' --decode--> the same header and payload
//
// bytes' may differ from bytes where the format says "ignored": reserved bits are cleared, payload and pad
// are not looked at. So encode may only clear bits of the headers that came in, never set one. The ICRC and
// the text form take the same bytes, as they would from a socket.
//
// The seeds in corpus/decode are the UDP payloads of data/vectors/packets.txt, written by make_corpus.py.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/wire/codec.h"
#include "core/wire/icrc.h"
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> input(data, size);
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
