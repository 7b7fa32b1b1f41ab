// What a detailed NIC counts. The sums are over the run.
#pragma once
#include <cstdint>

#include "core/base/units.h"
#include "sim/nic/pcie.h"
#include "sim/nic/stage.h"

namespace weft::sim {

// Where jobs waited or worked: time added up over all of them.
struct StallTimes {
  Duration scheduler{};        // turns: in the scheduler's pipeline
  Duration send_context{};     // turns: for their context
  Duration send_wqe{};         // turns: for their WQEs
  Duration send_buffer{};      // turns: for room in the transmit buffer
  Duration payload{};          // packets: for their payload
  Duration transmit{};         // packets: in the transmit pipeline
  Duration mac{};              // packets: for the link
  Duration receive{};          // arrivals: in the receive pipeline
  Duration receive_context{};  // arrivals: for their context
  Duration receive_wqe{};      // arrivals: for a receive WQE, or behind one
  Duration software{};         // arrivals: on the slow path
  Duration completion{};       // completions: on their way to host memory
};

struct StageCounters {
  std::uint64_t items = 0;
  Duration busy{};
  Duration waited{};
};

struct NicCounters {
  std::uint64_t doorbells = 0;
  std::uint64_t requests = 0;  // that doorbells brought
  std::uint64_t turns = 0;
  std::uint64_t empty_turns = 0;  // nothing could leave any more
  std::uint64_t wqes_fetched = 0;
  std::uint64_t wqes_used = 0;  // begun or resumed by their turn
  std::uint64_t receives_fetched = 0;
  std::uint64_t receives_cached = 0;
  std::uint64_t packets_out = 0;  // of data
  std::uint64_t frame_bytes = 0;  // of packets_out, as they occupy the link
  std::uint64_t control_out = 0;
  std::uint64_t packets_in = 0;
  std::uint64_t overflows = 0;          // arrivals without room in the receive or a reordering buffer
  std::uint64_t reorder_overflows = 0;  // of them, in a reordering buffer
  std::uint64_t events = 0;             // of the slow path
  std::uint64_t completions = 0;
  std::uint64_t polled = 0;
  std::uint64_t payload_sent = 0;    // bytes of all packets
  std::uint64_t payload_inline = 0;  // of them, those that came with their WQE
  std::uint64_t payload_placed = 0;
  std::uint64_t context_hits = 0;
  std::uint64_t context_misses = 0;
  std::uint64_t context_ordered = 0;    // requests that waited behind another of their queue pair
  std::uint64_t context_refetched = 0;  // of them, those whose context had left again
  std::uint64_t translation_hits = 0;
  std::uint64_t translation_misses = 0;
  StallTimes stalls;
  Gauge turns_inside;
  Gauge packets_inside;
  Gauge arrivals_inside;
  Gauge completions_inside;
  StageCounters doorbell;
  StageCounters schedule;
  StageCounters transmit;
  StageCounters receive;
  StageCounters completion;
  StageCounters software;
  DmaCounters dma;
  std::uint64_t board_bytes = 0;
};

}  // namespace weft::sim
