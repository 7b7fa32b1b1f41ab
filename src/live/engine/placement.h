// The Sink of the live world: received bytes into registered memory, atomics on it.
//
// The Device has checked key, rights and bounds; whether the memory is still there, only the access itself
// tells (live/wires/program_memory.h). What is left to this file is visibility: a program may watch the last
// byte of a WRITE from another thread, so the bytes of one placement are stored before its last eight, and
// those with one store (x86 keeps the order of stores; elsewhere the fence does). memcpy alone promises no
// order and does write its tail early.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/transport/sink.h"
#include "live/wires/program_memory.h"

namespace weft::live {

inline void copy_in_order(std::uint8_t* to, const std::uint8_t* from, std::uint32_t length) {
  constexpr std::uint32_t kTail = sizeof(std::uint64_t);
  if (length >= kTail) {
    std::memcpy(to, from, length - kTail);
    to += length - kTail;
    from += length - kTail;
    length = kTail;
  }
  std::atomic_thread_fence(std::memory_order_release);
  if (length == kTail) {
    std::uint64_t tail = 0;
    std::memcpy(&tail, from, kTail);
    std::memcpy(to, &tail, kTail);
  } else {
    for (std::uint32_t i = 0; i < length; ++i) to[i] = from[i];
  }
}

struct MemorySink {
  std::span<std::uint8_t* const> regions;
  std::span<const std::uint8_t* const> payloads;  // by packet

  bool place(const Placement& p) {
    std::uint8_t* const to = regions[p.region.v] + p.offset;
    const std::uint8_t* const from = payloads[p.packet] + p.payload_offset;
    return reach(to, p.length, [&] { copy_in_order(to, from, p.length); });
  }

  bool place_value(const ValuePlacement& v) {
    std::array<std::uint8_t, sizeof v.value> bytes;
    std::memcpy(bytes.data(), &v.value, sizeof v.value);
    std::uint8_t* const to = regions[v.region.v] + v.offset;
    return reach(to, v.length, [&] { copy_in_order(to, bytes.data() + v.value_offset, v.length); });
  }

  AtomicResult execute(const AtomicRequest& a) {
    auto* const at = reinterpret_cast<std::uint64_t*>(regions[a.region.v] + a.offset);
    // The Device aligned the address the peer names; the memory behind it may lie otherwise.
    if (reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) != 0) return {};
    std::uint64_t seen = a.compare;
    const bool there = reach(at, sizeof *at, [&] {
      const std::atomic_ref<std::uint64_t> word(*at);
      if (a.compare_swap) {
        word.compare_exchange_strong(seen, a.swap_or_add);
      } else {
        seen = word.fetch_add(a.swap_or_add);
      }
    });
    return there ? AtomicResult{true, seen} : AtomicResult{};
  }
};
static_assert(Sink<MemorySink>);

}  // namespace weft::live
