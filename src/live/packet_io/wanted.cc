#include "live/packet_io/wanted.h"

#include <linux/bpf_common.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "core/wire/bytes.h"
#include "live/packet_io/frame.h"

namespace weft::live {
namespace {

constexpr std::uint32_t kAll = 0xFFFF'FFFF;
constexpr std::uint32_t kNothing = 0;
constexpr std::uint32_t kQueuePairWord = 4;  // of the BTH: a byte of flags, then the number
constexpr std::uint32_t kAnyQueuePair = 0x00FF'FFFF;
constexpr std::uint32_t kLastWellKnown = 1;

// A program of tests, each of which leads on or to the last instruction but one.
struct Program {
  std::vector<sock_filter> code;
  std::vector<std::size_t> to_other;  // jumps on false
  std::vector<std::size_t> to_other_if_true;

  void load(std::uint16_t size, std::uint32_t at) {
    code.push_back({static_cast<std::uint16_t>(BPF_LD | BPF_ABS | size), 0, 0, at});
  }
  void only_if(std::uint16_t test, std::uint32_t k) {
    to_other.push_back(code.size());
    code.push_back({static_cast<std::uint16_t>(BPF_JMP | BPF_K | test), 0, 0, k});
  }
  void unless(std::uint16_t test, std::uint32_t k) {
    to_other_if_true.push_back(code.size());
    code.push_back({static_cast<std::uint16_t>(BPF_JMP | BPF_K | test), 0, 0, k});
  }
  void give(std::uint32_t bytes) { code.push_back({BPF_RET | BPF_K, 0, 0, bytes}); }

  // The end: what becomes of a frame that passed every test, and of the others.
  std::vector<sock_filter> finish(std::uint32_t passed, std::uint32_t other) {
    give(passed);
    const std::size_t end = code.size();
    give(other);
    for (const std::size_t i : to_other) code[i].jf = static_cast<std::uint8_t>(end - i - 1);
    for (const std::size_t i : to_other_if_true) code[i].jt = static_cast<std::uint8_t>(end - i - 1);
    return code;
  }
};

// The UDP payload, a BTH first, begins at `at`.
void for_this_process(Program& p, const Wanted& wanted, std::uint32_t at) {
  if (wanted.slot != 0) {
    p.load(BPF_B, at + kQueuePairWord + 1);
    p.only_if(BPF_JEQ, wanted.slot);
    return;
  }
  p.load(BPF_W, at + kQueuePairWord);
  p.code.push_back({BPF_ALU | BPF_AND | BPF_K, 0, 0, kAnyQueuePair});
  p.only_if(BPF_JGT, kLastWellKnown);
  p.unless(BPF_JEQ, kAnyQueuePair);
}

constexpr std::uint32_t ancillary(std::uint32_t what) {
  return static_cast<std::uint32_t>(SKF_AD_OFF) + what;
}
constexpr std::uint32_t in_network_header(std::uint32_t at) {
  return static_cast<std::uint32_t>(SKF_NET_OFF) + at;
}

}  // namespace

std::vector<sock_filter> packet_filter(const Wanted& wanted) {
  constexpr std::uint32_t kIp = kEthernetBytes;
  constexpr std::uint32_t kUdp = kIp + wire::kIpv4Bytes;
  Program p;
  p.load(BPF_W, ancillary(SKF_AD_PKTTYPE));
  p.only_if(BPF_JEQ, PACKET_HOST);
  p.load(BPF_H, 12);
  p.only_if(BPF_JEQ, ETH_P_IP);
  p.load(BPF_B, kIp);
  p.only_if(BPF_JEQ, 0x45);
  p.load(BPF_H, kIp + 6);
  p.unless(BPF_JSET, 0x3FFF);
  p.load(BPF_B, kIp + 9);
  p.only_if(BPF_JEQ, wire::kUdpProtocol);
  p.load(BPF_W, kIp + 16);
  p.only_if(BPF_JEQ, wire::load_be32(&wanted.address.bytes[12]));
  p.load(BPF_H, kUdp + 2);
  p.only_if(BPF_JEQ, wanted.port);
  for_this_process(p, wanted, kFrameHeaders);
  return p.finish(kAll, kNothing);
}

// A UDP socket's filter begins at the UDP header, and may look back. Address and port are the socket's own.
std::vector<sock_filter> udp_filter(const Wanted& wanted, std::uint32_t interface) {
  Program p;
  p.load(BPF_W, ancillary(SKF_AD_IFINDEX));
  p.only_if(BPF_JEQ, interface);
  p.load(BPF_W, ancillary(SKF_AD_PKTTYPE));
  p.only_if(BPF_JEQ, PACKET_HOST);
  p.load(BPF_B, in_network_header(0));
  p.only_if(BPF_JEQ, 0x45);
  for_this_process(p, wanted, wire::kUdpBytes);
  return p.finish(kNothing, kAll);
}

}  // namespace weft::live
