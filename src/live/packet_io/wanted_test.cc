// The two filters, interpreted: a frame comes by the packet socket or by the UDP socket, never by both, and
// ours never by none.
#include "live/packet_io/wanted.h"

#include <gtest/gtest.h>
#include <linux/if_packet.h>

#include <optional>
#include <vector>

#include "core/wire/bytes.h"
#include "live/packet_io/frame.h"

namespace weft::live {
namespace {

const wire::Address kOwn = wire::Address::v4(10, 0, 0, 2);
constexpr std::uint32_t kInterface = 5;

struct Arrived {
  std::vector<std::uint8_t> frame;
  std::uint32_t interface = kInterface;
  std::uint32_t kind = PACKET_HOST;
};

// As much of classic BPF as the filters use, with the kernel's rule that a load outside drops.
std::uint32_t judge(const std::vector<sock_filter>& program, const Arrived& a, std::size_t begins) {
  const auto load = [&](std::uint32_t k, std::size_t size) -> std::optional<std::uint32_t> {
    const auto at = static_cast<std::int32_t>(k);
    std::size_t from = begins + k;
    if (at == SKF_AD_OFF + SKF_AD_PKTTYPE) return a.kind;
    if (at == SKF_AD_OFF + SKF_AD_IFINDEX) return a.interface;
    if (at < 0) from = kEthernetBytes + static_cast<std::size_t>(at - SKF_NET_OFF);
    if (from + size > a.frame.size()) return std::nullopt;
    const std::uint8_t* const p = a.frame.data() + from;
    return size == 4 ? wire::load_be32(p) : size == 2 ? wire::load_be16(p) : *p;
  };
  std::uint32_t acc = 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const sock_filter& f = program[i];
    switch (BPF_CLASS(f.code)) {
      case BPF_LD: {
        const auto v = load(f.k, BPF_SIZE(f.code) == BPF_W ? 4 : BPF_SIZE(f.code) == BPF_H ? 2 : 1);
        if (!v) return 0;
        acc = *v;
        break;
      }
      case BPF_ALU:
        acc &= f.k;
        break;
      case BPF_JMP: {
        const bool yes = BPF_OP(f.code) == BPF_JEQ   ? acc == f.k
                         : BPF_OP(f.code) == BPF_JGT ? acc > f.k
                                                     : (acc & f.k) != 0;
        i += yes ? f.jt : f.jf;
        break;
      }
      default:
        return f.k;
    }
  }
  ADD_FAILURE() << "the program has no end";
  return 0;
}

Arrived datagram(std::uint32_t qpn) {
  Arrived a;
  a.frame.resize(kFrameHeaders + 32);
  write_frame_headers(
      {.to = {},
       .from = {},
       .ip = {.source = wire::Address::v4(10, 0, 0, 1), .destination = kOwn, .udp_length = 40},
       .source_port = 4791,
       .destination_port = 4791},
      std::span(a.frame).first<kFrameHeaders>());
  wire::store_be32(&a.frame[kFrameHeaders + 4], qpn | 0xC000'0000U);  // marked: the byte before the number
  return a;
}

struct Ways {
  bool frame = false;
  bool kernel = false;
};

Ways ways_of(const Arrived& a, std::uint8_t slot) {
  const Wanted wanted{.address = kOwn, .port = 4791, .slot = slot};
  return {judge(packet_filter(wanted), a, 0) != 0,
          judge(udp_filter(wanted, kInterface), a, kEthernetBytes + wire::kIpv4Bytes) != 0};
}

TEST(Wanted, AQueuePairsFrameComesAsAFrameAndByNoOtherWay) {
  for (const auto& [slot, qpn] :
       {std::pair<std::uint8_t, std::uint32_t>{7, 0x07'1234}, {0, 0x07'1234}, {0, 2}}) {
    const Ways w = ways_of(datagram(qpn), slot);
    EXPECT_TRUE(w.frame) << qpn;
    EXPECT_FALSE(w.kernel) << qpn;
  }
}

// Services, groups, and what is for another process of the address.
TEST(Wanted, WhatIsNotForThisProcessGoesByTheKernel) {
  for (const auto& [slot, qpn] : {std::pair<std::uint8_t, std::uint32_t>{7, 0x08'1234},
                                  {7, 1},
                                  {7, 0xFF'FFFF},
                                  {0, 0},
                                  {0, 1},
                                  {0, 0xFF'FFFF}}) {
    const Ways w = ways_of(datagram(qpn), slot);
    EXPECT_FALSE(w.frame) << qpn;
    EXPECT_TRUE(w.kernel) << qpn;
  }
}

TEST(Wanted, WhatComesByAnotherInterfaceGoesByTheKernel) {
  Arrived a = datagram(0x07'1234);
  a.interface = kInterface + 1;  // where the packet socket is not bound
  EXPECT_TRUE(judge(udp_filter({kOwn, 4791, 7}, kInterface), a, kEthernetBytes + wire::kIpv4Bytes) != 0);
}

// IP options go by the kernel, which understands them.
TEST(Wanted, OptionsGoByTheKernel) {
  Arrived a = datagram(0x07'1234);
  a.frame.insert(a.frame.begin() + kEthernetBytes + wire::kIpv4Bytes, {1, 1, 1, 1});
  a.frame[kEthernetBytes] = 0x46;
  const Wanted wanted{kOwn, 4791, 7};
  EXPECT_EQ(judge(packet_filter(wanted), a, 0), 0U);
  EXPECT_NE(judge(udp_filter(wanted, kInterface), a, kEthernetBytes + wire::kIpv4Bytes + 4), 0U);
}

TEST(Wanted, OthersFramesAreNotTaken) {
  const auto changed = [](std::size_t at, std::uint8_t value) {
    Arrived a = datagram(0x07'1234);
    a.frame[at] = value;
    return ways_of(a, 7).frame;
  };
  EXPECT_FALSE(changed(12, 0x86)) << "not IPv4";
  EXPECT_FALSE(changed(kEthernetBytes + 6, 0x20)) << "a fragment";
  EXPECT_FALSE(changed(kEthernetBytes + 7, 0x01)) << "a fragment that is not the first";
  EXPECT_FALSE(changed(kEthernetBytes + 9, 6)) << "TCP";
  EXPECT_FALSE(changed(kEthernetBytes + 19, 3)) << "another address";
  EXPECT_FALSE(changed(kEthernetBytes + 23, 0xB6)) << "another port";
  Arrived other = datagram(0x07'1234);
  other.kind = PACKET_OTHERHOST;
  EXPECT_FALSE(ways_of(other, 7).frame) << "seen in promiscuous mode, or behind a strange VLAN tag";
}

}  // namespace
}  // namespace weft::live
