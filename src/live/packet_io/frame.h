// A UDP datagram over IPv4 as an Ethernet frame, written and read whole:
//
//   0        6        12       14              34           42
//   | to     | from   | 0x0800 | IPv4, 20      | UDP, 8     | payload, perhaps padding of the link
//
// Writing makes RoCEv2's headers: no fragmentation, no IP options, UDP checksum 0, as hardware does.
//
// Reading believes nothing. A frame is read, or refused for one reason, and nothing is read outside of it.
// What Linux itself would not hand to a socket is refused: other versions and protocols, fragments, lengths
// that disagree, wrong checksums. VLAN tags and IP options are refused too: a tag that belongs to an
// interface of this host has been taken off before (packet_socket.h), and options, which the ICRC would
// cover, nobody sends.
//
// Several frames may come as one: the kernel hands over what its offloads joined, or have not cut yet. Then
// the lengths in the headers are those of all, and `segment` says where to cut.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/wire/ip.h"
#include "core/wire/packet.h"

namespace weft::live {

using MacAddress = std::array<std::uint8_t, 6>;

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kFrameHeaders = kEthernetBytes + wire::kIpv4Bytes + wire::kUdpBytes;
inline constexpr std::uint16_t kEthertypeIpv4 = 0x0800;

struct FrameHeaders {
  MacAddress to{};
  MacAddress from{};
  wire::IpHeader ip;  // of IPv4; udp_length counts the UDP header
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
};

void write_frame_headers(const FrameHeaders& h, std::span<std::uint8_t, kFrameHeaders> out);
// The same for a train that the kernel or the device cuts: the UDP checksum is the sum over the pseudo
// header, from which whoever cuts computes each frame's.
void write_train_headers(const FrameHeaders& h, std::span<std::uint8_t, kFrameHeaders> out);

// X(name, its counter, sentence)
#define WEFT_FRAME_ERRORS(X)                                             \
  X(kShort, raw_short, "shorter than its headers, or than they say")     \
  X(kEthertype, raw_ethertype, "not IPv4, or behind a VLAN tag")         \
  X(kVersion, raw_version, "IP version or header length wrong")          \
  X(kOptions, raw_options, "IP options")                                 \
  X(kFragment, raw_fragment, "a fragment")                               \
  X(kIpChecksum, raw_ip_checksum, "checksum of the IP header wrong")     \
  X(kProtocol, raw_protocol, "not UDP")                                  \
  X(kUdpLength, raw_udp_length, "length of UDP does not fit that of IP") \
  X(kUdpChecksum, raw_udp_checksum, "checksum of UDP wrong")             \
  X(kSource, raw_source, "its source is no host of the network: a group, everybody, or a loopback's")

enum class FrameError : std::uint8_t {
#define WEFT_X(name, counter, text) name,
  WEFT_FRAME_ERRORS(WEFT_X)
#undef WEFT_X
};
inline constexpr std::array kFrameErrorTexts{
#define WEFT_X(name, counter, text) text,
    WEFT_FRAME_ERRORS(WEFT_X)
#undef WEFT_X
};

inline constexpr std::array kFrameErrorCounters{
#define WEFT_X(name, counter, text) #counter,
    WEFT_FRAME_ERRORS(WEFT_X)
#undef WEFT_X
};

enum class UdpChecksum : std::uint8_t {
  kLook,     // look at it; 0 means that the sender left it out
  kVouched,  // the kernel or the device has looked, or it is still to be computed
};

struct Datagram {
  wire::IpHeader ip;
  bool dont_fragment = false;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint32_t payload_offset = 0;
  std::uint32_t payload = 0;  // bytes
};

// True: `out` says what it is. False: `error` says why it is none.
bool read_frame(std::span<const std::uint8_t> frame, UdpChecksum checksum, Datagram& out, FrameError& error);

}  // namespace weft::live
