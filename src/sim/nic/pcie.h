// PCIe between the NIC and the host, and the memory on the NIC's board.
//
// The link has two directions. A read sends requests up and its data comes down, in the order of the
// requests, `round_trip` later; at most `reads` requests are under way. A write goes up and is in host memory
// `one_way` later, behind everything written before. A doorbell comes down. Payload, and everything smaller,
// come back in order each; what is small comes between the packets of payload. Bytes travel in packets of at
// most `payload`, each with `overhead`.
//
// Like a Stage it answers at once when the transfer will be done: calls come in the order of time, and each
// direction serves them in that order. `earliest` puts a transfer off (its address is still being
// translated). Doorbells and read requests are so small that they take bandwidth, but do not queue behind
// data that comes later.
//
// Every byte is counted under its purpose, so that somebody else can count them, too
// (docs/guide/nic-models.md#counts).
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/nic/design.h"

namespace weft::sim {

enum class Dma : std::uint8_t {
  kDoorbell,
  kSendWqe,
  kReceiveWqe,
  kPayloadRead,
  kPayloadWrite,
  kCompletion,
  kContextRead,
  kContextWrite,
  kTranslation,
  kEvent,  // of the slow path
  kCount
};
inline constexpr std::size_t kDmaCount = static_cast<std::size_t>(Dma::kCount);
const char* dma_name(Dma purpose);

struct DmaCounters {
  std::array<std::uint64_t, kDmaCount> bytes{};
  std::array<std::uint64_t, kDmaCount> transfers{};
  std::uint64_t overhead_up = 0;
  std::uint64_t overhead_down = 0;
  std::uint64_t up = 0;  // of all purposes, without overhead
  std::uint64_t down = 0;
  Duration read_waited{};  // for a free request
  std::uint64_t of(Dma purpose) const { return bytes[static_cast<std::size_t>(purpose)]; }
  // What is neither payload nor overhead: requests, completions, contexts, translations, events.
  std::uint64_t extra() const { return up + down - of(Dma::kPayloadRead) - of(Dma::kPayloadWrite); }
};

class Pcie {
 public:
  explicit Pcie(const PcieDesign& design) : design_(design), tags_(design.reads) {}

  Time read(Time now, Dma purpose, std::uint64_t bytes, Time earliest = {});
  Time write(Time now, Dma purpose, std::uint64_t bytes, Time earliest = {});
  Time doorbell(Time now, Dma purpose, std::uint64_t bytes, Time earliest = {});

  // Of the same on an idle link.
  Duration read_latency(std::uint64_t bytes) const;
  Duration write_latency(std::uint64_t bytes) const;
  Duration doorbell_latency(std::uint64_t bytes) const;
  // How long the busier direction works for it.
  Duration read_busy(std::uint64_t bytes) const { return design_.rate.time_for({wire_bytes(bytes)}); }

  const DmaCounters& counters() const { return counters_; }
  const PcieDesign& design() const { return design_; }

 private:
  std::uint64_t packets(std::uint64_t bytes) const {
    return bytes == 0 ? 1 : (bytes + design_.payload - 1) / design_.payload;
  }
  std::uint64_t wire_bytes(std::uint64_t bytes) const { return bytes + packets(bytes) * design_.overhead; }
  void count(Dma purpose, std::uint64_t bytes);

  PcieDesign design_;
  Time up_free_{};
  Time down_free_{};
  Time small_free_{};       // the same for small reads
  std::vector<Time> tags_;  // a ring: when the request that had this tag last was answered
  std::size_t next_tag_ = 0;
  DmaCounters counters_;
};

// DDR beside the chip: one access after the other at its rate, `latency` more for each.
class BoardMemory {
 public:
  explicit BoardMemory(const BoardDesign& design) : design_(design) {}
  Time access(Time now, std::uint64_t bytes) {
    free_at_ = std::max(now, free_at_) + design_.rate.time_for({bytes});
    bytes_ += bytes;
    return free_at_ + design_.latency;
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  BoardDesign design_;
  Time free_at_{};
  std::uint64_t bytes_ = 0;
};

}  // namespace weft::sim
