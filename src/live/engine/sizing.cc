#include "live/engine/sizing.h"

#include <algorithm>
#include <cstddef>

#include "core/wire/codec.h"

namespace weft::live {
namespace {

constexpr std::uint64_t kLeastCredit = 64U << 10U;
constexpr std::uint64_t kOverhead = 768;
// Less silence says nothing: a thread that shares its core with others may be as late (shard.cc).
constexpr Duration kLeastTimeout = milliseconds(1);
// A paced queue pair's turn: a train worth its system call, and what a late wake-up may make up for.
constexpr Duration kPacingQuantum = microseconds(50);
constexpr std::uint32_t kQpnBits = 16;
constexpr std::uint32_t kSlots = 254;  // 1 to 254: 0 has the well-known queue pairs, 255 the number of groups

}  // namespace

std::uint32_t verbs_mtu(std::uint32_t interface_mtu, std::size_t ip_header) {
  const auto around =
      static_cast<std::uint32_t>(ip_header + wire::kUdpBytes + wire::kMaxHeaderBytes + wire::kIcrcBytes);
  for (const std::uint32_t mtu : {4096U, 2048U, 1024U, 512U}) {
    if (mtu + around <= interface_mtu) return mtu;
  }
  return 256;
}

std::uint32_t port_mtu(const WireFacts& facts) { return verbs_mtu(facts.mtu, facts.own.header_bytes()); }

std::uint64_t buffer_share(const WireFacts& facts) {
  return std::clamp(facts.receive_buffer / 2, kLeastCredit, kMostCredit);
}

std::uint64_t credit_of_a_shard(std::uint64_t share, std::size_t shards) {
  const std::uint64_t whole = std::min(share, kMostCredit);
  return std::max(whole / shards, std::min(whole, kLeastCredit));
}

DeviceConfig size_device(const WireFacts& facts, std::uint64_t seed, std::uint32_t shards) {
  DeviceConfig c;
  c.max_qp = 16'384;
  c.max_cq = 16'384;
  c.max_mr = 65'536;
  c.max_pd = 4'096;
  c.max_path = 4'096;
  c.max_ah = 16'384;
  c.max_ring = 16'384;
  c.control_ring = 16'384;
  c.seed = seed;
  c.qpn_bits = kQpnBits;
  // The slot where other processes have the same address; a random byte in its place otherwise.
  const std::uint32_t slot =
      facts.slot != 0 ? facts.slot : 1 + static_cast<std::uint32_t>(Prng(seed).below(kSlots));
  c.qpn_base = slot << kQpnBits;

  c.address = facts.own.first;
  c.port_mtu = port_mtu(facts);

  c.window_packets = 1024;
  c.bdp_cap = c.window_packets;  // the path's credit is the tighter bound down to packets of 256 bytes
  c.loss_blocks = 256;
  c.rto = Rto::kFloored;
  c.rto_floor = kLeastTimeout;
  c.tail_probe = kLeastTimeout;
  c.ack_coalesce = true;
  c.pacing_quantum = kPacingQuantum;

  c.burst_packets = facts.max_frames;
  c.burst_bytes = std::min(facts.max_bytes, 65'000U);
  c.path_credit = {credit_of_a_shard(buffer_share(facts), shards)};
  c.path_overhead = {kOverhead};
  c.read_chunk = static_cast<std::uint32_t>(c.path_credit.n / 4);
  return c;
}

}  // namespace weft::live
