// What IRN adds to a RoCE NIC (IRN §5.3, §6.1): state per queue pair, per WQE and shared, header bytes, and
// what keeping packets instead of bitmaps would take.
#pragma once
#include <cstdint>

namespace weft::account::irn {

inline constexpr std::uint32_t kPsnBits = 24;
inline constexpr std::uint32_t kPsnBytes = kPsnBits / 8;

// State variables of one direction: the packet to send again, the recovery sequence, flags.
constexpr std::uint32_t state_bits(std::uint32_t flags) { return kPsnBits + kPsnBits + flags; }

// For READs the responder keeps a timer and the number of the request in progress. The paper gives only their
// sum, which a timer of 32 bits and a sequence number of 24 bits make.
constexpr std::uint32_t read_bits(std::uint32_t timer, std::uint32_t in_progress) {
  return timer + in_progress;
}

// Bitmaps come in chunks that are searched in parallel (IRN §6.2.1).
constexpr std::uint64_t bitmap_bits(std::uint64_t window_packets, std::uint32_t chunk) {
  return (window_packets + chunk - 1) / chunk * chunk;
}

struct Bitmaps {
  std::uint32_t two_bitmap = 2;      // responder: arrived, and last of a message
  std::uint32_t read_responses = 1;  // requester: responses that arrived
  std::uint32_t sack = 2;            // one at each end
  constexpr std::uint32_t total() const { return two_bitmap + read_responses + sack; }
};

struct QueuePair {
  std::uint32_t state = 0;   // bits, both directions
  std::uint32_t read = 0;    // bits
  std::uint64_t bitmap = 0;  // bits of one
  std::uint32_t bitmaps = Bitmaps{}.total();
  constexpr std::uint64_t context_bits() const { return state + read; }
  constexpr std::uint64_t bitmaps_bits() const { return bitmap * bitmaps; }
  constexpr std::uint64_t bytes() const { return (context_bits() + bitmaps_bits() + 7) / 8; }
};

// Each WQE remembers its sequence number among its kind: recv_WQE_SN or read_WQE_SN.
constexpr std::uint32_t wqe_bytes() { return kPsnBytes; }

// Shared by all queue pairs. The paper gives the sum; these widths make it.
struct Shared {
  std::uint32_t bdp_cap = 4;
  std::uint32_t rto_low = 4;
  std::uint32_t rto_low_packets = 2;
  constexpr std::uint32_t bytes() const { return bdp_cap + rto_low + rto_low_packets; }
};

struct Nic {
  std::uint64_t queue_pairs = 0;
  std::uint64_t wqes = 0;
  std::uint64_t cache = 0;  // bytes
};
constexpr std::uint64_t added_bytes(const QueuePair& qp, const Nic& nic) {
  return nic.queue_pairs * qp.bytes() + nic.wqes * wqe_bytes() + Shared{}.bytes();
}
constexpr double percent_of_cache(const QueuePair& qp, const Nic& nic) {
  return 100.0 * static_cast<double>(added_bytes(qp, nic)) / static_cast<double>(nic.cache);
}

// Bytes that a data packet carries beyond RoCE's (IRN §6.3). A WRITE has a RETH in each packet, where RoCE
// has it in the first; a SEND the number of its receive and its place in the message, a packet number each.
constexpr std::uint32_t reth_bytes(std::uint32_t address, std::uint32_t key, std::uint32_t length) {
  return address + key + length;
}
constexpr std::uint32_t send_bytes() { return kPsnBytes + kPsnBytes; }
constexpr std::uint32_t read_response_bytes() { return 0; }

// Packets ahead of the expected one, kept on the NIC (IRN §5.3), in the unit of `packet`.
constexpr std::uint64_t packets_kept(std::uint64_t window_packets, std::uint64_t packet,
                                     std::uint64_t flows) {
  return window_packets * packet * flows;
}

}  // namespace weft::account::irn
