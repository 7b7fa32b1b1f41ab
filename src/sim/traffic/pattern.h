// Which host sends how much to which, and when: a stream of flows in order of time, drawn from a seed.
// Patterns are rows of a table in patterns.cc; each answers an object that hands out one flow after the
// other.
//
// A flow moves `bytes` from one host to another by one message. The verb decides which host posts it: a READ
// is posted by the host that receives the bytes.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/verbs/types.h"
#include "sim/traffic/sizes.h"

namespace weft::sim {

struct Arrival {
  Time at{};
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint64_t bytes = 0;
  WrOpcode op = WrOpcode::kWrite;
  std::uint32_t group = 0;   // flows that make one request together: of an incast
  std::uint64_t number = 0;  // counted over all tables as flows begin
};

enum class Verb : std::uint8_t { kWrite, kSend, kRead, kMixed };

struct TrafficSpec {
  std::string pattern = "poisson";
  std::string sizes = "64KiB";  // a size, a name of size_rows(), or a file
  std::string sizes_text;       // that file's content
  Verb verb = Verb::kWrite;
  std::uint32_t load = 700'000;  // poisson: millionths of the host links, headers included
  std::uint64_t flows = 0;       // poisson: so many, or ...
  Duration duration{};           // ... for so long
  Duration start{};
  std::uint32_t fan_in = 0;           // incast: senders; 0: all other hosts
  std::uint32_t connections = 1;      // incast: of each sender, a flow on each
  std::uint32_t target = UINT32_MAX;  // incast: receiver; not given: drawn for each request
  Bytes total{0};                     // incast: striped over all connections, instead of `sizes` each
  std::uint32_t requests = 1;         // incast: so many,
  Duration every{};                   // one every so often
  std::string trace_text;             // trace: lines "time from to bytes [verb]"
};

// What a pattern needs to know of the network.
struct TrafficGround {
  std::uint32_t hosts = 0;
  Rate rate{};  // of a host link
  std::uint32_t mtu = 1024;
  std::uint32_t packet_overhead = 0;  // bytes on the wire beside a packet's payload
  std::uint64_t seed = 1;
};

class Arrivals {
 public:
  virtual ~Arrivals() = default;
  // The next flow, not before the one before it; false at the end.
  virtual bool next(Arrival& out) = 0;
};

struct PatternRow {
  const char* name;
  const char* text;
  const char* uses;
  Result<std::unique_ptr<Arrivals>> (*make)(const TrafficSpec&, const TrafficGround&);
};
std::span<const PatternRow> pattern_rows();

Result<SizeDistribution> sizes_of(const TrafficSpec& spec);
// Refuses impossible settings with a sentence that begins with the setting's name.
Result<std::unique_ptr<Arrivals>> make_arrivals(const TrafficSpec& spec, const TrafficGround& ground);

}  // namespace weft::sim
