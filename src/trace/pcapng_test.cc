// A capture with every packet that weft speaks, read back by an independent program: tshark's dissector must
// find our numbers in its fields, every checksum right, and nothing to complain about.
//
// Known limits of tshark 4.0: it has no name for opcodes 0x18 and 0x81, and it
// takes what follows the BTH of an irn or srnic packet for plain RoCE. Extension headers are therefore
// compared in mode roce, BTHs in every mode. Payloads are 32 bytes of a pattern that its heuristics take for
// no other protocol.
#include "trace/pcapng.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/prng.h"
#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "core/wire/icrc.h"
#include "trace/tshark.h"

namespace weft::trace {
namespace {

using wire::Ext;
using wire::Header;
using wire::Mode;

PacketInfo info_at(Time time, bool v6 = false) {
  PacketInfo info;
  info.time = time;
  info.source = wire::Address::v4(10, 0, 0, 1);
  info.destination = wire::Address::v4(10, 0, 0, 2);
  if (v6) info.source.bytes[0] = info.destination.bytes[0] = 0xFD;
  return info;
}

struct Sent {
  PacketInfo info;
  Header header;
  std::uint32_t payload = 0;
};

// One packet of every opcode in every mode that has it, over IPv4 and over IPv6, all fields filled.
std::vector<Sent> every_packet() {
  Prng prng(1);
  std::vector<Sent> all;
  for (unsigned m = 0; m < wire::kModeCount; ++m) {
    for (unsigned i = 0; i < 512; ++i) {
      const unsigned op = i / 2;
      Sent s;
      s.header.opcode = static_cast<std::uint8_t>(op);
      s.header.mode = static_cast<Mode>(m);
      s.header.syndrome = wire::kSyndromeAck;
      const wire::ExtLayout& layout = wire::ext_layout(s.header.opcode, s.header.mode);
      if (!layout.known) continue;
      s.info = info_at(Time{} + nanoseconds(static_cast<std::int64_t>(all.size())), i % 2 != 0);
      s.info.tos = 0x68;
      s.info.identification = static_cast<std::uint16_t>(prng.next());
      s.header.psn = {static_cast<std::uint32_t>(prng.below(1U << 24U))};
      s.header.dest_qp = {static_cast<std::uint32_t>(prng.below(1U << 24U))};
      s.header.bits = static_cast<std::uint8_t>(prng.below(32));
      s.header.va = prng.next();
      s.header.a = prng.next();
      s.header.b = prng.next();
      s.header.rkey = {static_cast<std::uint32_t>(prng.next())};
      s.header.dma_len = static_cast<std::uint32_t>(prng.below(1U << 31U));
      s.header.imm = static_cast<std::uint32_t>(prng.below(1U << 24U));
      s.payload = layout.payload ? 32 + op % 4 : 0;
      all.push_back(s);
    }
  }
  return all;
}

std::vector<std::uint8_t> pattern(std::uint32_t n) {
  std::vector<std::uint8_t> bytes(n);
  for (std::uint32_t i = 0; i < n; ++i) bytes[i] = static_cast<std::uint8_t>(0xA0 + i);
  return bytes;
}

std::uint64_t number(const std::string& text) {
  EXPECT_FALSE(text.empty());
  return std::strtoull(text.c_str(), nullptr, 0);
}

std::string capture_path(const char* name) { return std::string(WEFT_BINARY_DIR) + "/" + name + ".pcapng"; }

class Tshark : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v tshark >/dev/null") != 0)
      GTEST_SKIP() << "no tshark; ./dev setup installs it";
  }
  void write(const char* name) {
    path_ = capture_path(name);
    sent_ = every_packet();
    std::ofstream file(path_, std::ios::binary);
    PcapngWriter writer(file);
    for (const Sent& s : sent_) writer.packet(s.info, s.header, pattern(s.payload));
    ASSERT_TRUE(file.good());
  }
  std::string path_;
  std::vector<Sent> sent_;
};

TEST_F(Tshark, FindsOurNumbersInEveryBth) {
  write("tshark_bth");
  const auto rows = dissect(path_, {"infiniband.bth.opcode", "infiniband.bth.tver", "infiniband.bth.se",
                                    "infiniband.bth.m", "infiniband.bth.padcnt", "infiniband.bth.p_key",
                                    "infiniband.bth.destqp", "infiniband.bth.a", "infiniband.bth.psn"});
  ASSERT_EQ(rows.size(), sent_.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Header& h = sent_[i].header;
    SCOPED_TRACE(std::string(wire::opcode_name(h.opcode)));
    const auto flag = [&](const std::string& text) { return text == "1" || text == "True"; };
    EXPECT_EQ(number(rows[i][0]), h.opcode);
    EXPECT_EQ(number(rows[i][1]), static_cast<unsigned>(h.mode));
    EXPECT_EQ(flag(rows[i][2]), (h.bits & wire::kSolicited) != 0);
    EXPECT_EQ(flag(rows[i][3]), (h.bits & wire::kMigReq) != 0);
    EXPECT_EQ(number(rows[i][4]), wire::pad_bytes(sent_[i].payload));
    EXPECT_EQ(number(rows[i][5]), h.pkey);
    EXPECT_EQ(number(rows[i][6]), h.dest_qp.v);
    EXPECT_EQ(flag(rows[i][7]), (h.bits & wire::kAckReq) != 0);
    EXPECT_EQ(number(rows[i][8]), h.psn.v);
  }
}

TEST_F(Tshark, FindsOurNumbersInEveryExtensionHeaderOfPlainRoce) {
  write("tshark_extensions");
  const std::vector<std::string> fields = {"infiniband.reth.va",         "infiniband.reth.r_key",
                                           "infiniband.reth.dmalen",     "infiniband.aeth.syndrome",
                                           "infiniband.aeth.msn",        "infiniband.deth.q_key",
                                           "infiniband.deth.srcqp",      "infiniband.atomiceth.swapdt",
                                           "infiniband.atomiceth.cmpdt", "infiniband.atomicacketh.origremdt",
                                           "infiniband.immdt",           "infiniband.ieth"};
  const auto rows = dissect(path_, fields);
  ASSERT_EQ(rows.size(), sent_.size());
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Header& h = sent_[i].header;
    if (h.mode != Mode::kRoce) continue;
    SCOPED_TRACE(std::string(wire::opcode_name(h.opcode)));
    std::map<std::string, std::uint64_t> want;
    for (const Ext ext : wire::ext_layout(h.opcode, h.mode, h.syndrome).ext) {
      if (ext == Ext::kReth || ext == Ext::kAtomicEth) {
        want["infiniband.reth.va"] = h.va;
        want["infiniband.reth.r_key"] = h.rkey.v;
      }
      if (ext == Ext::kReth) want["infiniband.reth.dmalen"] = h.dma_len;
      if (ext == Ext::kAtomicEth) want["infiniband.atomiceth.swapdt"] = h.a;
      if (ext == Ext::kAtomicEth) want["infiniband.atomiceth.cmpdt"] = h.b;
      if (ext == Ext::kAeth) want["infiniband.aeth.syndrome"] = h.syndrome;
      if (ext == Ext::kAeth) want["infiniband.aeth.msn"] = h.aeth_msn();
      if (ext == Ext::kDeth) want["infiniband.deth.q_key"] = h.qkey();
      if (ext == Ext::kDeth) want["infiniband.deth.srcqp"] = h.src_qp().v & kPsnMask;
      if (ext == Ext::kAtomicAck) want["infiniband.atomicacketh.origremdt"] = h.va;
      if (ext == Ext::kIeth) want["infiniband.ieth"] = h.imm;
      if (ext == Ext::kImm) want["infiniband.immdt"] = __builtin_bswap32(h.imm);
    }
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const std::string& text = rows[i][f];
      const bool bytes =
          fields[f] == "infiniband.immdt" || fields[f] == "infiniband.ieth";  // hex digits, no 0x
      if (want.contains(fields[f])) {
        EXPECT_EQ(number(bytes ? "0x" + text : text), want[fields[f]]) << fields[f];
        ++seen[fields[f]];
      } else {
        EXPECT_EQ(text, "") << fields[f];
      }
    }
  }
  for (const std::string& f : fields) EXPECT_GT(seen[f], 0) << f;
}

TEST_F(Tshark, HasNothingToComplainAbout) {
  write("tshark_complaints");
  const auto rows =
      dissect(path_, {"_ws.expert.message", "_ws.malformed", "ip.checksum.status", "udp.checksum.status"});
  ASSERT_EQ(rows.size(), sent_.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(std::string(wire::opcode_name(sent_[i].header.opcode)));
    EXPECT_EQ(rows[i][0], "");
    EXPECT_EQ(rows[i][1], "");
    const bool v6 = sent_[i].info.source.bytes[0] != 0;
    EXPECT_EQ(rows[i][2], v6 ? "" : "1");  // 1: good
    EXPECT_EQ(rows[i][3], "1");
  }
}

// The control of the test above: the same fields report an error when something is wrong.
TEST_F(Tshark, ComplainsAboutAPacketThatIsCutShort) {
  path_ = capture_path("tshark_cut");
  {
    std::ofstream file(path_, std::ios::binary);
    PcapngWriter writer(file);
    std::vector<std::uint8_t> cut(14, 0);
    cut[0] = wire::kWriteOnly;  // and two bytes of its RETH
    writer.datagram(info_at(Time{}), cut);
  }
  const auto rows = dissect(path_, {"_ws.expert.message", "_ws.malformed"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_NE(rows[0][0] + rows[0][1], "");
}

TEST_F(Tshark, SeesTimesCommentsAndInterfaces) {
  const std::string path = capture_path("capture_meta");
  {
    std::ofstream file(path, std::ios::binary);
    PcapngWriter writer(file, "left", 1'700'000'000'000'000'000ULL);
    const std::uint32_t right = writer.add_interface("right");
    Header h;
    h.opcode = wire::kSendOnly;
    PacketInfo info = info_at(Time{} + nanoseconds(123'456'789));
    writer.packet(info, h, 64U);
    info = info_at(Time{} + nanoseconds(123'456'790));
    info.comment = "dropped by impairment";
    info.interface = right;
    writer.packet(info, h, 1U);
  }
  const auto rows =
      dissect(path, {"frame.time_epoch", "frame.interface_name", "frame.comment", "frame.len", "ip.ttl"});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"1700000000.123456789", "left", "", "122", "64"}));
  EXPECT_EQ(rows[1],
            (std::vector<std::string>{"1700000000.123456790", "right", "dropped by impairment", "62", "64"}));
}

std::vector<std::uint8_t> last_frame(const std::string& file) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  const std::uint32_t total = wire::load_le32(bytes + file.size() - 4);
  const std::uint8_t* const block = bytes + file.size() - total;
  const std::uint32_t length = wire::load_le32(block + 20);
  return {block + 28, block + 28 + length};
}

// Without tshark: the frame inside the last block must carry the ICRC that its own headers ask for, and a
// datagram given as bytes must come out unchanged, wrong ICRC and all.
TEST(Capture, PacketsCarryTheirIcrcAndDatagramsAreLeftAsTheyAre) {
  Header h;
  h.opcode = wire::kWriteOnly;
  h.va = 0x1234;
  for (const bool v6 : {false, true}) {
    std::ostringstream out;
    PcapngWriter writer(out);
    PacketInfo info = info_at(Time{}, v6);
    info.identification = 0xBEEF;
    info.tos = 0xFF;
    writer.packet(info, h, pattern(37));
    const std::vector<std::uint8_t> frame = last_frame(out.str());
    const std::span<const std::uint8_t> ip = std::span<const std::uint8_t>(frame).subspan(14);
    const auto udp_payload = ip.subspan(v6 ? 48 : 28);
    wire::Icrc icrc(ip);
    icrc.packet(udp_payload.first(udp_payload.size() - 4));
    EXPECT_EQ(icrc.value(), wire::load_le32(udp_payload.last(4).data()));

    const std::vector<std::uint8_t> broken = pattern(21);
    writer.datagram(info, broken);
    const std::vector<std::uint8_t> other = last_frame(out.str());
    EXPECT_EQ(std::vector<std::uint8_t>(other.end() - 21, other.end()), broken);
    EXPECT_EQ(other.size(), 14U + (v6 ? 48U : 28U) + 21U);
  }
}

// A packet of an attacker may have an opcode that does not exist in its mode, or in any mode.
TEST(Capture, AnUnknownOpcodeHasABthAlone) {
  for (const auto& [opcode, mode] : {std::pair<std::uint8_t, Mode>{0xFF, Mode::kSrnic},
                                     {wire::kReadAcknowledge, Mode::kRoce},
                                     {wire::kUdSendOnly, Mode::kIrn}}) {
    ASSERT_FALSE(wire::ext_layout(opcode, mode).known);
    Header h;
    h.opcode = opcode;
    h.mode = mode;
    h.dest_qp = {0x123456};
    h.psn = {0xABCDEF};
    std::ostringstream out;
    PcapngWriter(out).packet(info_at(Time{}), h, pattern(5));
    const std::vector<std::uint8_t> frame = last_frame(out.str());
    ASSERT_EQ(frame.size(), 14U + 28U + wire::kBthBytes + 8U + wire::kIcrcBytes);
    const std::uint8_t* const bth = frame.data() + 14 + 28;
    EXPECT_EQ(bth[0], opcode);
    EXPECT_EQ(bth[1] & 0x0FU, static_cast<unsigned>(mode));
    EXPECT_EQ((bth[1] >> 4U) & 3U, 3U) << "three bytes of padding follow the five";
    EXPECT_EQ(wire::load_be24(bth + 5), h.dest_qp.v);
    EXPECT_EQ(wire::load_be24(bth + 9), h.psn.v);
    EXPECT_EQ(std::vector<std::uint8_t>(bth + 12, bth + 17), pattern(5));
  }
}

}  // namespace
}  // namespace weft::trace
