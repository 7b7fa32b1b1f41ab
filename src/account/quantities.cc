#include "account/quantities.h"

#include <cstdint>
#include <string_view>

#include "account/irn.h"
#include "account/network.h"
#include "account/srnic.h"

namespace weft::account {
namespace {

constexpr double kKilo = 1e3;
constexpr double kMega = 1e6;
constexpr double kKibi = 1024.0;
constexpr double kMebi = kKibi * 1024.0;
constexpr double of(std::uint64_t n, double unit) { return static_cast<double>(n) / unit; }

// --- IRN's default network (§4.1) ---
constexpr FatTree kTree{6};
constexpr Rate kRate = gigabits(40);
constexpr Duration kDelay = microseconds(2);
constexpr std::uint32_t kMtu = 1024;
constexpr Headers kHeaders;
constexpr Duration kRtt = round_trip(kTree.longest_way(), kDelay);
constexpr std::uint64_t kBdp = bytes_in_flight(kRate, kRtt);
constexpr std::uint64_t kCap = packets_in(kBdp, kMtu, kHeaders.total());
constexpr Bytes kBuffer{2 * kBdp};  // of each input port
constexpr Duration kRtoHigh = rto_high(kRtt, kTree.k, kBuffer, kRate);

// --- IRN's state (§6.1) ---
constexpr std::uint32_t kFlags = 4;
constexpr std::uint32_t kChunk = 32;
constexpr std::uint32_t kReadBits = irn::read_bits(32, irn::kPsnBits);
constexpr std::uint64_t kCap100 = packets_in(bytes_in_flight(gigabits(100), kRtt), kMtu, kHeaders.total());
constexpr irn::QueuePair queue_pair(std::uint64_t cap) {
  return {2 * irn::state_bits(kFlags), kReadBits, irn::bitmap_bits(cap, kChunk)};
}
constexpr irn::QueuePair kQp40 = queue_pair(kCap);
constexpr irn::QueuePair kQp100 = queue_pair(kCap100);
// The paper says "a couple of thousand" queue pairs, "tens of thousands" of WQEs and "several MBs".
constexpr irn::Nic kNic8{2000, 20'000, 8U << 20U};
constexpr irn::Nic kNic4{2000, 20'000, 4U << 20U};

// --- SRNIC's packets in flight (§3.2) and headers ---
constexpr std::uint64_t kSlots =
    packets_in(bytes_in_flight(gigabits(100), microseconds(40)), 1000, 0);  // packets of "1 KB"
// SRNIC §4.4.1: its headers carry two 4-byte numbers more than RoCE's, and a WRITE address, key and place.
constexpr std::uint32_t kSrx = 4 + 4;
constexpr std::uint32_t kWriteMore = kSrx + 8 + 4;

constexpr std::array kQuantities{
    Quantity{"irn-bdp",
             "[KB, packets]",
             "what the longest way of the default network holds",
             {{"bytes in flight", of(kBdp, kKilo)},
              {"packets of 1 KiB and their headers", static_cast<double>(kCap)},
              {"bytes of such a packet", kMtu + kHeaders.total()},
              {"packets at 100 Gb/s", static_cast<double>(kCap100)}}},
    Quantity{"irn-rto-high",
             "us",
             "round trip of the longest way, and a full switch in front of one output",
             {{"six ports full", of(static_cast<std::uint64_t>(kRtoHigh.ps), 1e6)},
              {"one port full", of(static_cast<std::uint64_t>(rto_high(kRtt, 1, kBuffer, kRate).ps), 1e6)}}},
    Quantity{
        "irn-pfc-threshold",
        "KB",
        "a port's buffer without its link's round trip",
        {{"threshold", of(pfc_threshold(kBuffer, kRate, kDelay), kKilo)}, {"buffer", of(kBuffer.n, kKilo)}}},
    Quantity{"irn-topology",
             "[servers, switches]",
             "fat-tree of 6-port switches",
             {{"servers", kTree.servers()},
              {"switches", kTree.switches()},
              {"pods", kTree.pods()},
              {"servers for k = 8", FatTree{8}.servers()},
              {"servers for k = 10", FatTree{10}.servers()}}},
    Quantity{"irn-ooo-buffer",
             "MB",
             "packets ahead of the expected one, kept for a thousand flows",
             {{"K = 1000", of(irn::packets_kept(kCap, 1000, 1000), kMega)},
              {"MiB, of 1 KiB packets", of(irn::packets_kept(kCap, 1024, 1000), kMebi)}}},
    Quantity{"irn-state-vars",
             "bits",
             "state variables of one direction, and of both",
             {{"one", irn::state_bits(kFlags)}, {"both", 2 * irn::state_bits(kFlags)}}},
    Quantity{"irn-state-read",
             "bits",
             "READ timer and READ in progress, and with the state variables",
             {{"for READs", kReadBits}, {"per queue pair", static_cast<double>(kQp40.context_bits())}}},
    Quantity{"irn-state-bitmaps",
             "bits",
             "five bitmaps of the window, in chunks of 32 bits",
             {{"40 Gb/s", static_cast<double>(kQp40.bitmaps_bits())},
              {"one of them", static_cast<double>(kQp40.bitmap)},
              {"100 Gb/s", static_cast<double>(kQp100.bitmaps_bits())}}},
    Quantity{"irn-state-wqe",
             "bytes",
             "sequence number in a WQE's context",
             {{"bytes", irn::wqe_bytes()}, {"percent of 64 bytes", 100.0 * irn::wqe_bytes() / 64}}},
    Quantity{"irn-state-shared",
             "bytes",
             "BDP cap, RTO_low and N, for all queue pairs",
             {{"bytes", irn::Shared{}.bytes()}}},
    Quantity{"irn-state-pct",
             "% of the NIC's cache",
             "2000 queue pairs and 20000 WQEs, in caches of 8 and 4 MiB",
             {{"40 Gb/s, 8 MiB", irn::percent_of_cache(kQp40, kNic8)},
              {"100 Gb/s, 4 MiB", irn::percent_of_cache(kQp100, kNic4)},
              {"KB at 40 Gb/s", of(irn::added_bytes(kQp40, kNic8), kKilo)},
              {"KB at 100 Gb/s", of(irn::added_bytes(kQp100, kNic8), kKilo)}}},
    Quantity{"irn-headers",
             "bytes",
             "what a data packet carries beyond RoCE's: WRITE, SEND, READ response",
             {{"WRITE", irn::reth_bytes(8, 4, 4)},
              {"SEND", irn::send_bytes()},
              {"READ response", irn::read_response_bytes()},
              {"WRITE, percent of a full packet's goodput",
               srnic::goodput_loss_percent(irn::reth_bytes(8, 4, 4), kHeaders.total(), kMtu)}}},

    Quantity{"srnic-bdp-slots",
             "packets",
             "what 100 Gb/s and 40 us hold",
             {{"of 1000 bytes", static_cast<double>(kSlots)},
              {"of 1024 bytes",
               static_cast<double>(packets_in(bytes_in_flight(gigabits(100), microseconds(40)), 1024, 0))}}},
    Quantity{"srnic-hdr-size",
             "bytes",
             "headers in RoCE, and of SRNIC's SEND and WRITE",
             {{"RoCE", kHeaders.without_fcs()},
              {"SEND", kHeaders.without_fcs() + kSrx},
              {"WRITE", kHeaders.without_fcs() + kWriteMore}}},
    Quantity{"srnic-hdr-goodput",
             "%",
             "goodput that these headers cost at an MTU of 1024",
             {{"SEND", srnic::goodput_loss_percent(kSrx, kHeaders.without_fcs(), kMtu)},
              {"WRITE", srnic::goodput_loss_percent(kWriteMore, kHeaders.without_fcs(), kMtu)}}},
};

}  // namespace

std::span<const Quantity> quantities() { return kQuantities; }

const Quantity* find_quantity(const char* id) {
  for (const Quantity& q : kQuantities) {
    if (std::string_view(q.id) == id) return &q;
  }
  return nullptr;
}

}  // namespace weft::account
