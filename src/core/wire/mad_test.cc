// MADs against the tables of docs/protocol/connection-manager.md and modes.md: places of fields written out
// by hand, then random bytes through decode and encode. tshark's opinion is asked in trace/mad_test.cc.
#include "core/wire/mad.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/prng.h"
#include "core/wire/bytes.h"

namespace weft::wire {
namespace {

constexpr CmKind kKinds[] = {CmKind::kReq,  CmKind::kMra,  CmKind::kRej,     CmKind::kRep,    CmKind::kRtu,
                             CmKind::kDreq, CmKind::kDrep, CmKind::kSidrReq, CmKind::kSidrRep};

Mad mad_of(const CmMessage& m) {
  Mad mad;
  mad.fill(0xEE);
  encode(m, mad);
  return mad;
}
const std::uint8_t* body(const Mad& mad) { return mad.data() + kMadHeaderBytes; }

Mad random_mad(std::uint16_t attribute, Prng& prng) {
  Mad mad;
  for (std::uint8_t& b : mad) b = static_cast<std::uint8_t>(prng.next());
  mad[0] = 1;
  mad[1] = 0x07;
  mad[2] = 2;
  mad[3] = 3;
  store_be16(mad.data() + 16, attribute);
  return mad;
}

TEST(CmMessages, TheHeaderSaysWhatFollows) {
  CmMessage m;
  m.kind = CmKind::kDrep;
  m.transaction = 0x0102030405060708;
  m.modifier = 0xA1A2A3A4;
  const Mad mad = mad_of(m);
  const std::vector<std::uint8_t> want = {1, 7, 2, 3, 0, 0,    0, 0, 1,    2,    3,    4,
                                          5, 6, 7, 8, 0, 0x16, 0, 0, 0xA1, 0xA2, 0xA3, 0xA4};
  EXPECT_EQ(std::vector<std::uint8_t>(mad.begin(), mad.begin() + 24), want);
}

// The frame offsets of docs/protocol/connection-manager.md#what-a-box-on-the-path-must-trace, less the 62
// bytes in front of the MAD.
TEST(CmMessages, WhatAnAcceleratorTracesLiesWhereItLooks) {
  CmMessage req;
  req.kind = CmKind::kReq;
  req.local_id = 0xC0000001;
  req.qpn = {0x11};
  req.starting_psn = {0x123456};
  req.retry_count = 7;
  req.ack_timeout = 19;
  Mad mad = mad_of(req);
  EXPECT_EQ(load_be32(mad.data() + 86 - 62), 0xC0000001U);
  EXPECT_EQ(load_be24(mad.data() + 118 - 62), 0x11U);
  EXPECT_EQ(load_be24(mad.data() + 130 - 62), 0x123456U);
  EXPECT_EQ(body(mad)[47] & 7U, 7U);
  EXPECT_EQ(body(mad)[95] >> 3U, 19U);

  CmMessage rep;
  rep.kind = CmKind::kRep;
  rep.remote_id = 0xC0000001;
  rep.qpn = {0x22};
  rep.starting_psn = {0x654321};
  mad = mad_of(rep);
  EXPECT_EQ(load_be32(mad.data() + 90 - 62), 0xC0000001U);
  EXPECT_EQ(load_be24(mad.data() + 98 - 62), 0x22U);
  EXPECT_EQ(load_be24(mad.data() + 106 - 62), 0x654321U);
}

// Fields narrower than a byte, and the vendor id in its pieces.
TEST(CmMessages, SmallFieldsShareTheirBytesAsDrawn) {
  CmMessage req;
  req.kind = CmKind::kReq;
  req.remote_response_timeout = 20;
  req.transport = 3;
  req.flow_control = 1;
  req.local_response_timeout = 18;
  req.retry_count = 5;
  req.mtu = 3;
  req.rnr_retry = 6;
  req.max_cm_retries = 15;
  req.srq = 1;
  req.extended_transport = 1;
  req.flow_label = 0xABCDE;
  req.packet_rate = 0x3F;
  req.service_level = 9;
  req.subnet_local = 1;
  req.vendor_id = 0x025253;
  Mad mad = mad_of(req);
  EXPECT_EQ(body(mad)[43], 20U << 3U | 3U << 1U | 1U);
  EXPECT_EQ(body(mad)[47], 18U << 3U | 5U);
  EXPECT_EQ(body(mad)[50], 3U << 4U | 6U);
  EXPECT_EQ(body(mad)[51], 15U << 4U | 1U << 3U | 1U);
  EXPECT_EQ(load_be32(body(mad) + 88), 0xABCDE03FU);
  EXPECT_EQ(body(mad)[94], 9U << 4U | 1U << 3U);
  EXPECT_EQ(load_be24(body(mad) + 5), 0x025253U);

  CmMessage rep;
  rep.kind = CmKind::kRep;
  rep.vendor_id = 0x025253;
  rep.target_ack_delay = 15;
  rep.failover = 2;
  rep.flow_control = 1;
  rep.rnr_retry = 7;
  rep.srq = 1;
  mad = mad_of(rep);
  EXPECT_EQ(body(mad)[15], 0x02);
  EXPECT_EQ(body(mad)[19], 0x52);
  EXPECT_EQ(body(mad)[23], 0x53);
  EXPECT_EQ(body(mad)[26], 15U << 3U | 2U << 1U | 1U);
  EXPECT_EQ(body(mad)[27], 7U << 5U | 1U << 4U);

  CmMessage mra;
  mra.kind = CmKind::kMra;
  mra.about = kAboutRep;
  mra.service_timeout = 24;
  mad = mad_of(mra);
  EXPECT_EQ(body(mad)[8], 1U << 6U);
  EXPECT_EQ(body(mad)[9], 24U << 3U);

  CmMessage rej;
  rej.kind = CmKind::kRej;
  rej.about = kAboutOther;
  rej.info_length = 72;
  rej.reason = kRejConsumer;
  rej.info[71] = 0x99;
  mad = mad_of(rej);
  EXPECT_EQ(body(mad)[8], 2U << 6U);
  EXPECT_EQ(body(mad)[9], 72U << 1U);
  EXPECT_EQ(load_be16(body(mad) + 10), 28U);
  EXPECT_EQ(body(mad)[83], 0x99);

  CmMessage sidr;
  sidr.kind = CmKind::kSidrRep;
  sidr.local_id = 0x01020304;
  sidr.reason = kSidrRejected;
  sidr.info_length = 4;
  sidr.vendor_id = 0x025253;
  sidr.qpn = {0x33};
  sidr.service_id = service_id(PortSpace::kUdp, 7471);
  sidr.qkey = 0x01234567;
  mad = mad_of(sidr);
  const std::vector<std::uint8_t> want = {1, 2, 3, 4, 2,    4,    0x02, 0x52, 0,    0,    0x33, 0x53,
                                          0, 0, 0, 0, 0x01, 0x11, 0x1D, 0x2F, 0x01, 0x23, 0x45, 0x67};
  EXPECT_EQ(std::vector<std::uint8_t>(body(mad), body(mad) + 24), want);
}

TEST(CmMessages, PrivateDataFillsTheRestOfTheBody) {
  // docs/protocol/connection-manager.md, the last row of each message.
  const std::size_t want[] = {92, 222, 148, 196, 224, 220, 224, 216, 136};
  for (std::size_t k = 0; k < std::size(kKinds); ++k) {
    EXPECT_EQ(private_bytes(kKinds[k]), want[k]) << cm_name(kKinds[k]);
    CmMessage m;
    m.kind = kKinds[k];
    m.private_data.fill(0x77);
    const Mad mad = mad_of(m);
    EXPECT_EQ(std::count(mad.end() - static_cast<std::ptrdiff_t>(want[k]), mad.end(), 0x77),
              static_cast<std::ptrdiff_t>(want[k]));
    EXPECT_NE(mad[kMadBytes - want[k] - 1], 0x77) << cm_name(kKinds[k]);
  }
}

// Any body decodes; encoding it again sets no bit that was clear and loses none that a field holds.
TEST(CmMessages, RandomBodiesSurviveDecodeAndEncode) {
  Prng prng(11);
  for (int i = 0; i < 20'000; ++i) {
    const CmKind kind = kKinds[prng.below(std::size(kKinds))];
    const Mad mad = random_mad(static_cast<std::uint16_t>(kind), prng);
    CmMessage first, second;
    MadError error{};
    ASSERT_TRUE(decode(mad, first, error));
    ASSERT_EQ(first.kind, kind);
    const Mad again = mad_of(first);
    for (std::size_t b = 0; b < kMadBytes; ++b) ASSERT_EQ(again[b] & ~unsigned{mad[b]}, 0U) << b;
    ASSERT_TRUE(decode(again, second, error));
    ASSERT_EQ(first, second);
  }
}

// Every bit of every row comes back alone: no two rows share one, none reaches into its neighbour.
TEST(CmMessages, NoBitBelongsToTwoFields) {
  for (const CmKind kind : kKinds) {
    Prng prng(1);
    Mad empty = random_mad(static_cast<std::uint16_t>(kind), prng);
    std::fill(empty.begin() + kMadHeaderBytes, empty.end(), std::uint8_t{0});
    std::fill(empty.begin() + 4, empty.begin() + 8, std::uint8_t{0});
    std::ptrdiff_t carried = 0;
    for (std::size_t bit = 0; bit < 8 * (kMadBytes - kMadHeaderBytes); ++bit) {
      Mad one = empty;
      one[kMadHeaderBytes + bit / 8] = static_cast<std::uint8_t>(1U << bit % 8);
      CmMessage m;
      MadError error{};
      ASSERT_TRUE(decode(one, m, error));
      const Mad again = mad_of(m);
      const auto bits =
          std::count_if(again.begin() + kMadHeaderBytes, again.end(), [](std::uint8_t b) { return b != 0; });
      ASSERT_LE(bits, 1) << cm_name(kind) << " bit " << bit;
      if (bits == 1) {
        ASSERT_EQ(again[kMadHeaderBytes + bit / 8], one[kMadHeaderBytes + bit / 8]);
      }
      carried += bits;
    }
    EXPECT_GE(carried, 8 * static_cast<std::ptrdiff_t>(private_bytes(kind))) << cm_name(kind);
  }
}

TEST(CmMessages, WhatIsNoCmMessageIsRefusedForItsReason) {
  Prng prng(2);
  const Mad good = random_mad(0x10, prng);
  const auto why = [](const Mad& mad) {
    CmMessage m;
    MadError error{};
    EXPECT_FALSE(decode(mad, m, error));
    return error;
  };
  Mad bad = good;
  bad[1] = 0x03;
  EXPECT_EQ(why(bad), MadError::kClass);
  bad = good;
  bad[2] = 1;
  EXPECT_EQ(why(bad), MadError::kClass);
  bad = good;
  bad[3] = 0x81;
  EXPECT_EQ(why(bad), MadError::kMethod);
  for (const std::uint16_t attribute : std::initializer_list<std::uint16_t>{0x00, 0x0F, 0x19, 0x1A, 0xFF10}) {
    EXPECT_EQ(why(random_mad(attribute, prng)), MadError::kMessage) << attribute;
  }
  CmMessage m;
  MadError error{};
  EXPECT_FALSE(decode(std::span(good).first(255), m, error));
  EXPECT_EQ(error, MadError::kLength);
}

TEST(AddressHeaders, AreThe36BytesOfTheProtocol) {
  std::vector<std::uint8_t> bytes(92, 0xEE);
  AddressHeader h{
      .source_port = 0x1234, .source = Address::v4(10, 0, 0, 1), .destination = Address::v4(10, 0, 0, 2)};
  write_address_header(h, bytes);
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[1], 0x40);
  EXPECT_EQ(load_be16(bytes.data() + 2), 0x1234);
  EXPECT_EQ(load_be32(bytes.data() + 12), 0U);
  EXPECT_EQ(load_be32(bytes.data() + 16), 0x0A000001U);
  EXPECT_EQ(load_be32(bytes.data() + 32), 0x0A000002U);
  EXPECT_EQ(bytes[36], 0xEE);
  AddressHeader got;
  ASSERT_TRUE(read_address_header(bytes, got));
  EXPECT_EQ(got, h);

  h.source.bytes[0] = h.destination.bytes[0] = 0xFD;
  write_address_header(h, bytes);
  EXPECT_EQ(bytes[1], 0x60);
  ASSERT_TRUE(read_address_header(bytes, got));
  EXPECT_EQ(got, h);

  bytes[1] = 0x50;
  EXPECT_FALSE(read_address_header(bytes, got));
  bytes[1] = 0x60;
  bytes[0] = 0x10;
  EXPECT_FALSE(read_address_header(bytes, got));
  bytes[0] = 0;
  EXPECT_FALSE(read_address_header(std::span(bytes).first(35), got));
}

TEST(AddressHeaders, ServiceIdsNamePortSpaceAndPort) {
  EXPECT_EQ(service_id(PortSpace::kTcp, 7471), 0x0000'0000'0106'1D2FU);
  EXPECT_EQ(service_id(PortSpace::kIb, 1), 0x0000'0000'013F'0001U);
}

TEST(EceWords, SayWhichModesAreOfferedAndNothingToAStranger) {
  const EceOptions all{
      .irn = true, .srnic = true, .ecn_echo = true, .dctcp = true, .dcqcn = true, .window_log2 = 9};
  EXPECT_EQ(encode_ece(all), 0x0100'091FU);
  EXPECT_EQ(encode_ece({.irn = true}), 0x0100'0001U);
  EXPECT_EQ(encode_ece({.srnic = true}), 0x0100'0002U);
  EXPECT_EQ(decode_ece(kEceVendor, encode_ece(all)), all);
  EXPECT_EQ(decode_ece(kEceVendor + 1, encode_ece(all)), EceOptions{});
  EXPECT_EQ(decode_ece(kEceVendor, encode_ece(all) + (1U << 24U)), EceOptions{});
  EXPECT_EQ(decode_ece(0, 0), EceOptions{});
}

TEST(Capabilities, LieWhereTheProtocolPutsThem) {
  Capability c;
  c.transaction = 0x0500'0000'0000'0001;
  c.flags = kCapElideIcrc;
  c.modes = mode_bit(Mode::kRoce) | mode_bit(Mode::kSrnic);
  c.target = {0x50011};
  c.instance = 0x1122334455667788;
  c.buffer_share = 212992;
  c.bdp_cap = 110;
  c.mtu = 1024;
  c.host_id[0] = 0xAA;
  c.host_id[15] = 0xBB;
  Mad mad;
  mad.fill(0xEE);
  encode(c, mad);
  const std::vector<std::uint8_t> head = {1, 0x30, 1, 1, 0,    0,    0, 0, 5, 0, 0, 0,
                                          0, 0,    0, 1, 0xFF, 0x10, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(std::vector<std::uint8_t>(mad.begin(), mad.begin() + 24), head);
  EXPECT_TRUE(std::all_of(mad.begin() + 24, mad.begin() + 37, [](std::uint8_t b) { return b == 0; }));
  EXPECT_EQ(load_be24(mad.data() + 37), 0x025253U);
  EXPECT_EQ(mad[40], 1);
  EXPECT_EQ(mad[41], 1);
  EXPECT_EQ(load_be16(mad.data() + 42), 5);
  EXPECT_EQ(mad[44], 0);
  EXPECT_EQ(load_be24(mad.data() + 45), 0x50011U);
  EXPECT_EQ(load_be64(mad.data() + 48), c.instance);
  EXPECT_EQ(load_be32(mad.data() + 56), 212992U);
  EXPECT_EQ(load_be16(mad.data() + 60), 110);
  EXPECT_EQ(load_be16(mad.data() + 62), 1024);
  EXPECT_EQ(mad[64], 0xAA);
  EXPECT_EQ(mad[79], 0xBB);
  EXPECT_TRUE(std::all_of(mad.begin() + 80, mad.end(), [](std::uint8_t b) { return b == 0; }));

  Capability decoded;
  MadError error{};
  ASSERT_TRUE(decode(mad, decoded, error));
  EXPECT_EQ(decoded, c);
  c.reply = true;
  c.status = 12;
  encode(c, mad);
  EXPECT_EQ(mad[3], 0x81);
  ASSERT_TRUE(decode(mad, decoded, error));
  EXPECT_EQ(decoded, c);
}

TEST(Capabilities, OfAnotherVendorOrAttributeAreNotOurs) {
  Mad good;
  encode(Capability{}, good);
  const auto why = [](const Mad& mad) {
    Capability c;
    MadError error{};
    EXPECT_FALSE(decode(mad, c, error));
    return error;
  };
  for (const auto& [at, error] : {std::pair{0, MadError::kClass},
                                  {1, MadError::kClass},
                                  {2, MadError::kClass},
                                  {3, MadError::kMethod},
                                  {16, MadError::kMessage},
                                  {38, MadError::kClass}}) {
    Mad bad = good;
    bad[static_cast<std::size_t>(at)] ^= 0x40U;
    EXPECT_EQ(why(bad), error) << at;
  }
}

TEST(MadPackets, AreDatagramsBetweenTheGeneralServices) {
  const Header h = mad_packet({7});
  EXPECT_EQ(h.opcode, kUdSendOnly);
  EXPECT_EQ(h.src_qp(), kGeneralServices);
  EXPECT_TRUE(carries_mad(h, kMadBytes));
  EXPECT_FALSE(carries_mad(h, kMadBytes - 1));
  Header other = h;
  other.dest_qp = {2};
  EXPECT_FALSE(carries_mad(other, kMadBytes));
  other = h;
  other.set_deth(0x01234567, kGeneralServices);
  EXPECT_FALSE(carries_mad(other, kMadBytes));
}

}  // namespace
}  // namespace weft::wire
