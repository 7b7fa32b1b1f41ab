// A NIC design: every part of a detailed NIC with its sizes, rates and cycles, as a TOML file describes it
// (docs/guide/nic-models.md) and as DetailedNic, the memory accounting and `weft nic explain` read it. What a
// figure says follows from here: a changed part changes the figure.
//
// Defaults are a plain NIC that keeps every context on chip; each built-in design (data/nics/NAME.toml) says
// what it changes, and where each value is published or what it was calibrated on.
//
// Cycles are of `clock_mhz`. Sizes of memory are in bytes; a part with size zero is not there.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/wire/header.h"

namespace weft::sim {

// Host and NIC are joined by one link with two directions. A read goes up as a request and comes down with
// its data; a write goes up, a doorbell comes down.
struct PcieDesign {
  Rate rate = gigabits(128);               // each direction; PCIe 3.0 x16
  Duration round_trip = nanoseconds(500);  // of a read, without the time of its bytes on the link
  Duration write_delay{};                  // of a write or a doorbell; 0: half of the round trip
  std::uint32_t payload = 256;             // bytes that one packet of the link carries
  std::uint32_t overhead = 24;             // bytes of one packet beside its payload
  std::uint32_t reads = 64;                // requests that may be under way, of up to `request` bytes
  std::uint32_t request = 512;             // bytes that one read request may ask for
  Duration one_way() const { return write_delay.ps != 0 ? write_delay : round_trip / 2; }
};

// Memory on the NIC's board, beside the chip.
struct BoardDesign {
  Bytes size{0};
  Rate rate = gigabits(150);
  Duration latency = nanoseconds(100);
};

// A pipeline takes a new item every `interval` cycles and has one in it for `depth` cycles.
struct PipelineDesign {
  std::uint32_t interval = 1;
  std::uint32_t depth = 1;
};

struct PipelinesDesign {
  PipelineDesign doorbell;             // per doorbell
  PipelineDesign schedule;             // per turn of a send queue
  PipelineDesign transmit;             // per packet, ACKs among them
  PipelineDesign receive;              // likewise
  PipelineDesign completion;           // per completion entry
  std::uint32_t bytes_per_cycle = 64;  // of packets, through transmit and receive
};

// Whose turn it may be (SRNIC §4.3.1).
enum class Picks : std::uint8_t {
  kReady,  // of a queue pair with work and credit
  kBlind,  // of a queue pair with work: credit is tested when the turn has been paid for
};

struct SendSchedulerDesign {
  Picks picks = Picks::kReady;
  std::uint32_t wqes = 8;         // most of them fetched in one turn (SRNIC §4.3.1: n)
  Bytes burst{16 * 1024};         // most bytes of messages in one turn (burst_size)
  std::uint32_t turns = 32;       // that may be under way at once, of different queue pairs or of one
  std::uint32_t entry_bytes = 2;  // of the schedule queue, for each queue pair
  Bytes memory{0};                // provisioned for the scheduler; 0: what its entries need
};

// Work requests and completions as they lie in host memory.
struct WqeDesign {
  std::uint32_t send_bytes = 64;
  std::uint32_t receive_bytes = 64;
  std::uint32_t completion_bytes = 64;
  std::uint32_t inline_bytes = 0;          // messages up to this lie in their WQE
  bool pushed = false;                     // the doorbell of a single request carries its WQE
  std::uint32_t send_cache = 0;            // entries on chip for each queue pair
  std::uint32_t receive_cache = 0;         // likewise
  std::uint32_t shared_receive_cache = 0;  // entries on chip for all queue pairs: one prefetched receive each
};

enum class ContextPolicy : std::uint8_t { kOnChip, kFcfs, kNonBlocking };
enum class Replacement : std::uint8_t { kLru, kRandom };
enum class Home : std::uint8_t { kHost, kBoard };  // where what is not on chip lies

struct ContextDesign {
  ContextPolicy policy = ContextPolicy::kOnChip;
  std::uint32_t bytes = 256;  // of one context
  std::uint32_t stride = 0;   // bytes that one takes on chip, with alignment; 0: `bytes`
  std::uint32_t most = 0;     // queue pairs that the NIC can have; 0: no bound
  std::uint32_t cache = 0;    // contexts on chip; with kOnChip all of them are
  Replacement replacement = Replacement::kLru;
  Home home = Home::kHost;
  PipelineDesign access{1, 1};  // of the store
  bool write_back = true;       // changed contexts that leave the cache are written to their home
  std::uint32_t channels = 3;   // requesters of contexts (csRNA §4.4)
  std::uint32_t misses =
      1;  // kFcfs: reads under way at once; 1 blocks, more look ahead, answers stay in order
  std::uint32_t ooo_capacity = 16;  // waiting requests of each channel (csRNA §4.4)
  std::uint32_t index_bits = 8;
  // Latency hiding (csRNA §4.5): addresses of send queues on chip, contexts prefetched beside the WQEs.
  std::uint32_t sq_table = 0;  // entries; 0: none
  std::uint32_t sq_table_bytes = 10;
  // What is in flight stands in a send window on chip, from which ACKs and responses are taken without the
  // context (csRNA §4.4: the requester unit maintains it); 0: they need the context, as requests do.
  std::uint32_t send_window = 0;  // entries: packets in flight, of all queue pairs
  std::uint32_t send_window_bytes = 32;
};

// Protection and translation of memory (MPT, MTT).
struct TranslationDesign {
  Bytes page{4096};
  Bytes reach{4ULL << 30U};  // registered memory that the table covers
  std::uint32_t entry_bytes = 8;
  bool on_chip = false;     // the whole table is
  std::uint32_t cache = 0;  // entries on chip otherwise; 0: translation costs nothing
  Replacement replacement = Replacement::kLru;
  Home home = Home::kHost;
  std::uint32_t fetch_bytes = 64;     // what one miss reads
  std::uint32_t mpt_entry_bytes = 0;  // of one memory region
  std::uint32_t mpt_entries = 0;
};

enum class Keeps : std::uint8_t { kNothing, kChip, kHost };
// Where packets wait on the chip that came ahead of a gap (SRNIC §3.2.2).
enum class Reorder : std::uint8_t { kNothing, kPerQueuePair, kShared };

// What loss recovery keeps, and who does it.
struct RecoveryDesign {
  std::uint32_t slots = 0;  // packets that may be in flight for each queue pair
  Keeps bitmaps = Keeps::kNothing;
  std::uint32_t bitmap_count = 5;  // IRN §6.1: two, and three of the responder's
  Reorder reorder = Reorder::kNothing;
  Bytes reorder_buffer{0};          // of one buffer: each queue pair's, or the one that all share
  std::uint32_t request_entry = 0;  // bytes for each packet in flight: the outstanding request table
  std::uint32_t extra_context = 0;  // bytes of context that recovery adds (IRN §6.1)
  // The slow path (SRNIC §4.4.2): with bitmaps in host memory, software looks at what comes out of order.
  std::uint32_t event_bytes = 0;  // of one entry of a control queue
  Duration cpu_time{};            // of software, for one event
  Duration nak_delay{};    // from a sequence NAK to the first packet that goes again: what firmware takes
  bool range_exit = true;  // leaves recovery by [psn_left, psn_right]; false: only when nothing waits
};

struct BuffersDesign {
  Bytes receive{600 * 1024};  // shared by all arriving packets
  Bytes transmit{64 * 1024};  // between the DMA engine and the MAC
};

struct Design {
  std::string name = "plain";
  std::string text;                     // one sentence
  wire::Mode mode = wire::Mode::kRoce;  // what `weft nic` runs it with; a scenario has its own
  std::uint32_t clock_mhz = 1000;
  Bytes on_chip{0};  // SRAM for connections, translation and buffers; 0: not bounded
  PcieDesign pcie;
  BoardDesign board;
  PipelinesDesign pipelines;
  SendSchedulerDesign scheduler;
  WqeDesign wqe;
  ContextDesign context;
  TranslationDesign translation;
  RecoveryDesign recovery;
  BuffersDesign buffers;

  Duration cycles(std::uint64_t n) const {
    return {static_cast<std::int64_t>((n * 1'000'000 + clock_mhz - 1) / clock_mhz)};
  }
};

// One sentence about what cannot be: a cache larger than its memory, a clock that stands still.
Result<void> validate(const Design& design);

}  // namespace weft::sim
