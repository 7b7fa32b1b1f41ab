// Frames that tests of wires send: to a slot, with a number that tells them apart, between addresses of this
// process alone.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "live/wires/steering.h"
#include "live/wires/wire.h"

namespace weft::live::numbered {

constexpr std::uint16_t kPort = 4791;

inline wire::Address host(std::uint8_t n) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  return wire::Address::v4(127, static_cast<std::uint8_t>(1U + (pid >> 8U) % 254U),
                           static_cast<std::uint8_t>(pid), n);
}

using Frame = std::vector<std::uint8_t>;

// To a queue pair of this slot.
inline Frame frame_for(std::uint8_t slot, std::uint32_t number, std::size_t size = 64) {
  Frame f(size);
  f[0] = 0x0A;
  f[kSlotOffset] = slot;
  std::memcpy(&f[8], &number, sizeof number);
  return f;
}

inline std::uint32_t number_of(const std::uint8_t* frame) {
  std::uint32_t number = 0;
  std::memcpy(&number, frame + 8, sizeof number);
  return number;
}

inline std::uint64_t counter(const Wire& wire, const std::string& name) {
  std::uint64_t found = UINT64_MAX;
  wire.visit_counters([&](const char* n, const char*, std::uint64_t value) {
    if (name == n) found = value;
  });
  return found;
}

}  // namespace weft::live::numbered
