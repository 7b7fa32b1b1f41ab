// Messages over channels (src/channel) as a scenario asks for them. Every host that takes part has one
// context, with the parameters of [channels]; each table [[messages]] is a number of channels and what their
// programs do.
//
//   [channels]            # parameters of contexts by name, as the middleware's own (channel/params.h);
//   depth = 8             # `channels` and `calls` are computed. In files of NIC or transport: terms
//   flow_control = false  # no fragments, no bound on what is outstanding (X-RDMA §5.3 without)
//   [[messages]]
//   pattern = "incast"    # or ping-pong, all-to-all
//   over = "channels"     # or verbs: SENDs on plain queue pairs, with as many receives as channels.depth
//   from = 0              # ping-pong: from and to
//   to = 1
//   target = 0            # incast: all others, or the first fan_in of them, to the target
//   fan_in = 30
//   connections = 1       # of each pair of hosts
//   size = "128KiB"       # of a message or a request
//   answer = "64B"        # of the response: a message is then a request. ping-pong, all-to-all: as `size`
//   count = 100           # messages of each connection
//   under_way = 1         # of a connection, sent and not yet taken or answered; 0: as many as it takes
//   every = "0us"         # a message each so often, instead of at once when one is done
//   hold = "0us"          # that a program is at work on a message, one after the other, before it gives it
//                         # back or answers
//   start = "0us"
//   upgrade_at = "5ms"    # so many of the channels close and connect anew, one after the other within
//   upgrade_part = "50%"  # upgrade_over; 0: never
//   upgrade_over = "1ms"
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel/config.h"
#include "core/base/units.h"

namespace weft::sim {

enum class MessagePattern : std::uint8_t { kPingPong, kIncast, kAllToAll };

struct MessageSpec {
  MessagePattern pattern = MessagePattern::kPingPong;
  bool plain = false;  // over verbs
  std::uint32_t from = 0;
  std::uint32_t to = 1;
  std::uint32_t target = 0;
  std::uint32_t fan_in = 0;
  std::uint32_t connections = 1;
  Bytes size{64};
  Bytes answer{};
  bool asks = false;
  std::uint32_t count = 100;
  std::uint32_t under_way = 1;
  Duration every{};
  Duration hold{};
  Duration start{};
  Duration upgrade_at{};
  std::uint32_t upgrade_part = 500'000;
  Duration upgrade_over = milliseconds(1);
};

// Simulated memory that nobody touches costs nothing, so a context has as much as its channels need.
inline constexpr Bytes kEnoughMemory{1ULL << 40U};

// These follow from the messages.
inline bool computed_param(std::string_view name) { return name == "channels" || name == "calls"; }

struct ChannelsSpec {
  ChannelsSpec() { config.memory = kEnoughMemory; }
  channel::Config config;
  bool flow_control = true;
  bool given = false;  // there is a table [channels]
};

struct Scenario;

// The pairs of hosts of a table, the one that asks first; a pair for each of its connections.
std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_of(const MessageSpec& m, std::uint32_t hosts);
// What contradicts itself in [channels] and [[messages]], or nothing.
std::string wrong_messages(const Scenario& scenario);
// Fills in Derived's channels and queue pairs of each host.
void count_channels(Scenario& scenario);
// The parameters of a host's context.
channel::Config context_config(const Scenario& scenario, std::uint32_t host);

}  // namespace weft::sim
