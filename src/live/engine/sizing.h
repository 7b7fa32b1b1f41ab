// How large the soft NIC's Device is made: from what the wire was granted to windows and credits.
//
// The scarce thing is the receiver's socket buffer: what does not fit is lost, and a window that
// overflows it loses up to 30 %. So every path gets a credit in bytes.
//
//   granted   what the kernel lets wait for us, counted in truesize (data and its bookkeeping)
//   credit    granted / 2, 64 KiB to 1 MiB: data of the far side may fill one half while our own READ
//             responses, ACKs and the kernel's deferred releases share the other. Without a larger
//             limit from the system that is 208 KiB, three full trains. Peers that ask each other
//             (docs/protocol/modes.md#capability-discovery) tell this figure; the buffer of one that does
//             not tell is assumed to be like ours.
//   overhead  768 bytes per packet: what the smallest datagram costs beside its payload. Packets that
//             travel in trains cost less, so the estimate errs to the safe side.
//
// Many peers sending to one socket at once share it without knowing; then packets are lost, the paths
// shrink, and loss recovery does the rest.
#pragma once
#include "core/transport/config.h"
#include "core/wire/ip.h"
#include "live/engine/options.h"
#include "live/wires/wire.h"

namespace weft::live {

// What a path is offered at most, whatever a peer says.
inline constexpr std::uint64_t kMostCredit = 1U << 20U;

// `seed` draws queue pair numbers and key tags; it must not be predictable.
DeviceConfig size_device(const WireFacts& facts, std::uint64_t seed, std::uint32_t shards = 1);

// The largest verbs MTU whose packets fit the interface behind such an IP header.
std::uint32_t verbs_mtu(std::uint32_t interface_mtu, std::size_t ip_header = wire::kIpv4Bytes);
// The same for a wire: with addresses of both families packets of either fit.
std::uint32_t port_mtu(const WireFacts& facts);
// What all paths of a peer may have under way to this socket together.
std::uint64_t buffer_share(const WireFacts& facts);
// What each shard's path to a peer may have under way of the peer's share: the shards do not know of each
// other's packets, and all may go to one of the peer's sockets.
std::uint64_t credit_of_a_shard(std::uint64_t share, std::size_t shards);

}  // namespace weft::live
