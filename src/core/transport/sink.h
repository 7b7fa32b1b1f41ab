// What the Device asks of its world while packets come in: put these payload bytes there, or execute
// this atomic. A template parameter rather than a virtual call, so that both worlds compile to
// straight-line code.
//
// Core has already checked keys, rights and bounds when it calls; the answer `false` is a fault of
// the memory itself (unmapped page). Calls are executed before they return.
#pragma once
#include <concepts>
#include <cstdint>

#include "core/base/ids.h"

namespace weft {

// Copy `length` payload bytes of packet number `packet` (index into the span given to on_packets),
// starting `payload_offset` bytes into its payload, to `offset` bytes into `region`.
struct Placement {
  Qpn qpn;  // local queue pair
  std::uint32_t packet = 0;
  std::uint32_t payload_offset = 0;
  std::uint32_t length = 0;
  RegionId region;
  std::uint64_t offset = 0;
};

struct AtomicRequest {
  Qpn qpn;
  RegionId region;
  std::uint64_t offset = 0;   // 8-byte aligned
  bool compare_swap = false;  // otherwise fetch-and-add
  std::uint64_t compare = 0;
  std::uint64_t swap_or_add = 0;
};

struct AtomicResult {
  bool ok = false;
  std::uint64_t old_value = 0;
};

// An atomic's answer came, or eight bytes of a datagram's GRH: store bytes [value_offset, value_offset +
// length) of `value`, in the host's own byte order, at `offset` bytes into `region`.
struct ValuePlacement {
  Qpn qpn;
  std::uint32_t packet = 0;  // as in Placement
  std::uint32_t value_offset = 0;
  std::uint32_t length = 0;
  RegionId region;
  std::uint64_t offset = 0;
  std::uint64_t value = 0;
};

template <class S>
concept Sink = requires(S& sink, const Placement& placement, const ValuePlacement& value,
                        const AtomicRequest& request) {
  { sink.place(placement) } -> std::same_as<bool>;
  { sink.place_value(value) } -> std::same_as<bool>;
  { sink.execute(request) } -> std::same_as<AtomicResult>;
};

// Accepts everything, does nothing: for benchmarks, the symbol gate, and worlds without bytes.
struct NullSink {
  bool place(const Placement&) { return true; }
  bool place_value(const ValuePlacement&) { return true; }
  AtomicResult execute(const AtomicRequest&) { return {true, 0}; }
};
static_assert(Sink<NullSink>);

}  // namespace weft
