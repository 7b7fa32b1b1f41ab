// decode and encode against each other: every opcode in every mode with seeded random fields, every
// truncation, every pad count, and input that is no packet at all.
#include "core/wire/codec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/prng.h"
#include "core/wire/bytes.h"

namespace weft::wire {
namespace {

using Packet = std::vector<std::uint8_t>;

std::uint32_t low(std::uint64_t v, unsigned bits) {
  return static_cast<std::uint32_t>(v & ((1ULL << bits) - 1U));
}

// A Header with random values in exactly the fields that its layout carries. Written from the
// field lists of docs/protocol/packets.md, irn.md and srnic.md, not from the codec.
Header random_header(std::uint8_t opcode, Mode mode, std::uint8_t syndrome, Prng& prng) {
  Header h;
  h.opcode = opcode;
  h.mode = mode;
  h.bits = low(prng.next(), 5) & 0x1FU;
  h.pkey = static_cast<std::uint16_t>(prng.next());
  h.psn = {low(prng.next(), 24)};
  h.dest_qp = {low(prng.next(), 24)};
  for (const Ext ext : ext_layout(opcode, mode, syndrome).ext) {
    switch (ext) {
      case Ext::kNone:
      case Ext::kCnpPad:
        break;
      case Ext::kReth:
        h.dma_len = low(prng.next(), 32);
        [[fallthrough]];
      case Ext::kWax:
        h.va = prng.next();
        h.rkey = {low(prng.next(), 32)};
        break;
      case Ext::kDeth:
        h.set_deth(low(prng.next(), 32), {low(prng.next(), 24)});
        break;
      case Ext::kAeth:
        h.set_aeth(syndrome, low(prng.next(), 24));
        break;
      case Ext::kAtomicEth:
        h.va = prng.next();
        h.rkey = {low(prng.next(), 32)};
        h.a = prng.next();
        h.b = prng.next();
        break;
      case Ext::kAtomicAck:
        h.va = prng.next();
        break;
      case Ext::kImm:
      case Ext::kIeth:
        h.imm = low(prng.next(), 32);
        break;
      case Ext::kSnx:
        h.psn_offset = low(prng.next(), 24);
        [[fallthrough]];
      case Ext::kRsn:
        h.sn = low(prng.next(), 24);
        break;
      case Ext::kSack:
        h.ext_flags = static_cast<std::uint8_t>(prng.next() & 0xC0U);
        h.set_sack({low(prng.next(), 24)});
        break;
      case Ext::kSrx:
        h.srx_msn = low(prng.next(), 24);
        h.psn_offset = low(prng.next(), 24);
        h.sn = low(prng.next(), 16);
        break;
      case Ext::kEcx:
        h.ext_flags = static_cast<std::uint8_t>(prng.next() & 0xE0U);
        h.set_sack({low(prng.next(), 24)});
        h.set_echo(low(prng.next(), 24), low(prng.next(), 24));
        h.set_hole(static_cast<std::uint8_t>(prng.next()), static_cast<std::uint8_t>(prng.next()));
        break;
    }
  }
  return h;
}

Packet packet_of(const Header& h, std::uint32_t payload) {
  Packet p(kMaxHeaderBytes, 0xEE);
  p.resize(encode(h, payload, p));
  p.insert(p.end(), payload, 0xDA);
  p.insert(p.end(), pad_bytes(payload) + kIcrcBytes, 0);
  return p;
}

// Calls f(opcode, mode, syndrome) for all that weft speaks, with one syndrome of each kind.
template <class F>
void for_each_packet_kind(F f) {
  for (unsigned op = 0; op < 256; ++op) {
    for (unsigned m = 0; m < kModeCount; ++m) {
      for (const unsigned syndrome : {0x00U, 0x1FU, 0x2CU, 0x45U, 0x60U, 0x61U, 0x63U, 0xFFU}) {
        const auto opcode = static_cast<std::uint8_t>(op);
        if (!ext_layout(opcode, static_cast<Mode>(m)).known) continue;
        f(opcode, static_cast<Mode>(m), static_cast<std::uint8_t>(syndrome));
      }
    }
  }
}

TEST(Codec, WhatWasEncodedDecodesToTheSameHeaderForEveryOpcodeAndMode) {
  Prng prng(1);
  int kinds = 0;
  for_each_packet_kind([&](std::uint8_t opcode, Mode mode, std::uint8_t syndrome) {
    ++kinds;
    for (std::uint32_t round = 0; round < 20; ++round) {
      const Header h = random_header(opcode, mode, syndrome, prng);
      const std::uint32_t payload = ext_layout(opcode, mode, syndrome).payload ? round : 0;
      const Packet p = packet_of(h, payload);
      Decoded d;
      DecodeError error{};
      ASSERT_TRUE(decode(p, d, error)) << opcode_name(opcode) << " mode " << static_cast<int>(mode);
      ASSERT_EQ(d.header, h) << opcode_name(opcode) << " mode " << static_cast<int>(mode);
      ASSERT_EQ(d.payload, payload);
      ASSERT_EQ(d.payload_offset, header_bytes(h));
    }
  });
  // 23 RC opcodes in three modes and 0x18 in two; 12 UC, 2 UD in one; the CNP in three; 8 syndromes each.
  EXPECT_EQ(kinds, (23 * 3 + 2 + 12 + 2 + 3) * 8);
}

TEST(Codec, EveryTruncationIsRefusedOrIsAShorterPayload) {
  Prng prng(2);
  for_each_packet_kind([&](std::uint8_t opcode, Mode mode, std::uint8_t syndrome) {
    const Header h = random_header(opcode, mode, syndrome, prng);
    const Packet p = packet_of(h, ext_layout(opcode, mode, syndrome).payload ? 8 : 0);
    for (std::size_t n = 0; n < p.size(); ++n) {
      const Packet cut(p.begin(),
                       p.begin() + static_cast<std::ptrdiff_t>(n));  // so that a sanitizer sees over-reads
      Decoded d;
      d.payload = 77;
      DecodeError error{};
      if (decode(cut, d, error)) {
        ASSERT_EQ(d.header, h);
        ASSERT_EQ(d.payload_offset + d.payload + kIcrcBytes, n);
      } else {
        ASSERT_EQ(d.payload, 77U) << "a refused packet must leave the result alone";
      }
      if (n < header_bytes(h) + kIcrcBytes) {
        ASSERT_EQ(error, DecodeError::kTooShort);
      }
    }
  });
}

TEST(Codec, ReservedBitsAreIgnoredWhenReceivedAndZeroWhenSent) {
  Header h;
  h.opcode = kSendOnly;
  Packet p = packet_of(h, 4);
  EXPECT_EQ(p[4] & 0x3FU, 0U);
  EXPECT_EQ(p[8] & 0x7FU, 0U);
  p[4] |= 0x3FU;
  p[8] |= 0x7FU;
  Decoded d;
  DecodeError error{};
  ASSERT_TRUE(decode(p, d, error));
  EXPECT_EQ(d.header, h);

  h.opcode = kReadRequest;
  h.mode = Mode::kIrn;
  p = packet_of(h, 0);
  p[12] = 0xFF;  // RSN's reserved byte
  ASSERT_TRUE(decode(p, d, error));
  EXPECT_EQ(d.header, h);

  h = {};
  h.opcode = kAcknowledge;
  h.mode = Mode::kIrn;
  h.set_aeth(kSyndromeNakSequence, 5);
  h.ext_flags = 0xFF;
  h.set_sack({9});
  p = packet_of(h, 0);
  EXPECT_EQ(p[16], kCeEcho | kSackNotKept);
}

// A four-byte payload: PadCnt 0 fits, every other count contradicts the length.
TEST(Codec, APadCountThatDoesNotRoundThePayloadToFourIsRefused) {
  Header h;
  h.opcode = kSendOnly;
  for (std::uint8_t pad = 1; pad < 4; ++pad) {
    Packet p = packet_of(h, 1);  // one byte and three of pad
    p[1] = static_cast<std::uint8_t>(pad << 4U);
    Decoded d;
    DecodeError error{};
    EXPECT_TRUE(decode(p, d, error)) << int{pad};
    EXPECT_EQ(d.payload, 4U - pad);
    p.pop_back();  // three bytes behind the headers now: no pad count makes that a packet
    EXPECT_FALSE(decode(p, d, error));
    EXPECT_EQ(error, DecodeError::kBadPad);
  }
  Packet empty = packet_of(h, 0);
  empty[1] = 0x30;
  Decoded d;
  DecodeError error{};
  EXPECT_FALSE(decode(empty, d, error));
  EXPECT_EQ(error, DecodeError::kBadPad);
}

TEST(Codec, APayloadWhereNoneBelongsIsRefused) {
  for (const std::uint8_t opcode :
       {kReadRequest, kAcknowledge, kAtomicAcknowledge, kCompareSwap, kFetchAdd, kCnp}) {
    Header h;
    h.opcode = opcode;
    Packet p = packet_of(h, 0);
    p.insert(p.end(), 4, 0);
    Decoded d;
    DecodeError error{};
    EXPECT_FALSE(decode(p, d, error)) << opcode_name(opcode);
    EXPECT_EQ(error, DecodeError::kUnexpectedPayload);
  }
}

TEST(Codec, OpcodesAndModesThatWeftDoesNotSpeakAreRefused) {
  Decoded d;
  DecodeError error{};
  for (const unsigned op :
       {0x15U, 0x18U, 0x19U, 0x1CU, 0x1DU, 0x2CU, 0x36U, 0x40U, 0x60U, 0x66U, 0x80U, 0xA0U, 0xFFU}) {
    Packet p(64, 0);
    p[0] = static_cast<std::uint8_t>(op);
    EXPECT_FALSE(decode(p, d, error)) << op;
    EXPECT_EQ(error, DecodeError::kUnknownOpcode) << op;
    EXPECT_EQ(opcode_name(p[0]).empty(), op != kReadAcknowledge) << op;
  }
  for (std::uint8_t tver = 3; tver < 16; ++tver) {
    Packet p(64, 0);
    p[1] = tver;
    EXPECT_FALSE(decode(p, d, error));
    EXPECT_EQ(error, DecodeError::kUnknownMode);
  }
  Packet uc_in_irn(64, 0);
  uc_in_irn[0] = 0x24;
  uc_in_irn[1] = 1;
  EXPECT_FALSE(decode(uc_in_irn, d, error));
  EXPECT_EQ(error, DecodeError::kUnknownOpcode);
}

// docs/protocol/irn.md#acks-and-nacks, srnic.md#echoes: IRN reports only what a sequence NAK has to say,
// SRNIC echoes every trigger, and RNR and error NAKs look plain everywhere.
TEST(Codec, AnAcknowledgementIsAsLongAsItsSyndromeAndModeAsk) {
  struct Case {
    std::uint8_t syndrome;
    std::size_t roce, irn, srnic;
  };
  for (const Case& c :
       {Case{kSyndromeAck, 16, 16, 28}, Case{0x00, 16, 16, 28}, Case{kSyndromeNakSequence, 16, 20, 28},
        Case{kSyndromeRnr | 12, 16, 16, 16}, Case{kSyndromeNakInvalid, 16, 16, 16},
        Case{kSyndromeNakAccess, 16, 16, 16}, Case{kSyndromeNakOperation, 16, 16, 16}}) {
    Header h;
    h.opcode = kAcknowledge;
    h.set_aeth(c.syndrome, 1);
    EXPECT_EQ(header_bytes(h), c.roce) << int{c.syndrome};
    h.mode = Mode::kIrn;
    EXPECT_EQ(header_bytes(h), c.irn) << int{c.syndrome};
    h.mode = Mode::kSrnic;
    EXPECT_EQ(header_bytes(h), c.srnic) << int{c.syndrome};
  }
}

// The totals of docs/protocol/irn.md#layouts and srnic.md#layouts, and the 58, 66 and 78 bytes of SRNIC
// §4.4.1: all with 14 + 20 + 8 bytes in front and the ICRC behind.
TEST(Codec, HeaderSizesAreTheOnesOfThePapers) {
  constexpr std::size_t kAround = 14 + 20 + 8 + kIcrcBytes;
  const auto size = [](std::uint8_t opcode, Mode mode) {
    Header h;
    h.opcode = opcode;
    h.mode = mode;
    return header_bytes(h) + kAround;
  };
  EXPECT_EQ(size(kSendMiddle, Mode::kRoce), 58U);
  EXPECT_EQ(size(kSendMiddle, Mode::kIrn), 64U);
  EXPECT_EQ(size(kSendOnlyImm, Mode::kIrn), 68U);
  EXPECT_EQ(size(kWriteMiddle, Mode::kIrn), 74U);
  EXPECT_EQ(size(kWriteLastImm, Mode::kIrn), 84U);
  EXPECT_EQ(size(kReadRequest, Mode::kIrn), 78U);
  EXPECT_EQ(size(kFetchAdd, Mode::kIrn), 90U);
  EXPECT_EQ(size(kAtomicAcknowledge, Mode::kIrn), 70U);
  EXPECT_EQ(size(kSendMiddle, Mode::kSrnic), 66U);
  EXPECT_EQ(size(kWriteMiddle, Mode::kSrnic), 78U);
  EXPECT_EQ(size(kWriteOnlyImm, Mode::kSrnic), 82U);
  EXPECT_EQ(size(kReadRequest, Mode::kSrnic), 82U);
  EXPECT_EQ(size(kCompareSwap, Mode::kSrnic), 94U);
  EXPECT_EQ(size(kReadResponseMiddle, Mode::kSrnic), 66U);
  EXPECT_EQ(size(kReadResponseLast, Mode::kSrnic), 70U);
  EXPECT_EQ(size(kAtomicAcknowledge, Mode::kSrnic), 78U);
  EXPECT_EQ(size(kCnp, Mode::kRoce), 74U);
}

// Half the inputs are noise, half are noise behind a first byte that is an opcode. Whatever decodes must
// encode to something that decodes to the same.
TEST(Codec, RandomBytesNeverSurpriseTheDecoder) {
  Prng prng(3);
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    Packet p(prng.below(80));
    for (std::uint8_t& b : p) b = static_cast<std::uint8_t>(prng.next());
    if (p.size() > 1 && prng.below(2) == 0) {
      p[0] = static_cast<std::uint8_t>(prng.below(0x19));
      p[1] = static_cast<std::uint8_t>(p[1] & 0xF3U);
    }
    Decoded first;
    DecodeError error{};
    if (!decode(p, first, error)) continue;
    ++accepted;
    ASSERT_LE(first.payload_offset + first.payload + kIcrcBytes, p.size());
    Decoded second;
    ASSERT_TRUE(decode(packet_of(first.header, first.payload), second, error));
    ASSERT_EQ(first.header, second.header);
    ASSERT_EQ(first.payload, second.payload);
  }
  EXPECT_GT(accepted, 5'000);
}

}  // namespace
}  // namespace weft::wire
