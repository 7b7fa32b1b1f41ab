// What a world of channels is to be, drawn from its seed: hosts, network, parameters, and what goes wrong on
// purpose. Values that have caused bugs are drawn more often than others: windows of one, no queue, little
// memory, two fragments.
#pragma once
#include <cstdint>

#include "channel/config.h"
#include "channel_world/streams.h"
#include "pair/world.h"

namespace weft::channel_world {

inline constexpr std::uint32_t kLeast = 8;  // bytes of a message: its name

struct Plan {
  pair::WorldConfig world;
  channel::Config config;
  std::uint32_t channels = 1;
  std::uint32_t messages = 20;  // each way
  Duration think{};             // between messages of one end
  Duration hold{};              // at most, before a message is given back
  std::uint32_t failures = 0;   // queue pairs that fail
  std::uint32_t crashes = 0;    // programs that end and begin again
  std::uint32_t requests = 0;   // in millionths of the messages
  std::uint32_t large = 0;      // likewise
  Duration nap{};               // at most, for which a program does not look now and then
  bool rude = false;            // ends abort now and then
  std::uint32_t switches = 0;   // tracing on or off, in millionths of the turns
  bool tcp = false;             // hosts have TCP, too
  StreamPlan streams;
  std::uint32_t moves = 0;  // to the other carrier, by command
  std::uint32_t cuts = 0;   // of streams
};

Plan plan_of(std::uint64_t seed);

}  // namespace weft::channel_world
