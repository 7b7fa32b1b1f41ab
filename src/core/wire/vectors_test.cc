// The packets of data/vectors/packets.txt, one after the other through everything: frame -> ICRC,
// frame -> decode -> the fields written beside it, fields -> encode -> the frame's own bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "core/wire/icrc.h"

namespace weft::wire {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Fields = std::map<std::string, std::string>;

Bytes from_hex(const std::string& text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::map<std::string, Fields> read_vectors() {
  std::map<std::string, Fields> vectors;
  std::ifstream file(std::string(WEFT_SOURCE_DIR) + "/data/vectors/packets.txt");
  std::string line, section;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      section = line.substr(1, line.find(']') - 1);
      continue;
    }
    const std::size_t equals = line.find(" = ");
    vectors[section][line.substr(0, equals)] = line.substr(equals + 3);
  }
  return vectors;
}

// The layers of one frame, by its Ethertype: 0x0800, 0x86DD, or RoCE version 1's 0x8915 with a GRH.
struct Layers {
  std::span<const std::uint8_t> network;      // IP and UDP, or GRH
  std::span<const std::uint8_t> udp_payload;  // BTH to ICRC
};
Layers split(std::span<const std::uint8_t> frame) {
  const std::uint16_t type = load_be16(frame.data() + 12);
  const std::size_t network = type == 0x0800 ? 28 : type == 0x86DD ? 48 : 40;
  return {frame.subspan(14, network), frame.subspan(14 + network)};
}

std::uint64_t number(const std::string& text) { return std::stoull(text, nullptr, 0); }

std::uint8_t bits_named(const std::string& text) {
  const std::map<std::string, std::uint8_t> names = {
      {"solicited", kSolicited}, {"migreq", kMigReq}, {"ackreq", kAckReq}, {"fecn", kFecn}, {"becn", kBecn}};
  std::istringstream words(text);
  unsigned bits = 0;
  for (std::string word; words >> word;) bits |= names.at(word);
  return static_cast<std::uint8_t>(bits);
}

std::uint8_t opcode_named(const std::string& name) {
  for (unsigned op = 0; op < 256; ++op) {
    if (opcode_name(static_cast<std::uint8_t>(op)) == name) return static_cast<std::uint8_t>(op);
  }
  ADD_FAILURE() << "no opcode is called " << name;
  return 0xFF;
}

// The Header that the fields of one section describe.
Header header_from(const Fields& fields) {
  Header h;
  std::uint64_t echo_msn = 0, echo_offset = 0, sack = 0, qkey = 0, src_qp = 0;
  for (const auto& [key, text] : fields) {
    if (key == "what" || key == "frame" || key == "icrc" || key == "payload") continue;
    if (key == "opcode") {
      h.opcode = opcode_named(text);
    } else if (key == "mode") {
      h.mode = text == "irn" ? Mode::kIrn : Mode::kSrnic;
    } else if (key == "bits") {
      h.bits = bits_named(text);
    } else if (key == "imm") {
      std::memcpy(&h.imm, from_hex(text).data(), 4);
    } else {
      const std::uint64_t v = number(text);
      const auto word = static_cast<std::uint32_t>(v);
      if (key == "dest_qp")
        h.dest_qp = {word};
      else if (key == "psn")
        h.psn = {word};
      else if (key == "va")
        h.va = v;
      else if (key == "rkey")
        h.rkey = {word};
      else if (key == "dma_len")
        h.dma_len = word;
      else if (key == "a")
        h.a = v;
      else if (key == "b")
        h.b = v;
      else if (key == "syndrome")
        h.syndrome = static_cast<std::uint8_t>(v);
      else if (key == "msn")
        h.imm = word;
      else if (key == "sn")
        h.sn = word;
      else if (key == "psn_offset")
        h.psn_offset = word;
      else if (key == "srx_msn")
        h.srx_msn = word;
      else if (key == "ext_flags")
        h.ext_flags = static_cast<std::uint8_t>(v);
      else if (key == "sack")
        sack = v;
      else if (key == "echo_msn")
        echo_msn = v;
      else if (key == "echo_offset")
        echo_offset = v;
      else if (key == "qkey")
        qkey = v;
      else if (key == "src_qp")
        src_qp = v;
      else
        ADD_FAILURE() << "unknown field " << key;
    }
  }
  if (sack != 0) h.a = sack | (echo_msn << 32U);
  if (sack != 0) h.b = echo_offset;
  if (qkey != 0) h.a = qkey | (src_qp << 32U);
  return h;
}

class Vectors : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    fields_ = read_vectors().at(GetParam());
    frame_ = from_hex(fields_.at("frame"));
    layers_ = split(frame_);
  }
  Fields fields_;
  Bytes frame_;
  Layers layers_;
};

TEST_P(Vectors, TheIcrcOfTheFrameIsTheKnownOne) {
  const auto covered = layers_.udp_payload.first(layers_.udp_payload.size() - kIcrcBytes);
  const std::uint32_t expected = load_le32(from_hex(fields_.at("icrc")).data());
  Icrc whole(layers_.network);
  whole.packet(covered);
  EXPECT_EQ(whole.value(), expected);
  Icrc pieces(layers_.network);
  pieces.bth(covered.first<12>());
  pieces.update(covered.subspan(12));
  EXPECT_EQ(pieces.value(), expected);
  EXPECT_EQ(load_le32(layers_.udp_payload.last(4).data()), expected);
}

TEST_P(Vectors, DecodeFindsTheFieldsWrittenBesideTheFrame) {
  Decoded got;
  DecodeError error{};
  ASSERT_TRUE(decode(layers_.udp_payload, got, error));
  EXPECT_EQ(got.payload, number(fields_.at("payload")));
  const Header want = header_from(fields_);
  EXPECT_EQ(got.header, want);
  EXPECT_EQ(got.header.opcode, want.opcode);
  EXPECT_EQ(got.header.psn.v, want.psn.v);
  EXPECT_EQ(got.header.a, want.a);
}

TEST_P(Vectors, EncodeOfThoseFieldsGivesTheBytesOfTheFrame) {
  const auto payload = static_cast<std::uint32_t>(number(fields_.at("payload")));
  const Header h = header_from(fields_);
  std::uint8_t bytes[kMaxHeaderBytes] = {};
  const std::size_t n = encode(h, payload, bytes);
  EXPECT_EQ(n, header_bytes(h));
  EXPECT_EQ(n + payload + pad_bytes(payload) + kIcrcBytes, layers_.udp_payload.size());
  EXPECT_EQ(Bytes(bytes, bytes + n),
            Bytes(layers_.udp_payload.begin(), layers_.udp_payload.begin() + static_cast<std::ptrdiff_t>(n)));
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& [name, fields] : read_vectors()) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Packets, Vectors, testing::ValuesIn(names()), [](const auto& i) { return i.param; });

TEST(VectorFile, HasEveryVectorOfTheProject) {
  EXPECT_THAT(names(), testing::UnorderedElementsAre("V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9",
                                                     "V10", "V11", "V12", "X1", "X2", "X3", "X4", "X5", "E0",
                                                     "E1", "E2", "E3", "E4", "E5", "E6", "E7"));
}

}  // namespace
}  // namespace weft::wire
