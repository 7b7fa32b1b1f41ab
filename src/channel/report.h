// What a context and its channels are doing, for people: numbers at one moment, and a page of text that looks
// like netstat (X-RDMA §6.2, Statistic). Asking costs nothing on the way of a message.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "channel/context.h"

namespace weft::channel {

struct ChannelStat {
  Channel::State state = Channel::State::kFree;
  bool asked = false;  // this end asked for it
  Carrier carrier = Carrier::kRdma;
  wire::Address peer;
  std::uint16_t service = 0;
  std::uint32_t depth = 0;
  std::uint32_t in_flight = 0;  // messages sent, and not taken
  std::uint32_t queued = 0;     // and waiting to be sent
  std::uint32_t held = 0;       // received, and not given back
  std::uint32_t fetching = 0;   // announced, and not whole
  std::uint32_t calls = 0;      // requests without an answer
  ChannelCounts counts;
  RoundTrips round_trips;
};
ChannelStat stat_of(const Channel& channel);

const char* name_of(Channel::State state);
const char* name_of(Carrier carrier);

// One line of the context, a heading, and a line for each channel that is not over. What the network lost and
// the transport repaired is the device's to tell: `weft nic`, or the counters of its driver. `program`: lines
// about the program above, before the channels.
std::string report(const Context& context, std::string_view program = {});

}  // namespace weft::channel
